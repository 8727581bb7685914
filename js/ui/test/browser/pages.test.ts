/** Each page on a phone and on a desk, light and dark: nothing fails, nothing stands out of the window. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertAccessible, assertFits, open, picture } from './browser';
import { hostileLines, machineLines } from './data';
import { Program } from './program';
import { Site } from './serve';

const CONFIG = `scrape_configs:
  - job_name: web
    scrape_interval: 1s
    scrape_timeout: 1s
    static_configs: [{targets: ['127.0.0.1:1'], labels: {site: north}}]
    relabel_configs: [{source_labels: [site], target_label: region}]
remote_write:
  - {url: 'http://127.0.0.1:1/api/v1/write', name: centre}
`;
const program = new Program(['--no-host-metrics', '--config={tidepool.yml}', '--max-series=10000'], { 'tidepool.yml': CONFIG });
let site: Site;

before(async () => {
  await program.start();
  await program.import([...machineLines(Date.now()), ...hostileLines(Date.now())]);
  site = await new Site(program.url).start();
});
after(async () => {
  site?.close();
  await program.remove();
});

const QUERY = '?g0.expr=sum+by+(mode)+(rate(node_cpu_seconds_total%5B2m%5D))&g0.tab=';

/** Addresses of the pages, with a text that is there once the page is. */
const PAGES: [string, string, string][] = [
  ['home', '', 'Temperature'],
  ['query-graph', `${QUERY}graph&g0.display_mode=stacked`, 'a point each'],
  ['query-table', `${QUERY}table`, 'samples read'],
  ['query-explain', `${QUERY}explain`, 'evaluation'],
  ['query-wrong', '?g0.expr=sum+by+(&g0.tab=graph', 'unclosed left parenthesis'],
  ['metrics', '#/explore/metrics', 'node_cpu_seconds_total'],
  ['metric', '#/explore/metrics?metric=node_load1', '1m load average'],
  ['hostile', '#/explore/metrics?metric=hostile', 'direction'],
  ['labels', '#/explore/labels', 'mountpoint'],
  ['label', '#/explore/labels?label=mode', 'iowait'],
  ['cardinality', '#/explore/cardinality', 'Pairs by series'],
  ['targets', '#/explore/targets', '127.0.0.1:1'],
  ['forwarding', '#/explore/forwarding', 'Samples in queues'],
  ['plugins', '#/explore/plugins', 'no plugins'],
  ['storage', '#/explore/storage', 'Size of the quarantine'],
  ['configuration', '#/explore/configuration', 'Memory limit'],
  ['flags', '#/explore/flags', '--wal-sync'],
];
/** Endpoints that the program may lack, which the page does without. */
const MISSING = ['status/tsdb/blocks', 'targets/relabel_steps'];

for (const [name, address, text] of PAGES) {
  for (const [width, scheme] of [[360, 'light'], [1280, 'dark']] as const) {
    test(`${name}, ${width} px, ${scheme}`, async () => {
      const expected = [...MISSING, ...(name === 'query-wrong' ? ['400 (Bad Request)'] : [])];
      const { page, errors } = await open(site.url + address, { width, scheme, expected });
      await page.getByText(text).first().waitFor();
      await page.waitForFunction(() => document.querySelector('.loading') === null);
      await page.waitForLoadState('networkidle');
      await picture(page, `${name}-${width}`);
      assert.deepEqual(errors, []);
      assert.equal(await page.evaluate(() => (window as unknown as { harmed?: number }).harmed), undefined);
      await assertFits(page);
      await assertAccessible(page);
      await page.context().close();
    });
  }
}

/**
 * Each page on a phone and on a desk, light and dark: nothing fails, nothing stands out of the
 * window.
 */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { expectedOn, fullLines, fullProgram, PAGES } from './addresses';
import { assertAccessible, assertFits, open, picture } from './browser';
import { assertLooks } from './looks';
import { allForwarded, Receiver } from './receiver';
import { Site } from './serve';

const receiver = await new Receiver().start();
const program = fullProgram([], receiver.url);
let site: Site;

before(async () => {
  await program.start();
  await program.import(fullLines());
  await allForwarded(program);
  site = await new Site(program.url).start();
});
after(async () => {
  site?.close();
  await program.remove();
  receiver.close();
});

for (const [name, address, text] of PAGES) {
  for (const [width, scheme] of [[360, 'light'], [1280, 'dark']] as const) {
    test(`${name}, ${width} px, ${scheme}`, async () => {
      const { page, errors } = await open(site.url + address, { width, scheme, expected: expectedOn(name) });
      await page.getByText(text).first().waitFor();
      await page.waitForFunction(() => document.querySelector('.loading') === null);
      await page.waitForLoadState('networkidle');
      await picture(page, `${name}-${width}`);
      await assertLooks(page, `${name}-${width}`);
      assert.deepEqual(errors, []);
      assert.equal(await page.evaluate(() => (window as unknown as { harmed?: number }).harmed), undefined);
      await assertFits(page);
      await assertAccessible(page);
      await page.context().close();
    });
  }
}

test('blocks, relabeling and the configuration are those of the node', async () => {
  const { page, errors } = await open(`${site.url}#/explore/storage`);
  const block = program.blocks()[0]!;
  await page.getByRole('row', { name: new RegExp(`^${block} .*200`) }).waitFor();

  await page.goto(`${site.url}#/explore/targets?health=down&search=north`);
  await page.getByText('Discovered labels and relabeling').click();
  await page.locator('.steps').getByText('region').first().waitFor();
  await page.goto(`${site.url}#/explore/targets?search=south`);
  await page.getByText('There is no such target').waitFor();

  await page.goto(`${site.url}#/explore/configuration`);
  const yaml = page.getByRole('region', { name: 'Configuration as YAML' });
  await yaml.getByText('job_name: web').waitFor();
  const text = (await yaml.textContent())!;
  assert.match(text, /password: <secret>/);
  assert.ok(!text.includes('hunter2'));
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('names of labels are searched and paged by the node', async () => {
  const { page } = await open(`${site.url}#/explore/labels`);
  const search = page.getByRole('searchbox', { name: 'Search in labels' });
  await search.waitFor();
  const answered = page.waitForResponse((response) => /api\/v1\/labels\?.*search=mount/.test(response.url()));
  await search.fill('mount');
  const answer = (await (await answered).json()) as { data: string[]; total: number };
  assert.deepEqual([answer.data, answer.total], [['mountpoint'], 1]);
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
  await page.context().close();
});

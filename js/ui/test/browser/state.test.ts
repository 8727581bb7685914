/** Home while a receiver, a target or the node itself is gone, and without syncs of the log. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible, assertFits, open, picture } from './browser';
import { machineLines } from './data';
import { Program } from './program';
import { allForwarded, Receiver } from './receiver';
import { Site } from './serve';

/** The page of a program with these flags and files. */
async function shown(flags: string[], run: (page: Page, program: Program, site: Site) => Promise<void>, files: Record<string, string> = {}, prepare = async (_: Program) => {}): Promise<void> {
  const program = await new Program(['--no-host-metrics', ...flags], files).start();
  const site = await new Site(program.url).start();
  try {
    await prepare(program);
    const { page } = await open(site.url);
    await run(page, program, site);
    await assertFits(page);
    await assertAccessible(page);
    await page.context().close();
  } finally {
    site.close();
    await program.remove();
  }
}

/** The state of a region once its headline says so. */
async function stateOf(page: Page, region: string, text: RegExp): Promise<string> {
  const section = page.getByRole('region', { name: region, exact: true });
  await section.getByRole('heading').filter({ hasText: text }).waitFor();
  return (await section.getAttribute('class'))!;
}

test('a receiver that dies is not one that has all', async () => {
  const receiver = await new Receiver().start();
  const flags = ['--host-metrics-interval=1s', `--remote-write-url=${receiver.url}`];
  await shown(
    flags,
    async (page) => {
      assert.equal(await stateOf(page, 'State of the node', /has left( the node)?\.$/), 'verdict good');
      receiver.close();
      // It was alive for less than a minute: by its lag alone nothing is wrong.
      assert.equal(await stateOf(page, 'State of the node', /takes nothing now\.$/), 'verdict warn');
      await page.getByText('what was sent last is sent again').waitFor();
      await picture(page, 'state-receiver');
      await page.getByRole('region', { name: 'State of the node' }).getByRole('link', { name: 'Why' }).click();
      await page.getByText('takes nothing now, and is').waitFor();
    },
    {},
    allForwarded,
  );
});

test('a target and a probe that are down do not hide behind those that are up', async () => {
  const config = `global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs: [{job_name: web, static_configs: [{targets: ['127.0.0.1:1']}]}]
probe_modules: {tcp: {prober: tcp}}
probe_configs: [{job_name: ports, module: tcp, static_configs: [{targets: ['127.0.0.1:2']}]}]
`;
  const begun = Date.now();
  await shown(
    ['--config={tidepool.yml}', '--host-metrics-interval=1s'],
    async (page, program) => {
      const region = 'Targets and probes';
      assert.equal(await stateOf(page, region, /^1 of 3 targets is down, for more than an hour or since the start; 1 probe fails/), 'verdict warn');
      // One dead target says nothing of the data.
      assert.equal(await stateOf(page, 'State of the node', /^Data is safe on this node/), 'verdict good');
      await picture(page, 'state-target');
      // Series of others, as a centre has them, are no targets of this node.
      await program.import([`up{job="web",instance="far:1"} 0 ${begun}`, `up{job="web",instance="127.0.0.1:1",edge="b"} 1 ${Date.now()}`]);
      await page.reload();
      await stateOf(page, region, /^1 of 3 targets is down, for more/);
      await page.getByRole('region', { name: region }).getByRole('link', { name: 'Targets' }).click();
      await page.getByText('Connection refused').waitFor();
    },
    { 'tidepool.yml': config },
  );
});

test('a node that is stopped is not green', async () => {
  await shown([], async (page, program, site) => {
    assert.equal(await stateOf(page, 'State of the node', /^Data is safe on this node/), 'verdict good');
    await program.stop();
    site.target = undefined;
    assert.equal(await stateOf(page, 'State of the node', /^There are no figures of the last .*Before that: Data is safe/), 'verdict unknown');
    assert.equal(await stateOf(page, 'Targets and probes', /^Whether targets answer is unknown\./), 'verdict unknown');
    await picture(page, 'state-stopped');
  });
});

test('a log that is never synced is not safe', async () => {
  await shown(['--wal-sync=off'], async (page) => {
    assert.equal(await stateOf(page, 'State of the node', /^A power cut may lose data; /), 'verdict warn');
    await picture(page, 'state-off');
    await page.getByRole('region', { name: 'State of the node' }).getByRole('link', { name: 'Why' }).click();
    await page.getByRole('heading', { name: 'Flags' }).or(page.getByText('--wal-sync', { exact: true })).first().waitFor();
  });
});

test('this machine is not another one', async () => {
  const both = async (program: Program): Promise<void> => {
    const lines = machineLines(Date.now());
    await program.import([...lines, ...lines.map((line) => line.replace('edge-7', 'edge-8').replace('mountpoint="/data"', 'mountpoint="/other"'))]);
  };
  await shown(
    ['--host-metrics-instance=edge-7'],
    async (page) => {
      const machine = page.getByRole('region', { name: 'The machine' });
      await machine.getByText('Temperature').waitFor();
      await page.waitForFunction(() => document.querySelector('.loading') === null);
      await page.waitForLoadState('networkidle');
      await picture(page, 'state-machine');
      const text = (await machine.textContent())!;
      assert.ok(text.includes('/data'), text);
      assert.ok(!text.includes('/other'), text);
    },
    {},
    both,
  );
});

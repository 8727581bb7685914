/** Home and Explore by keyboard alone. Query's is in query.test.ts. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open, tabTo } from './browser';
import { machineLines, manyNames } from './data';
import { Program } from './program';
import { Site } from './serve';

const program = new Program(['--no-host-metrics', '--no-own-metrics', '--host-metrics-instance=edge-7']);
let site: Site;

before(async () => {
  await program.start();
  const now = Date.now();
  await program.import([...machineLines(now), ...manyNames(200, now)]);
  site = await new Site(program.url).start();
});
after(async () => {
  site?.close();
  await program.remove();
});

test('home: past the navigation, another range, on to Explore', async () => {
  const { page, errors } = await open(site.url);
  await page.locator('.u-over').first().waitFor();
  await tabTo(page, 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
  await tabTo(page, '6h');
  await page.keyboard.press('Enter');
  await page.locator('button[aria-pressed=true]').getByText('6h').waitFor();
  // Backwards, into the navigation again.
  await page.evaluate(() => document.getElementById('main')!.focus());
  for (let i = 0; i < 10; i += 1) {
    await page.keyboard.press('Shift+Tab');
    if ((await page.evaluate(() => document.activeElement?.textContent)) === 'Explore') break;
  }
  await page.keyboard.press('Enter');
  await page.getByText('many_00000_total').waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('explore: pages of a list, a search, one metric, another section', async () => {
  const { page, errors } = await open(`${site.url}#/explore/metrics`);
  await page.getByText('many_00000_total').waitFor();
  await tabTo(page, 'Next metrics');
  await page.keyboard.press('Enter');
  await page.getByText('many_00050_total').waitFor();
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.type('load5');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
  await tabTo(page, 'node_load5');
  await page.keyboard.press('Enter');
  await page.waitForURL(/metric=node_load5/);
  await page.locator('.u-over').first().waitFor();
  await tabTo(page, 'Skip to the content');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Labels');
  await page.keyboard.press('Enter');
  await page.getByText('mountpoint').waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();
});

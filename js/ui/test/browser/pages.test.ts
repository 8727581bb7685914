/**
 * Each page on a phone and on a desk, light and dark: nothing fails, nothing stands out of the
 * window.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expectedOn, PAGES } from './addresses';
import { assertAccessible, assertFits, open, picture } from './browser';
import { FullNode } from './full';
import { assertLooks } from './looks';

const node = await FullNode.make();

for (const [name, address, text] of PAGES) {
  for (const [width, scheme] of [[360, 'light'], [1280, 'dark']] as const) {
    test(`${name}, ${width} px, ${scheme}`, async () => {
      const { page, errors } = await node.open(address, text, { width, scheme, expected: expectedOn(name) });
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
  const { page, errors } = await open(`${node.url}#/explore/storage`);
  const block = node.program.blocks()[0]!;
  await page.getByRole('row', { name: new RegExp(`^${block} .*200`) }).waitFor();

  await page.goto(`${node.url}#/explore/targets?health=down&search=north`);
  await page.getByText('Discovered labels and relabeling').click();
  await page.locator('.steps').getByText('region').first().waitFor();
  await page.goto(`${node.url}#/explore/targets?search=south`);
  await page.getByText('There is no such target').waitFor();

  await page.goto(`${node.url}#/explore/configuration`);
  const yaml = page.getByRole('region', { name: 'Configuration as YAML' });
  await yaml.getByText('job_name: web').waitFor();
  const text = (await yaml.textContent())!;
  assert.match(text, /password: <secret>/);
  assert.ok(!text.includes('hunter2'));
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('names of labels are searched and paged by the node', async () => {
  const { page } = await open(`${node.url}#/explore/labels`);
  const search = page.getByRole('searchbox', { name: 'Search in labels' });
  await search.waitFor();
  const answered = page.waitForResponse((response) => /api\/v1\/labels\?.*search=mount/.test(response.url()));
  await search.fill('mount');
  const answer = (await (await answered).json()) as { data: string[]; total: number };
  assert.deepEqual([answer.data, answer.total], [['mountpoint'], 1]);
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
  await page.context().close();
});

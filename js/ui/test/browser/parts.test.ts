/** The parts of the page: what Home loads, and views that are loaded when they are opened. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible, assertFits, open, picture } from './browser';
import { Program } from './program';
import { Site } from './serve';

/** Bytes that the first view takes, compressed. */
const BYTES_MAX = 90 * 1024;

/** Scripts of the page that a browser has loaded. */
const scripts = (page: Page): Promise<string[]> =>
  page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.endsWith('.js')));

const program = new Program(['--no-host-metrics', '--no-own-metrics']);
let site: Site;

before(async () => {
  await program.start();
  site = await new Site(program.url).start();
});
after(async () => {
  site?.close();
  await program.remove();
});

test('Home loads what it needs, and another view its part', async () => {
  const { page, errors } = await open(site.url);
  await page.getByText('Data is safe on this node').waitFor();
  await page.waitForLoadState('networkidle');
  const bytes = await page.evaluate(() => {
    const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')] as PerformanceResourceTiming[];
    return all.filter(({ name, entryType }) => entryType === 'navigation' || name.includes('/ui/')).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
  });
  console.log(`${bytes} bytes until Home`);
  assert.ok(bytes > 20_000 && bytes <= BYTES_MAX, `${bytes} bytes`);
  const first = await scripts(page);
  await page.getByRole('link', { name: 'Explore' }).click();
  await page.getByRole('navigation', { name: 'Sections' }).waitFor();
  const explore = (await scripts(page)).filter((name) => !first.includes(name));
  assert.ok(explore.length > 0);
  await page.getByRole('link', { name: 'Query' }).click();
  await page.getByRole('textbox', { name: 'Expression of panel 1' }).waitFor();
  const query = (await scripts(page)).filter((name) => !first.includes(name) && !explore.includes(name));
  assert.ok(query.length > 0);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('the view before stays until the next one is there', async () => {
  const { page, errors } = await open(site.url);
  await page.getByText('Data is safe on this node').waitFor();
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route(/\/ui\/.*\.js$/, async (route) => {
    await held;
    await route.continue();
  });
  await page.getByRole('link', { name: 'Query' }).click();
  await page.getByRole('status').getByText('Loading…').waitFor({ state: 'attached' });
  await page.getByText('Data is safe on this node').waitFor();
  assert.equal(await page.locator('main').getAttribute('inert'), '');
  release();
  await page.getByRole('textbox', { name: 'Expression of panel 1' }).waitFor();
  assert.equal(await page.locator('main').getAttribute('inert'), null);
  assert.equal(await page.title(), 'Query – tidepool');
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('a view that another version does not have says so, and is there after a reload', async () => {
  const { page, errors } = await open(site.url, { expected: ['404 (Not Found)'] });
  await page.getByText('Data is safe on this node').waitFor();
  await page.route(/\/ui\/.*\.js$/, (route) => route.fulfill({ status: 404, body: '404 page not found\n', contentType: 'text/plain' }));
  await page.getByRole('link', { name: 'Explore' }).click();
  await page.getByRole('alert').getByText('could not be loaded').waitFor();
  await assertFits(page);
  await assertAccessible(page);
  await picture(page, 'parts-failed');
  // What is there already is still shown.
  await page.getByRole('link', { name: 'Home' }).click();
  await page.getByText('Data is safe on this node').waitFor();
  await page.goBack();
  await page.getByRole('alert').getByText('could not be loaded').waitFor();
  await page.unrouteAll();
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.getByRole('navigation', { name: 'Sections' }).waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();
});

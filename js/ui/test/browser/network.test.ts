/**
 * The page where things are in the way: no answers, prefixes, credentials, many names, hidden tabs.
 */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertAccessible, open } from './browser';
import { HOSTILE, hostileLines, machineLines, manyNames } from './data';
import { Program } from './program';
import { Site } from './serve';

const program = new Program(['--no-host-metrics', '--no-own-metrics', '--host-metrics-instance=edge-7']);
let site: Site;

before(async () => {
  await program.start();
  const now = Date.now();
  await program.import([...machineLines(now), ...hostileLines(now), ...manyNames(50_000, now)]);
  site = await new Site(program.url).start();
});
after(async () => {
  site?.close();
  await program.remove();
});

test('fifty thousand names do not hold up the page', async () => {
  const { page, errors } = await open(`${site.url}#/explore/metrics`);
  await page.getByText('many_00000_total').waitFor();
  assert.equal(await page.locator('tbody tr').count(), 50);
  const search = page.getByRole('searchbox', { name: 'Search in metrics' });
  await search.pressSequentially('49999');
  await page.getByRole('link', { name: 'many_49999_total' }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
  // The longest time that the page did not answer to keys, since it was opened.
  const longest = await page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        new PerformanceObserver((list) => resolve(Math.max(...list.getEntries().map((entry) => entry.duration)))).observe({ type: 'longtask', buffered: true });
        setTimeout(() => resolve(0), 500);
      }),
  );
  assert.ok(longest < 1000, `${longest} ms`);

  await page.goto(`${site.url}#/query`);
  const field = page.getByRole('textbox', { name: 'Expression of panel 1' });
  await field.pressSequentially('many_4321');
  await page.getByRole('option', { name: /many_43210_total/ }).waitFor();
  assert.ok((await page.getByRole('option').count()) <= 40);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('no answer was larger than a page can hold', async () => {
  const { page } = await open(`${site.url}#/explore/metrics`);
  let bytes = 0;
  page.on('response', async (response) => {
    bytes = Math.max(bytes, (await response.body().catch(() => Buffer.alloc(0))).length);
  });
  await page.reload();
  await page.getByText('many_00000_total').waitFor();
  await page.waitForLoadState('networkidle');
  assert.ok(bytes > 1000 && bytes < 1_000_000, `${bytes} bytes`);
  await page.context().close();
});

test('labels are text, whatever is in them', async () => {
  const { page, errors } = await open(`${site.url}?g0.expr=hostile&g0.tab=table`);
  await page.locator('.series').first().waitFor();
  const shown = (await page.locator('.series').first().textContent())!;
  assert.ok(shown.includes('<img src=x onerror=\\"window.harmed=1\\">'));
  assert.ok(shown.includes(HOSTILE['script']!));
  await page.getByRole('button', { name: 'Labels as columns' }).click();
  await page.getByText(HOSTILE['html']!, { exact: true }).waitFor();
  await page.getByRole('tab', { name: 'Graph' }).click();
  await page.locator('.u-over').hover();
  await page.goto(`${site.url}#/explore/labels?label=html`);
  await page.getByRole('link', { name: HOSTILE['html']! }).click();
  await page.waitForURL(/g0\.expr/);
  assert.equal(await page.evaluate(() => (window as unknown as { harmed?: number }).harmed), undefined);
  assert.equal(await page.locator('main img, main script').count(), 0);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('a node that is gone is missed, and one that is back is seen', async () => {
  const own = await new Site(program.url).start();
  const { page, errors } = await open(own.url, { expected: ['ERR_EMPTY_RESPONSE', 'ERR_CONNECTION'] });
  const range = page.getByRole('button', { name: '6h' });
  await range.waitFor();
  own.target = undefined;
  await range.click();
  await page.locator('.lost').waitFor();
  await assertAccessible(page);
  own.target = program.url;
  await page.locator('.lost').waitFor({ state: 'detached' });
  await page.locator('.u-over').first().waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();
  own.close();
});

test('behind a prefix all addresses have it', async () => {
  const own = await new Site(program.url, '/nodes/7/').start();
  const { page, errors } = await open(own.url);
  await page.getByText('Data is safe on this node').waitFor();
  await page.getByRole('link', { name: 'Explore' }).click();
  await page.getByText('many_00000_total').waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();
  own.close();
});

test('a hidden tab asks for nothing', async () => {
  const own = await new Site(program.url).start();
  const { page } = await open(own.url, { hasClock: true });
  await page.getByText('Data is safe on this node').waitFor();
  await page.waitForLoadState('networkidle');
  const hide = (isHidden: boolean) =>
    page.evaluate((isHidden) => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden });
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
  await hide(true);
  const before = own.asked.length;
  await page.clock.fastForward(600_000);
  await page.waitForLoadState('networkidle');
  assert.deepEqual(own.asked.slice(before), []);
  const asked = page.waitForResponse(/metrics/);
  await hide(false);
  await page.clock.fastForward(60_000);
  await asked;
  await page.context().close();
  own.close();
});

test('a node that wants a token gets it, and keeps asking for the right one', async () => {
  const guarded = await new Program(['--no-host-metrics', '--read-credentials-file={readers}'], { readers: 'bearer right\n' }).start();
  const own = await new Site(guarded.url).start();
  const { page, errors } = await open(own.url, { expected: ['401 (Unauthorized)'] });
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  await assertAccessible(page);
  await page.locator('dialog input').fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByText('The token was refused').waitFor();
  await assertAccessible(page);
  await page.locator('dialog input').fill('right');
  await page.keyboard.press('Enter');
  await page.getByText('Data is safe on this node').waitFor();
  await page.reload();
  await page.getByText('Data is safe on this node').waitFor();
  assert.equal(await dialog.count(), 0);
  assert.deepEqual(errors, []);
  await page.context().close();
  own.close();
  await guarded.remove();
});

test('colours and the zone of times are chosen, and kept', async () => {
  const { page } = await open(`${site.url}#/explore/configuration`);
  const light = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const isDark = () => page.waitForFunction((light) => getComputedStyle(document.documentElement).backgroundColor !== light, light);
  await page.getByLabel('Colours').selectOption('dark');
  await isDark();
  await page.getByRole('button', { name: 'Local time' }).click();
  await page.reload();
  await page.getByRole('button', { name: 'UTC' }).waitFor();
  await isDark();
  await page.context().close();
});

/** The testing helper with a page of a real browser, driven by Playwright. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expectMetric } from '../../src/testing/index.js';
import { Profile } from './browser.js';

const profile = new Profile();

test('what a page records is asserted from outside', async () => {
  const page = await profile.tab();
  const record = (delayMs: number) =>
    page.evaluate(async (delayMs) => {
      const module = await import(new URL('/src/testing/index.js', location.href).href);
      const metrics = await module.recordMetrics();
      metrics.set('cart_items', { user: 'a' }, NaN);
      setTimeout(() => metrics.set('cart_items', { user: 'a' }, 3), delayMs);
    }, delayMs);
  const none = expectMetric(page, 'cart_items', {}, { timeoutMs: 100 }).toExist();
  await assert.rejects(none, /the page records no metrics/);
  // A page that is about to begin is waited for.
  const waiting = expectMetric(page, 'cart_items').toExist();
  await record(100);
  await waiting;
  await expectMetric(page, 'cart_items', { user: 'a' }).toHaveLast(3);
  await expectMetric(page, 'cart_items').toHaveValues([NaN, 3]);
  const wrong = expectMetric(page, 'cart_items', {}, { timeoutMs: 0 }).toHaveLast(4);
  await assert.rejects(wrong, /to have the last value 4, but it is 3/);
  await page.close();
});

// The shop's own tests: they click, and then assert on what the page recorded.

import { after, afterEach, before, beforeEach, test } from 'node:test';
import { existsSync } from 'node:fs';
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { expectMetric } from '@tidepool/engine/testing';
import { serve } from '../server.js';

const executables = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = process.env.CHROMIUM ?? executables.find(existsSync);
if (executablePath === undefined) {
  throw new Error('there is no Chromium: apt-get install chromium, or set CHROMIUM to its path');
}

let browser, server, context, page;

before(async () => {
  server = await serve();
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
});
after(async () => {
  await browser.close();
  server.close();
});
// Each test has a browser profile of its own, which holds nothing.
beforeEach(async () => {
  context = await browser.newContext();
  page = await context.newPage();
  await page.goto(`${server.url}?user=ann`);
  // On a busy machine the store takes seconds to be compiled.
  await expectMetric(page, 'cart_items', { user: 'ann' }, { timeoutMs: 30_000 }).toHaveLast(0);
});
afterEach(() => context.close());

test('clicks are counted, and the cart follows', async () => {
  for (let i = 0; i < 3; i += 1) await page.click('#add');
  await expectMetric(page, 'cart_items', { user: 'ann' }).toHaveLast(3);
  await expectMetric(page, 'cart_items').toHaveValues([0, 1, 2, 3]);
  await expectMetric(page, 'clicks_total', { button: 'add' }).toHaveLast(3);
  await expectMetric(page, 'clicks_total', { button: 'buy' }).not.toExist();
});

test('an order empties the cart, and is quick enough', async () => {
  await page.click('#add');
  await page.click('#buy');
  await expectMetric(page, 'cart_items').toHaveValues([0, 1, 0]);
  await expectMetric(page, 'order_seconds').toStayWithin({ min: 0, max: 10 });
  await expectMetric(page, 'order_errors_total').not.toExist();
});

test('orders are there again after a reload', async () => {
  for (const items of [2, 3]) {
    for (let i = 0; i < items; i += 1) await page.click('#add');
    await page.click('#buy');
    await expectMetric(page, 'cart_items', { user: 'ann' }).toHaveLast(0);
  }
  await page.reload();
  await expectMetric(page, 'cart_items').toHaveValues([0]);
  assert.equal(await page.textContent('#bought'), '5');
});

test('a second tab gets an error while the first one has the orders open', async () => {
  const second = await context.newPage();
  await second.goto(server.url);
  await expectMetric(second, 'order_errors_total', { code: 'storage' }).toHaveLast(1);
  assert.match(await second.textContent('#notice'), /another tab or worker has the store orders open/);
  await second.click('#add');
  await expectMetric(second, 'cart_items', { user: 'guest' }).toHaveLast(1);
});

test('a failure says what was there', async () => {
  await page.click('#add');
  const wrong = expectMetric(page, 'cart_items', { user: 'ann' }, { timeoutMs: 100 }).toHaveLast(2);
  await assert.rejects(wrong, (error) => {
    assert.match(error.message, /^expected cart_items\{user="ann"\} to have the last value 2, but it is 1\n/);
    assert.match(error.message, /\{user="ann"\} {2}2 samples, the last at .*: 0 1/);
    return true;
  });
});

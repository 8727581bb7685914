// The demo in a real browser: load, plot, reload, forget.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { readOpenMetrics } from '../app/openmetrics.js';
import { serve } from '../server.js';

const executables = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = process.env.CHROMIUM ?? executables.find(existsSync);
if (executablePath === undefined) {
  throw new Error('there is no Chromium: apt-get install chromium, or set CHROMIUM to its path');
}

let browser, server, page;
const problems = [];

before(async () => {
  server = await serve();
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  page = await browser.newPage();
  page.on('pageerror', (error) => problems.push(error));
  await page.goto(server.url);
});
after(async () => {
  await browser.close();
  server.close();
});

const status = (text) => page.locator('#status', { hasText: text }).waitFor({ timeout: 20_000 });

/** How many pixels of the plot have the colour of its first, second or third series. */
const pixelsOf = (series) => page.evaluate((series) => {
  const canvas = document.querySelector('#plot canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const [red, green, blue] = [[0x16, 0x68, 0xb8], [0xc2, 0x57, 0x1a], [0x2b, 0x8a, 0x3e]][series];
  let pixels = 0;
  for (let i = 0; i < data.length; i += 4) {
    const distance = Math.abs(data[i] - red) + Math.abs(data[i + 1] - green) + Math.abs(data[i + 2] - blue);
    // Lines are smoothed at their edges, into the white around them.
    if (data[i + 3] > 128 && distance < 60) pixels += 1;
  }
  return pixels;
}, series);

async function assertAllDrawn() {
  for (const series of [0, 1, 2]) {
    const pixels = await pixelsOf(series);
    assert.ok(pixels > 500, `${pixels} pixels of series ${series}`);
  }
}

test('the example is stored and plotted', async () => {
  await status('Nothing is stored yet');
  await page.click('#example');
  await status('The example: 8646 samples stored');
  assert.equal(await page.inputValue('#metric'), 'node_load1');
  assert.equal(await page.locator('#plot .u-legend tr.u-series').count(), 4);
  await assertAllDrawn();
});

test('rates of a counter', async () => {
  await page.selectOption('#metric', 'node_network_receive_bytes_total');
  await page.check('#rate');
  await page.locator('#plot .u-title', { hasText: 'per second' }).waitFor();
  await status('3 series, 4323 samples');
  await assertAllDrawn();
  if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT });
});

test('files of either kind are loaded', async () => {
  const text = '# TYPE up gauge\nup{job="a b\\"c"} 1 1700000000\nup{job="x"} NaN 1700000060.5\n# EOF\n';
  await page.setInputFiles('#file', { name: 'up.om', mimeType: 'text/plain', buffer: Buffer.from(text) });
  await status('up.om: 2 samples stored');
  // up{__name__="remote"} with 1.5 at 12 ms, as a remote-write body, packed as one literal.
  const label = [0x0a, 18, 0x0a, 8, ...Buffer.from('__name__'), 0x12, 6, ...Buffer.from('remote')];
  const sample = [0x12, 11, 0x09, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0x10, 12];
  const body = [0x0a, label.length + sample.length, ...label, ...sample];
  const packed = Buffer.from([body.length, (body.length - 1) << 2, ...body]);
  await page.setInputFiles('#file', { name: 'body', mimeType: 'application/x-protobuf', buffer: packed });
  await status('body: 1 samples stored');
  const bad = Buffer.from('no sample here');
  await page.setInputFiles('#file', { name: 'bad', mimeType: 'text/plain', buffer: bad });
  await status('line 1 is no sample');
});

test('all of it is there after a reload, until it is forgotten', async () => {
  await page.reload();
  await status('3 series, 4323 samples');
  const names = await page.locator('#metric option').allTextContents();
  assert.deepEqual(names, ['node_load1', 'node_network_receive_bytes_total', 'remote', 'up']);
  await page.click('#forget');
  await status('Nothing is stored yet');
  assert.equal(await page.locator('#metric option').count(), 0);
  assert.deepEqual(problems, []);
});

test('text reads as its format says', () => {
  const rows = [...readOpenMetrics('a 1\nb{x="1,2}",y="\\n"} +Inf 5 # {t="1"} 2\n', 99)];
  assert.deepEqual(rows, [
    { labels: { __name__: 'a' }, timeMs: 99, value: 1 },
    { labels: { __name__: 'b', x: '1,2}', y: '\n' }, timeMs: 5, value: Infinity },
  ]);
  assert.throws(() => [...readOpenMetrics('a{x=1} 1', 0)], /labels of line 1/);
});

/**
 * Stores in a real browser's files: they survive reloads and deaths, one tab at a time has them,
 * and a full disk costs nothing that was acknowledged.
 */

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { open } from '../../src/index.js';
import { NodeFiles } from '../../src/node/index.js';
import type * as inPage from './page.js';
import { Profile, url } from './browser.js';

const profile = new Profile();

/** Calls a function of `page.ts` in the page. */
function call<Name extends keyof typeof inPage>(
  page: Page,
  name: Name,
  ...args: Parameters<(typeof inPage)[Name]>
): Promise<Awaited<ReturnType<(typeof inPage)[Name]>>> {
  return page.evaluate(
    async ([name, args]) => {
      const module = await import(new URL('/test/browser/page.js', location.href).href);
      return module[name](...args);
    },
    [name, args] as const,
  );
}

test('append, select, compact, reload, and read again', async () => {
  const page = await profile.tab();
  const isIsolated = await page.evaluate(() => crossOriginIsolated);
  assert.equal(isIsolated, false, 'no special header is needed');
  assert.equal(await call(page, 'open', { name: 'reload' }), 'open');
  assert.equal(await call(page, 'write', 50, 0, 1500), 75_000);
  const whole = { series: 50, samples: 75_000, wrong: 0 };
  assert.deepEqual(await call(page, 'check'), whole);
  assert.ok((await call(page, 'compact')) >= 2);
  assert.deepEqual(await call(page, 'check'), whole);

  await page.reload();
  assert.equal(await call(page, 'open', { name: 'reload' }), 'open');
  assert.deepEqual(await call(page, 'check'), whole);
  assert.ok((await call(page, 'stats')).blocks >= 2);
  assert.equal(await call(page, 'write', 50, 1500, 1600), 5000);

  // The whole browser ends, and starts again.
  await profile.close();
  const next = await profile.tab();
  assert.equal(await call(next, 'open', { name: 'reload' }), 'open');
  assert.deepEqual(await call(next, 'check'), { series: 50, samples: 80_000, wrong: 0 });
  await next.close();
});

test('the engine finds no promise of the storage broken', async () => {
  const page = await profile.tab();
  const broken = await page.evaluate(async () => {
    const worker = new Worker('/test/browser/contract_worker.js', { type: 'module' });
    return new Promise((resolve, reject) => {
      worker.addEventListener('message', ({ data }) => resolve(data));
      worker.addEventListener('error', ({ message }) => reject(new Error(message)));
    });
  });
  assert.deepEqual(broken, []);
  await page.close();
});

test('what a browser wrote opens in Node', async () => {
  const page = await profile.tab();
  assert.equal(await call(page, 'open', { name: 'taken' }), 'open');
  await call(page, 'write', 20, 0, 1500);
  await call(page, 'compact');
  const dir = mkdtempSync(join(tmpdir(), 'tidepool-'));
  for (const { path, base64 } of await call(page, 'files')) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), Buffer.from(base64, 'base64'));
  }
  await page.close();
  const store = await open({ storage: new NodeFiles(dir) });
  const series = [...store.select()];
  assert.equal(series.length, 20);
  for (const { labels, values } of series) {
    const expected = Array.from({ length: 1500 }, (_, i) => Number(labels['s']) * 1000 + i);
    assert.deepEqual([...values], expected);
  }
  await store.close();
  rmSync(dir, { recursive: true });
});

test('a tab that is killed while it writes loses nothing acknowledged', async () => {
  const page = await profile.tab();
  assert.equal(await call(page, 'open', { name: 'killed' }), 'open');
  await call(page, 'write', 100, 0, 500);
  // More is on its way when the renderer dies. The count here may lag behind.
  let acknowledged = 0;
  const told = page.waitForEvent('console', (message) => {
    acknowledged = Number(message.text().replace('acknowledged ', ''));
    return acknowledged >= 100_000;
  });
  call(page, 'write', 100, 500, 100_000).catch(() => {});
  await told;
  const crashed = page.waitForEvent('crash');
  page.goto('chrome://crash').catch(() => {});
  await crashed;
  await page.close();

  const next = await profile.tab();
  assert.equal(await call(next, 'open', { name: 'killed' }), 'open');
  const { series, samples, wrong } = await call(next, 'check');
  assert.deepEqual([series, wrong], [100, 0]);
  assert.ok(samples >= 50_000 + acknowledged, `${samples} samples, ${acknowledged} acknowledged`);
  await next.close();
});

test('two tabs: the second gets an error, and takes over when the first is gone', async () => {
  const first = await profile.tab();
  const second = await profile.tab();
  assert.equal(await call(first, 'open', { name: 'tabs' }), 'open');
  await call(first, 'write', 5, 0, 10);
  assert.match(await call(second, 'open', { name: 'tabs' }), /another tab or worker has the store/);
  assert.equal(await call(second, 'open', { name: 'other' }), 'open');
  await call(second, 'close');
  await first.close();
  assert.equal(await call(second, 'open', { name: 'tabs' }), 'open');
  assert.deepEqual(await call(second, 'check'), { series: 5, samples: 50, wrong: 0 });
  await second.close();
});

test('a store that is open nowhere can be deleted, and then its space is free', async () => {
  const page = await profile.tab();
  const usage = () => page.evaluate(async () => (await navigator.storage.estimate()).usage ?? 0);
  const before = await usage();
  assert.equal(await call(page, 'open', { name: 'gone' }), 'open');
  await call(page, 'write', 1000, 0, 100);
  assert.match(await call(page, 'remove', 'gone'), /another tab or worker has the store gone open/);
  const during = await usage();
  assert.ok(during > before + 500_000, `${during - before} bytes more`);
  await call(page, 'close');
  assert.equal(await call(page, 'remove', 'gone'), 'deleted');
  assert.equal(await call(page, 'remove', 'gone'), 'deleted');
  assert.ok((await usage()) < before + 500_000);
  assert.equal(await call(page, 'open', { name: 'gone' }), 'open');
  assert.deepEqual(await call(page, 'check'), { series: 0, samples: 0, wrong: 0 });
  await page.close();
});

test('a quota that is used up refuses the batch, and leaves the rest as it was', async () => {
  const page = await profile.tab();
  const devtools = await page.context().newCDPSession(page);
  const origin = new URL(url).origin;
  const usage = await page.evaluate(() => navigator.storage.estimate());
  const quotaSize = (usage.usage ?? 0) + 6 * 1024 * 1024;
  await devtools.send('Storage.overrideQuotaForOrigin', { origin, quotaSize });
  assert.equal(await call(page, 'open', { name: 'quota' }), 'open');
  const { error, steps } = await call(page, 'writeUntilError', 1000);
  assert.match(error, /^StorageError: no space is left/);
  const { series, samples, wrong } = await call(page, 'check');
  assert.deepEqual([series, wrong], [1000, 0]);
  assert.ok(steps > 0 && samples >= steps * 1000, `${samples} samples, ${steps} steps`);
  await call(page, 'close');
  // It opens, and is read, while there is no room.
  assert.equal(await call(page, 'open', { name: 'quota' }), 'open');
  assert.deepEqual(await call(page, 'check'), { series, samples, wrong });

  await devtools.send('Storage.overrideQuotaForOrigin', { origin });
  const next = samples / 1000;
  assert.equal(await call(page, 'write', 1000, next, next + 10), 10_000);
  assert.deepEqual(await call(page, 'check'), { series, samples: samples + 10_000, wrong });
  await page.close();
});

/** A hundred thousand samples; `tests/run --soak` writes a million. */
const SERIES = process.env['TIDEPOOL_SOAK'] === undefined ? 100 : 1000;

test('many samples', async () => {
  const page = await profile.tab();
  assert.equal(await call(page, 'open', { name: 'many' }), 'open');
  assert.equal(await call(page, 'write', SERIES, 0, 1000), SERIES * 1000);
  const whole = { series: SERIES, samples: SERIES * 1000, wrong: 0 };
  assert.deepEqual(await call(page, 'check'), whole);
  assert.ok((await call(page, 'compact')) > 0);
  await page.reload();
  assert.equal(await call(page, 'open', { name: 'many' }), 'open');
  assert.deepEqual(await call(page, 'check'), whole);
  await page.close();
});

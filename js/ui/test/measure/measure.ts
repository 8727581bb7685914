/**
 * Prints what a person waits for, and what a tab takes: `npm run measure`. Chromium; the program of
 * TIDEPOOL_BIN with its page and its viewer.
 */

import { once } from 'node:events';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { closeBrowser, open } from '../browser/browser';
import { machineLines } from '../browser/data';
import { Program } from '../browser/program';

const RUNS = 5;
const SERIES = 1000;
const SAMPLES_OF_EACH = 2000;
const STEP_MS = 15_000;

const median = (numbers: readonly number[]): number => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!;

/** Milliseconds since the page was asked for, when something matched first. */
async function firstMs(url: string, selector: string): Promise<{ page: Page; ms: number }> {
  const { page } = await open('about:blank');
  await page.addInitScript((selector) => {
    const look = (): void => {
      if (document.querySelector(selector) !== null) Object.assign(globalThis, { firstMs: performance.now() });
      else requestAnimationFrame(look);
    };
    look();
  }, selector);
  await page.goto(url);
  const ms = await page.waitForFunction(() => (globalThis as { firstMs?: number }).firstMs);
  return { page, ms: (await ms.jsonValue())! };
}

/** Private memory of the processes of all tabs, in MiB. */
async function tabMiB(page: Page): Promise<number> {
  const session = await page.context().browser()!.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  const sizes = processInfo
    .filter(({ type }) => type === 'renderer')
    .map(({ id }) => Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${id}/status`, 'utf8'))![1]) / 1024);
  return Math.max(...sizes);
}

async function ofNode(): Promise<void> {
  const program = await new Program(['--no-host-metrics', '--no-own-metrics']).start();
  try {
    await program.import(machineLines(Date.now()));
    const times: number[] = [];
    let memory = 0;
    for (let run = 0; run < RUNS; run += 1) {
      const { page, ms } = await firstMs(program.url, '.u-wrap canvas');
      times.push(ms);
      await page.waitForLoadState('networkidle');
      memory = await tabMiB(page);
      await page.context().close();
    }
    console.log(`home: first chart after ${median(times).toFixed(0)} ms (median of ${RUNS}); ${memory.toFixed(0)} MiB in the tab`);
  } finally {
    await program.remove();
  }
}

async function ofFiles(): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'tidepool-measure-'));
  const program = new Program();
  try {
    const text = join(work, 'samples.txt');
    const out = createWriteStream(text);
    const endMs = Date.now() - 12 * 3_600_000;
    for (let n = 0; n < SERIES; n += 1) {
      const lines = Array.from({ length: SAMPLES_OF_EACH }, (_, i) => `measured{n="${n}"} ${(i * 7919 * (n + 1)) % 1000} ${endMs - (SAMPLES_OF_EACH - i) * STEP_MS}\n`);
      if (!out.write(lines.join(''))) await once(out, 'drain');
    }
    out.end();
    await once(out, 'close');
    program.run(['tsdb', 'import', '--format=prometheus', text, program.dataDir]);
    const viewer = join(work, 'viewer.html');
    writeFileSync(viewer, program.run(['viewer']));
    const query = `?${new URLSearchParams({ 'g0.expr': 'sum(count_over_time(measured[1d]))', 'g0.tab': 'table' })}`;
    const times: number[] = [];
    let memory = 0;
    for (let run = 0; run < RUNS; run += 1) {
      const { page } = await open(`file://${viewer}${query}`);
      await page.evaluate(() => {
        document.querySelector('input[webkitdirectory]')!.addEventListener('change', () => Object.assign(globalThis, { pickedMs: performance.now() }), { capture: true });
        const look = (): void => {
          if (document.querySelector('main td.number') !== null) Object.assign(globalThis, { answeredMs: performance.now() });
          else requestAnimationFrame(look);
        };
        look();
      });
      await page.locator('input[webkitdirectory]').setInputFiles(program.dataDir);
      await page.waitForFunction(() => 'answeredMs' in globalThis);
      const [ms, value] = await page.evaluate(() => {
        const { pickedMs, answeredMs } = globalThis as unknown as { pickedMs: number; answeredMs: number };
        return [answeredMs - pickedMs, document.querySelector('main td.number')!.textContent] as const;
      });
      if (value !== `${SERIES * SAMPLES_OF_EACH}`) throw new Error(`the sum is ${value}`);
      times.push(ms);
      memory = await tabMiB(page);
      await page.context().close();
    }
    const samples = SERIES * SAMPLES_OF_EACH;
    console.log(`viewer: ${samples} samples in ${program.blocks().length} blocks, first answer (over all of them) ${median(times).toFixed(0)} ms after the pick (median of ${RUNS}); ${memory.toFixed(0)} MiB in the tab`);
  } finally {
    await program.remove();
    rmSync(work, { recursive: true, force: true });
  }
}

try {
  await ofNode();
  await ofFiles();
} finally {
  await closeBrowser();
}

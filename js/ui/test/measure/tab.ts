/** Times and memory of a tab. */

import { existsSync, readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { open } from '../browser/browser';

/** The middle one, or the upper of two. */
export const median = (numbers: readonly number[]): number => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!;

/** Milliseconds since the page was asked for, when something matched first. */
export async function firstMs(url: string, selector: string): Promise<{ page: Page; ms: number }> {
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

/**
 * Drops a directory onto the viewer. Milliseconds from there until something matches; an error of
 * the page is thrown.
 */
export async function droppedMs(page: Page, directory: string, selector: string): Promise<number> {
  await page.evaluate((selector) => {
    addEventListener('drop', () => Object.assign(globalThis, { droppedMs: performance.now() }), { capture: true });
    const look = (): void => {
      if (document.querySelector(`${selector}, .notice.bad`) !== null) Object.assign(globalThis, { answeredMs: performance.now() });
      else requestAnimationFrame(look);
    };
    look();
  }, selector);
  const session = await page.context().newCDPSession(page);
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
    await session.send('Input.dispatchDragEvent', { type, x: 200, y: 200, data: { items: [], files: [directory], dragOperationsMask: 1 } });
  }
  await page.waitForFunction(() => 'answeredMs' in globalThis, undefined, { timeout: 600_000 });
  const [ms, failure] = await page.evaluate(() => {
    const { droppedMs, answeredMs } = globalThis as unknown as { droppedMs: number; answeredMs: number };
    return [answeredMs - droppedMs, document.querySelector('.notice.bad')?.textContent] as const;
  });
  if (failure !== undefined) throw new Error(failure ?? '');
  return ms;
}

type Process = { type: string; id: number; cpuTime: number };

async function processesOf(page: Page): Promise<Process[]> {
  const session = await page.context().browser()!.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  return processInfo;
}

/** Seconds of processors that the browser has used since it was started. */
export async function cpuSeconds(page: Page): Promise<number> {
  return (await processesOf(page)).reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

/** How often the memory of a tab is looked at. */
const PERIOD_MS = 50;

/** Private memory of the process of the largest tab. */
export class TabMemory {
  readonly #ids: number[];
  readonly #timer: NodeJS.Timeout;
  /** The most that there was, in MiB. */
  peakMiB = 0;

  private constructor(ids: number[]) {
    this.#ids = ids;
    this.#timer = setInterval(() => this.nowMiB(), PERIOD_MS);
  }

  /** From now on. */
  static async of(page: Page): Promise<TabMemory> {
    return new TabMemory((await processesOf(page)).filter(({ type }) => type === 'renderer').map(({ id }) => id));
  }

  /** What there is now, in MiB. */
  nowMiB(): number {
    const now = Math.max(...this.#ids.map(privateMiB));
    this.peakMiB = Math.max(this.peakMiB, now);
    return now;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

function privateMiB(id: number): number {
  const path = `/proc/${id}/status`;
  // One of a tab that was closed before may have ended.
  if (!existsSync(path)) return 0;
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(path, 'utf8'))?.[1] ?? 0) / 1024;
}

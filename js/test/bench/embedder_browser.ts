/**
 * Chromium's part of `tests/embedders`: a store in memory, in the page itself. Prints its figures.
 */

import { Profile } from '../browser/browser.js';
import type * as embedder from './embedder.js';

const profile = new Profile();
const page = await profile.tab();
const browser = await page.context().browser()?.newBrowserCDPSession();
if (browser === undefined) throw new Error('the browser does not tell what its processes do');

/** CPU seconds of the processes that run pages; this page is the only one that does something. */
await page.exposeFunction('cpuSeconds', async () => {
  const { processInfo } = await browser.send('SystemInfo.getProcessInfo');
  const renderers = processInfo.filter(({ type }) => type === 'renderer');
  return renderers.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
});
const figures = await page.evaluate(async () => {
  const module: typeof embedder = await import(
    new URL('/test/bench/embedder.js', location.href).href
  );
  return module.measure((globalThis as unknown as { cpuSeconds(): Promise<number> }).cpuSeconds);
});
console.log(JSON.stringify(figures));
await profile.close();

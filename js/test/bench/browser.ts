/** What a store in a worker costs in a browser, printed as tables: `npm run bench:browser`. */

import type * as crossing from './crossing.js';
import type * as inPage from '../browser/page.js';
import { Profile } from '../browser/browser.js';

const profile = new Profile();
const page = await profile.tab();

/** Each way's milliseconds, for few long series and for many short ones. */
const shapes = [
  [1000, 1000],
  [10_000, 100],
  [50_000, 2],
] as const;
const ways: Record<string, Record<string, string>> = {};
for (const shape of shapes) {
  const found = await page.evaluate(async (shape) => {
    const module: typeof crossing = await import(
      new URL('/test/bench/crossing.js', location.href).href
    );
    return { ways: [...module.WAYS], times: await module.measure(shape[0], shape[1]) };
  }, shape);
  found.ways.forEach((way, i) => {
    const row = (ways[way] ??= {});
    row[`${shape[0]} × ${shape[1]}, ms`] = found.times[i]!.toFixed(1);
  });
}
console.log('From a worker to a page, series × samples:');
console.table(ways);

const throughput: Record<string, Record<string, string>> = {};
for (const storage of ['memory', 'opfs'] as const) {
  const times = await page.evaluate(async (storage) => {
    const url = new URL('/test/browser/page.js', location.href).href;
    const module: typeof inPage = await import(url);
    const times: Record<string, number> = {};
    const time = async (what: string, run: () => Promise<unknown>) => {
      const begun = performance.now();
      await run();
      times[what] = performance.now() - begun;
    };
    const options = { storage, name: `bench ${Math.random()}` };
    await time('open', () => module.open(options));
    await time('append a million', () => module.write(1000, 0, 1000));
    await time('select a million', () => module.check());
    await time('compact', () => module.compact());
    await time('select from blocks', () => module.check());
    await module.close();
    if (storage === 'opfs') await time('open again', () => module.open(options));
    return times;
  }, storage);
  for (const [what, ms] of Object.entries(times)) (throughput[what] ??= {})[storage] = ms.toFixed(0);
}
console.log('A store in a worker, seen from the page, 1000 series of 1000 samples, ms:');
console.table(throughput);
await profile.close();

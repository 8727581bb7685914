/** The same series for every test of a storage: made in JavaScript, dumped as promtool does. */

import type { Store } from '../../src/index.js';

/** Some time in November 2023, at the beginning of two hours. */
export const START_MS = 1_699_999_200_000;
export const STEP_MS = 15_000;

/** Writes so many series over these steps; every fifth row comes a minute out-of-order. */
export function write(store: Store, series: number, fromStep: number, toStep: number): void {
  const refs = Array.from({ length: series }, (_, s) =>
    store.seriesRef({ __name__: 'js_samples', instance: `node-${s}`, job: 'api' }),
  );
  for (let step = fromStep; step < toStep; step += 1) {
    const timeMs = START_MS + STEP_MS * step;
    const timestampsMs = refs.map((_, s) => (s % 5 === 4 ? timeMs - 60_001 : timeMs));
    const values = refs.map((_, s) => value(s, step));
    const { refused } = store.append({ series: refs, timestampsMs, values }, timeMs);
    if (refused > 0) throw new Error(`${refused} rows were refused at step ${step}`);
  }
}

function value(series: number, step: number): number {
  return series * 1000 + step * 0.25;
}

/** All that a store has, as `promtool tsdb dump` prints it. */
export function dump(store: Store): string[] {
  const lines: string[] = [];
  for (const { labels, timestampsMs, values } of store.select()) {
    const { __name__, ...others } = labels;
    const pairs = Object.entries({ __name__: __name__ ?? '', ...others });
    const text = pairs.map(([name, one]) => `${name}="${one}"`).join(', ');
    timestampsMs.forEach((timeMs, i) => lines.push(`{${text}} ${values[i]} ${timeMs}`));
  }
  return lines;
}

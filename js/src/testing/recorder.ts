/** Recording metrics in a page, for its tests to look at. */

import { MemoryStorage } from '../imports/memory.js';
import type { Labels, Series } from '../model.js';
import { open } from '../open.js';
import type { Store } from '../store.js';

/** Where a page's recorder is found by a test outside of it. */
export const GLOBAL_NAME = '__tidepoolMetrics';

/** A test may well record faster than one sample a millisecond. */
const FUTURE_LIMIT_MS = 2 ** 42;

/** A series in plain values, which any test runner can move out of its page. */
export interface PlainSeries {
  readonly labels: Labels;
  readonly timestampsMs: readonly number[];
  readonly values: readonly number[];
}

/** Records values of metrics as they change, into a store in memory. */
export class MetricRecorder {
  /** The store, for all that is not offered here. */
  readonly store: Store;
  /** What was recorded last, by series. */
  readonly #last = new Map<string, { value: number; timestampMs: number }>();

  constructor(store: Store) {
    this.store = store;
  }

  /** Records a value now, such as that of a gauge. */
  set(name: string, labels: Labels, value: number): void {
    const key = JSON.stringify([name, ...Object.entries(labels).sort()]);
    const before = this.#last.get(key)?.timestampMs ?? -Infinity;
    // Two values of one millisecond are two samples all the same.
    const timestampMs = Math.max(Date.now(), before + 1);
    const series = this.store.seriesRef({ ...labels, __name__: name });
    const rows = { series, timestampsMs: [timestampMs], values: [value] };
    const { refusals } = this.store.append(rows, timestampMs);
    if (refusals[0] !== undefined) throw new Error(refusals[0].detail);
    this.#last.set(key, { value, timestampMs });
  }

  /** Adds to what was recorded last, such as to a counter; that was 0 if nothing was. */
  add(name: string, labels: Labels = {}, amount = 1): void {
    const key = JSON.stringify([name, ...Object.entries(labels).sort()]);
    this.set(name, labels, (this.#last.get(key)?.value ?? 0) + amount);
  }

  /** All that was recorded under a name, or under all of them. */
  read(name?: string): PlainSeries[] {
    const matchers = name === undefined ? [] : [{ name: '__name__', op: '=', value: name } as const];
    return Array.from(this.store.select({ matchers }), toPlain);
  }

  /** Drops everything, so that each test starts with an empty store. */
  clear(): void {
    this.#last.clear();
    this.store.delete({ matchers: [{ name: '__name__', op: '!=', value: '' }] });
  }
}

/** A series in plain values. */
export function toPlain({ labels, timestampsMs, values }: Series): PlainSeries {
  return { labels, timestampsMs: [...timestampsMs], values: [...values] };
}

/**
 * Begins to record. Tests outside of the page, such as Playwright's, find the recorder of the page
 * by themselves: the last one that was begun.
 */
export async function recordMetrics(): Promise<MetricRecorder> {
  const storage = new MemoryStorage();
  const recorder = new MetricRecorder(await open({ storage, futureLimitMs: FUTURE_LIMIT_MS }));
  (globalThis as Record<string, unknown>)[GLOBAL_NAME] = recorder;
  return recorder;
}

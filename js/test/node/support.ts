/** What the tests share: a fixed clock, seeded numbers, and bits to compare. */

import { MemoryStorage, open, type OpenOptions, type Series, type Store } from '../../src/index.js';

/** Some time in November 2023, at the beginning of a minute. */
export const NOW_MS = 1_699_999_980_000;

/** A store in memory. */
export function openMemory(options: Partial<OpenOptions> = {}): Promise<Store> {
  return open({ storage: new MemoryStorage(), ...options });
}

/** Numbers in [0, 1) that are the same on every run (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

/** The bits of values, since NaNs of all kinds are otherwise the same. */
export function bits(values: Float64Array): string[] {
  const words = new BigUint64Array(values.buffer, values.byteOffset, values.length);
  return Array.from(words, (word) => word.toString(16).padStart(16, '0'));
}

/** A series' samples in a form that `deepEqual` compares by bits. */
export function plain({ labels, timestampsMs, values }: Series) {
  return { labels, timestampsMs: [...timestampsMs], values: bits(values) };
}

/** The answer as a whole. */
export function read(store: Store, ...selection: Parameters<Store['select']>) {
  return [...store.select(...selection)].map(plain);
}

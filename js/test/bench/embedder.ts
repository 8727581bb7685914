/** The work of `tests/embedders/src/work.rs` in JavaScript: of any environment and storage. */

import { MemoryStorage, open, type Columns, type Storage, type Store } from '../../src/index.js';

const SERIES = 1000;
const STEPS = 1000;
const STEPS_A_CALL = 10;
const RUNS = 3;
const START_MS = 1_700_000_000_000;
const STEP_MS = 15_000;
const END_MS = START_MS + STEP_MS * STEPS;

/** What `tests/embedders` asks for. */
export interface Figures {
  load_ms: number;
  reload_ms: number;
  append_seconds: number;
  append_cpu_seconds: number;
  select_seconds: number;
  select_cpu_seconds: number;
  samples: number;
  sum: number;
}

/** How a part of the work is measured: CPU seconds of the process so far. */
export type CpuSeconds = () => number | Promise<number>;

interface Spent {
  seconds: number;
  cpuSeconds: number;
}

function batch(refs: bigint[], first: number): Columns {
  const rows = SERIES * STEPS_A_CALL;
  const series = new BigUint64Array(rows);
  const timestampsMs = new BigInt64Array(rows);
  const values = new Float64Array(rows);
  for (let row = 0; row < rows; row += 1) {
    const step = first + Math.floor(row / SERIES);
    const s = row % SERIES;
    series[row] = refs[s]!;
    timestampsMs[row] = BigInt(START_MS + STEP_MS * step);
    values[row] = ((s * 31 + step * 17) % 1000) / 8;
  }
  return { series, timestampsMs, values };
}

function read(store: Store): { samples: number; sum: number } {
  const found = { samples: 0, sum: 0 };
  for (const { values } of store.select()) {
    found.samples += values.length;
    for (const value of values) found.sum += value;
  }
  return found;
}

/** Does all of it, each time on a fresh storage. */
export async function measure(
  cpuSeconds: CpuSeconds,
  storage: () => Storage = () => new MemoryStorage(),
): Promise<Figures> {
  async function timed<T>(work: () => T | Promise<T>): Promise<[T, Spent]> {
    const cpuBegan = await cpuSeconds();
    const began = performance.now();
    const given = await work();
    const seconds = (performance.now() - began) / 1e3;
    return [given, { seconds, cpuSeconds: (await cpuSeconds()) - cpuBegan }];
  }
  const [first, load] = await timed(() => open({ storage: storage() }));
  await first.close();
  const [second, reload] = await timed(() => open({ storage: storage() }));
  await second.close();
  let append: Spent = { seconds: Infinity, cpuSeconds: Infinity };
  let select = append;
  let found = { samples: 0, sum: 0 };
  for (let run = 0; run < RUNS; run += 1) {
    const store = await open({ storage: storage() });
    const refs = Array.from({ length: SERIES }, (_, s) => {
      return store.seriesRef({ __name__: 'http_requests_total', code: '200', job: 'api', path: `/${s}` });
    });
    const batches = Array.from({ length: STEPS / STEPS_A_CALL }, (_, i) => batch(refs, i * STEPS_A_CALL));
    const [, appended] = await timed(() => {
      for (const rows of batches) store.append(rows, END_MS);
    });
    if (appended.cpuSeconds < append.cpuSeconds) append = appended;
    const [seen, selected] = await timed(() => read(store));
    if (selected.cpuSeconds < select.cpuSeconds) select = selected;
    found = seen;
    await store.close();
  }
  return {
    load_ms: load.seconds * 1e3,
    reload_ms: reload.seconds * 1e3,
    append_seconds: append.seconds,
    append_cpu_seconds: append.cpuSeconds,
    select_seconds: select.seconds,
    select_cpu_seconds: select.cpuSeconds,
    ...found,
  };
}

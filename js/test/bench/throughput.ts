/** What writing and reading cost, printed as a table: `npm run bench`. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MemoryStorage, open, type Columns, type Storage, type Store } from '../../src/index.js';
import { NodeFiles } from '../../src/node/index.js';

const SERIES = 1000;
const STEPS = 300;
const SAMPLES = SERIES * STEPS;
const STEP_MS = 15_000;
const START_MS = 1_700_000_000_000;

/** Rows of these steps, as typed arrays. */
function typedRows(refs: bigint[], fromStep: number, steps: number) {
  const rows = steps * SERIES;
  const series = new BigUint64Array(rows);
  const timestampsMs = new BigInt64Array(rows);
  const values = new Float64Array(rows);
  for (let row = 0; row < rows; row += 1) {
    const step = fromStep + Math.floor(row / SERIES);
    series[row] = refs[row % SERIES]!;
    timestampsMs[row] = BigInt(START_MS + STEP_MS * step);
    values[row] = (row % SERIES) * step + (row % 7) / 10;
  }
  return { series, timestampsMs, values };
}

function plainRows(refs: bigint[], fromStep: number, steps: number): Columns {
  const { series, timestampsMs, values } = typedRows(refs, fromStep, steps);
  return {
    series: [...series],
    timestampsMs: Array.from(timestampsMs, Number),
    values: [...values],
  };
}

const report: Record<string, { ms: string; 'ms per 100k samples': string }> = {};

/** Runs and times; with a count of samples, tells the cost of 100000. */
async function time<T>(what: string, samples: number, run: () => T | Promise<T>): Promise<T> {
  const start = performance.now();
  const result = await run();
  const ms = performance.now() - start;
  const per100k = samples > 0 ? ((ms * 100_000) / samples).toFixed(1) : '';
  report[what] = { ms: ms.toFixed(1), 'ms per 100k samples': per100k };
  return result;
}

async function filled(
  rowsOf: typeof plainRows,
  steps: number,
  what: string,
  storage: Storage = new MemoryStorage(),
): Promise<Store> {
  const store = await open({ storage });
  const refs = Array.from({ length: SERIES }, (_, i) => {
    return store.seriesRef({
      __name__: 'http_requests_total',
      job: 'api',
      path: `/${i}`,
      code: '200',
    });
  });
  const batches = Array.from({ length: STEPS / steps }, (_, i) => rowsOf(refs, i * steps, steps));
  await time(what, SAMPLES, () => {
    for (const rows of batches) store.append(rows, START_MS + STEP_MS * STEPS);
  });
  return store;
}

const first = await time('open, the first time', 0, () => open({ storage: new MemoryStorage() }));
await first.close();
await (await time('open again', 0, () => open({ storage: new MemoryStorage() }))).close();

for (let warm = 0; warm < 2; warm += 1) {
  await (await filled(typedRows, 10, 'append, typed, 10000 rows a call')).close();
}
await (await filled(typedRows, 1, 'append, typed, 1000 rows a call')).close();
await (await filled(plainRows, 10, 'append, plain arrays, 10000 rows a call')).close();

const dir = mkdtempSync(join(tmpdir(), 'tidepool-'));
const inFiles = await filled(typedRows, 10, 'append into files, 10000 rows a call', new NodeFiles(dir));
await inFiles.close();
const reopened = await time('reopen files', SAMPLES, () => open({ storage: new NodeFiles(dir) }));
await reopened.close();
rmSync(dir, { recursive: true });

const storage = new MemoryStorage();
const store = await filled(typedRows, 10, 'append, typed, 10000 rows a call');
for (let warm = 0; warm < 2; warm += 1) {
  await time('select, decoded', SAMPLES, () => {
    let samples = 0;
    for (const { values } of store.select()) samples += values.length;
    if (samples !== SAMPLES) throw new Error(`${samples} samples`);
  });
  await time('select, raw chunks', SAMPLES, () => [...store.selectChunks()].length);
}
await time('select one series of 1000', STEPS, () => [
  ...store.select({ matchers: [{ name: 'path', op: '=', value: '/77' }] }),
]);
await store.close();

const source = await open({ storage, blockDurationMs: 30 * 60_000 });
const refs = Array.from({ length: SERIES }, (_, i) =>
  source.seriesRef({ __name__: 'm', i: `${i}` }),
);
for (let i = 0; i < STEPS; i += 10)
  source.append(typedRows(refs, i, 10), START_MS + STEP_MS * STEPS);
await source.close();
const again = await time('reopen, reading the log back', SAMPLES, () => {
  return open({ storage, blockDurationMs: 30 * 60_000 });
});
const blocks = await time('compact into blocks', SAMPLES, () => again.compact());
await time('select from blocks and head, decoded', SAMPLES, () => [...again.select()].length);
await again.close();

console.log(
  `${SERIES} series of ${STEPS} samples, node ${process.version}, ${blocks.length} blocks`,
);
console.table(report);

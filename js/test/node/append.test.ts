/** What is appended comes back, bit by bit; what is not accepted is refused with its reason. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isStale, setStale, STALE_NAN_BITS, type Columns } from '../../src/index.js';
import { label, message } from '../shared/protobuf.js';
import { bits, NOW_MS, openMemory, plain, read, seeded } from './support.js';

const SERIES = 7;
const SAMPLES = 700;

/** Values of every kind that the chunk format treats differently. */
function someValue(random: () => number, step: number): number {
  switch (Math.floor(random() * 6)) {
    case 0:
      return step;
    case 1:
      return random();
    case 2:
      return -1 / random();
    case 3:
      return [0, -0, Infinity, -Infinity, 5e-324, 1.7976931348623157e308][step % 6]!;
    default:
      return 42;
  }
}

test('thousands of samples come back with their bits', async () => {
  const random = seeded(1);
  const store = await openMemory();
  const expected = [];
  const rows = { series: [] as bigint[], timestampsMs: [] as number[] };
  const values = new Float64Array(SERIES * SAMPLES);
  const words = new BigUint64Array(values.buffer);

  for (let s = 0; s < SERIES; s += 1) {
    const labels = { __name__: 'some_metric', instance: `node-${s}`, ['__proto__']: 'label' };
    const series = store.seriesRef(labels);
    let timeMs = NOW_MS;
    for (let i = 0; i < SAMPLES; i += 1) {
      // Mostly regular, sometimes out-of-order, rarely after a long silence.
      timeMs += 15_000 + (random() < 0.3 ? Math.floor(random() * 2000) : 0);
      if (random() < 0.01) timeMs += 1_000_000;
      const row = rows.series.length;
      rows.series.push(series);
      rows.timestampsMs.push(timeMs);
      if (i % 100 === 7) setStale(values, row);
      else if (i % 100 === 8) words[row] = 0x7ff8_0000_0000_0001n;
      else values[row] = someValue(random, i);
    }
    const [from, to] = [s * SAMPLES, (s + 1) * SAMPLES];
    const timestampsMs = Float64Array.from(rows.timestampsMs.slice(from, to));
    const floats = values.slice(from, to);
    expected.push(plain({ labels, timestampsMs, values: floats, histograms: [] }));
  }
  const nowMs = Math.max(...rows.timestampsMs);
  const outcome = store.append({ ...rows, values }, nowMs);
  assert.deepEqual(outcome, {
    samplesWritten: SERIES * SAMPLES,
    histogramsWritten: 0,
    exemplarsWritten: 0,
    refused: 0,
    refusals: [],
  });

  assert.deepEqual(read(store), expected);
  const [first] = store.select();
  assert.ok(first !== undefined && isStale(first.values, 7) && !isStale(first.values, 8));

  const startMs = NOW_MS + 1_000_000;
  const endMs = NOW_MS + 3_000_000;
  const inRange = expected.map(({ labels, timestampsMs, values }) => {
    const isIn = timestampsMs.map((t) => t >= startMs && t <= endMs);
    const keep = <T>(column: T[]) => column.filter((_, i) => isIn[i]);
    return { labels, timestampsMs: keep(timestampsMs), values: keep(values) };
  });
  assert.deepEqual(read(store, { startMs, endMs }), inRange);
  await store.close();
});

test('every kind of column is taken', async () => {
  const store = await openMemory();
  const series = store.seriesRef({ __name__: 'up' });
  const columns: Columns[] = [
    { series, timestampsMs: [NOW_MS, NOW_MS + 1], values: [0, 1] },
    { series: [series], timestampsMs: Float64Array.of(NOW_MS + 2), values: Float64Array.of(2) },
    {
      series: BigUint64Array.of(series, series),
      timestampsMs: BigInt64Array.of(BigInt(NOW_MS + 3), BigInt(NOW_MS + 4)),
      values: Float64Array.of(0, 3, 4).subarray(1),
    },
    { series, timestampsMs: [], values: [] },
  ];
  const written = columns.map((rows) => store.append(rows, NOW_MS).samplesWritten);
  assert.deepEqual(written, [2, 1, 2, 0]);
  const [answer] = [...store.select()];
  assert.deepEqual(answer?.values, Float64Array.of(0, 1, 2, 3, 4));
  assert.deepEqual(
    answer?.timestampsMs,
    Float64Array.from([0, 1, 2, 3, 4], (i) => NOW_MS + i),
  );
  await store.close();
});

test('times before the epoch are times too', async () => {
  const store = await openMemory();
  const series = store.seriesRef({ __name__: 'old' });
  const timestampsMs = [-4_294_967_297, -4_294_967_296, -1, 0, 1];
  store.append({ series, timestampsMs, values: [1, 2, 3, 4, 5] }, 0);
  const [answer] = [...store.select()];
  assert.deepEqual(answer?.timestampsMs, Float64Array.from(timestampsMs));
  await store.close();
});

test('a stale marker survives in typed arrays only', async () => {
  const store = await openMemory();
  const series = store.seriesRef({ __name__: 'up' });
  const values = new Float64Array(2);
  setStale(values, 1);
  store.append({ series, timestampsMs: [NOW_MS, NOW_MS + 1], values }, NOW_MS);
  const [answer] = [...store.select()];
  assert.deepEqual(bits(answer!.values)[1], STALE_NAN_BITS.toString(16));
  // Why `setStale` is there: a variable already holds another NaN, or may.
  assert.notDeepEqual(bits(Float64Array.from([NaN]))[0], STALE_NAN_BITS.toString(16));
  await store.close();
});

test('rows are refused one by one, with their reasons', async () => {
  const store = await openMemory({
    futureLimitMs: 60_000,
    outOfOrderWindowMs: 0,
    seriesMax: 1,
  });
  const series = store.seriesRef({ __name__: 'up', job: 'api' });
  store.append(
    { series, timestampsMs: [NOW_MS, NOW_MS + 7_200_000], values: [1, 2] },
    NOW_MS + 7_200_000,
  );

  const rows = [
    [NOW_MS + 7_200_000, 2, undefined],
    [NOW_MS + 7_200_000, 3, 'duplicate-sample'],
    [NOW_MS + 7_199_999, 3, 'out-of-order'],
    [NOW_MS + 1, 3, 'too-old'],
    [NOW_MS + 7_200_000 + 60_001, 3, 'too-far-in-future'],
    [NOW_MS + 7_200_000 + 60_000, 3, undefined],
  ] as const;
  const timestampsMs = rows.map(([timeMs]) => timeMs);
  const values = rows.map(([, value]) => value);
  const outcome = store.append({ series, timestampsMs, values }, NOW_MS + 7_200_000);

  assert.equal(outcome.samplesWritten, 2);
  assert.equal(outcome.refused, 4);
  const refused = rows.filter(([, , reason]) => reason !== undefined);
  assert.deepEqual(
    outcome.refusals.map(({ reason, timestampMs }) => [timestampMs, reason]),
    refused.map(([timeMs, , reason]) => [timeMs, reason]),
  );
  assert.match(outcome.refusals[0]!.detail, /\{__name__="up", job="api"\}.*duplicate sample/);
  assert.deepEqual([...store.select()][0]?.values, Float64Array.of(1, 2, 3));
  await store.close();
});

test('outOfOrder rows are accepted within the window, in any order', async () => {
  const store = await openMemory({ outOfOrderWindowMs: 60_000 });
  const series = store.seriesRef({ __name__: 'up' });
  store.append({ series, timestampsMs: [NOW_MS], values: [4] }, NOW_MS);
  const timestampsMs = [-60_000, -30_000, -60_001].map((age) => NOW_MS + age);
  const outcome = store.append({ series, timestampsMs, values: [1, 2, 0] }, NOW_MS);
  assert.deepEqual(outcome.refusals.map(({ reason }) => reason), ['too-old']);
  assert.deepEqual([...store.select()][0]?.values, Float64Array.of(1, 2, 4));
  await store.close();
});

/** A number in groups of seven bits, the lowest first. */
function uvarint(number: number): number[] {
  return number < 128 ? [number] : [(number % 128) + 128, ...uvarint(Math.floor(number / 128))];
}

test('a remote-write body is stored, and its bad rows are refused', async () => {
  const store = await openMemory();
  // value 1.5 at NOW_MS
  const time = uvarint(NOW_MS);
  const sample = message(0x12, [0x09, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0x10, ...time]);
  const body = [
    ...message(0x0a, label('__name__', 'up'), label('job', 'api'), sample),
    ...message(0x0a, label('job', 'nameless'), sample),
  ];
  const outcome = store.appendRemoteWrite('v1', Uint8Array.from(body), NOW_MS);
  assert.equal(outcome.samplesWritten, 1);
  assert.deepEqual(
    outcome.refusals.map(({ reason }) => reason),
    ['invalid-labels'],
  );
  const [series] = [...store.select()];
  assert.deepEqual(series?.labels, { __name__: 'up', job: 'api' });
  assert.deepEqual([series?.timestampsMs[0], series?.values[0]], [NOW_MS, 1.5]);
  await store.close();
});

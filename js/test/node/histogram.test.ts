/** Native histograms: chunks that upstream made, the store's own, and damage. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  ChunkError,
  decodeHistograms,
  histogramBuckets,
  type Histogram,
} from '../../src/index.js';
import { float, label, message, varint } from '../shared/protobuf.js';
import { bits, NOW_MS, openMemory, seeded } from './support.js';

/** Made by upstream's packages; `main.go` beside it says how, and what each line is. */
const FIXTURE = '../../../../engine/tests/fixtures/histograms/histograms.txt';

interface Chunk {
  kind: Histogram['kind'];
  data: Uint8Array;
  /** What upstream reads: a time and a histogram, as text. */
  wanted: string[];
}

function chunks(): Chunk[] {
  const all: Chunk[] = [];
  let kind: Histogram['kind'] = 'integer';
  for (const line of readFileSync(new URL(FIXTURE, import.meta.url), 'utf8').split('\n')) {
    const [word, ...rest] = line.split(' ');
    if (word === 'run') kind = rest[0] === 'float' ? 'float' : 'integer';
    const data = Uint8Array.from(Buffer.from(rest[0] ?? '', 'hex'));
    if (word === 'chunk') all.push({ kind, data, wanted: [] });
    if (word === 'r') all.at(-1)?.wanted.push(rest.join(' '));
  }
  return all;
}

/** A histogram as the fixture writes it, without its hint. */
function asText(histogram: Histogram): string {
  const { timestampMs, kind, isStale, schema, zeroThreshold, zeroCount, count, sum } = histogram;
  const hex = (value: number) => bits(Float64Array.of(value))[0]!;
  const total = (value: number) => (kind === 'integer' ? String(value) : hex(value));
  const list = (items: readonly unknown[]) => `[${items.join(',')}]`;
  const spans = (side: Histogram['positiveSpans']) =>
    list(side.map(({ offset, length }) => `${offset}:${length}`));
  const buckets = (counts: Float64Array) => {
    const steps = [...counts].map((one, i) => one - (counts[i - 1] ?? 0));
    return list(kind === 'integer' ? steps : [...counts].map(hex));
  };
  if (isStale) return `${timestampMs} stale`;
  const fields = [schema, hex(zeroThreshold), total(zeroCount), total(count), hex(sum)];
  const sides = [spans(histogram.positiveSpans), spans(histogram.negativeSpans)];
  const counts = [buckets(histogram.positiveBuckets), buckets(histogram.negativeBuckets)];
  const text = [...fields, ...sides, ...counts, list([...histogram.customBounds].map(hex))];
  return `${timestampMs} ${text.join(';')}`;
}

test('chunks read as upstream reads them', () => {
  let histograms = 0;
  for (const { kind, data, wanted } of chunks()) {
    const stale = ';7ff0000000000002;';
    const expected = wanted.map((line) => {
      const [time, text = ''] = line.split(' ');
      return text.includes(stale) ? `${time} stale` : `${time} ${text.replace(/^\d;/, '')}`;
    });
    const found = decodeHistograms(data, kind);
    assert.deepEqual(found.map(asText), expected);
    histograms += found.length;
  }
  assert.ok(histograms > 50, `${histograms} histograms`);
});

test('damage and truncation give an error or other histograms, never anything else', () => {
  const random = seeded(4);
  for (const { kind, data } of chunks()) {
    for (let i = 0; i < 200; i += 1) {
      const bad = data.slice(0, 2 + Math.floor(random() * (data.length - 1)));
      bad[Math.floor(random() * bad.length)]! ^= 1 << Math.floor(random() * 8);
      try {
        decodeHistograms(bad, kind);
      } catch (error) {
        assert.ok(error instanceof ChunkError, String(error));
      }
    }
    assert.throws(() => decodeHistograms(data.subarray(0, data.length - 2), kind), ChunkError);
  }
});

/** A body with one histogram: schema 0, buckets (1, 2] and (2, 4] and [-1, -0.5), and a zero. */
function body(timeMs: number, factor: number): number[] {
  const signed = (...values: number[]) =>
    values.flatMap((value) => varint(BigInt(value < 0 ? -2 * value - 1 : 2 * value)));
  const span = (offset: number, length: number) => [0x08, ...signed(offset), 0x10, length];
  const histogram = [
    [0x08, ...varint(BigInt(7 * factor)), 0x19, ...float(18.5), 0x20, 0],
    [0x29, ...float(0.25), 0x30, factor],
    [...message(0x42, span(0, 1)), ...message(0x4a, signed(factor))],
    [...message(0x5a, span(1, 2)), ...message(0x62, signed(2 * factor, factor))],
    [0x78, ...varint(BigInt(timeMs))],
  ];
  return message(0x22, ...histogram);
}

test('histograms come back from the store, beside floats', async () => {
  const store = await openMemory();
  const name = label('__name__', 'latency_seconds');
  const times = [NOW_MS, NOW_MS + 1000, NOW_MS + 2000];
  const rows = times.map((timeMs, i) => body(timeMs, i + 1)).flat();
  const sample = message(0x12, [0x09, ...float(5), 0x10, ...varint(BigInt(NOW_MS + 3000))]);
  const request = Uint8Array.from(message(0x0a, name, rows));
  const outcome = store.appendRemoteWrite('v1', request, NOW_MS);
  assert.deepEqual([outcome.histogramsWritten, outcome.refusals], [3, []]);
  store.appendRemoteWrite('v1', Uint8Array.from(message(0x0a, name, sample)), NOW_MS);

  const [series, ...others] = [...store.select({ startMs: NOW_MS + 1000 })];
  assert.deepEqual([others.length, [...series!.values]], [0, [5]]);
  assert.deepEqual(series!.histograms.map(({ timestampMs, count }) => [timestampMs, count]), [
    [NOW_MS + 1000, 14],
    [NOW_MS + 2000, 21],
  ]);
  assert.deepEqual(histogramBuckets(series!.histograms[0]!), [
    { lower: -1, upper: -0.5, count: 2 },
    { lower: -0.25, upper: 0.25, count: 2 },
    { lower: 1, upper: 2, count: 4 },
    { lower: 2, upper: 4, count: 6 },
  ]);
  await store.close();
});

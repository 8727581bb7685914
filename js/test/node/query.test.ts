/** Queries in PromQL: Prometheus' answers, over each storage, and what ends a query early. */

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { NodeFiles } from '../../src/node/index.js';
import * as tidepool from '../../src/promql/index.js';
import { PromqlWorkerStore } from '../../src/promql/worker/client.js';
import { serveWithQueries } from '../../src/promql/worker/serve.js';
import type { Channel } from '../../src/worker/client.js';
import type { Port } from '../../src/worker/serve.js';
import { float, label, message, varint } from '../shared/protobuf.js';
import { writeCases, wrongAnswers, type Cases, type Queried } from '../shared/queries.js';
import { NOW_MS } from './support.js';

const root = new URL('../../../../', import.meta.url);
const text = (path: string) => readFileSync(new URL(path, root), 'utf8');
const CASES = JSON.parse(text('tests/contract/queries/cases.json')) as Cases;

const openMemory = () => tidepool.open({ storage: new tidepool.MemoryStorage() });

const ends: (() => void)[] = [];
after(() => ends.forEach((end) => end()));

function openOverChannel(): Promise<PromqlWorkerStore> {
  const { port1, port2 } = new MessageChannel();
  serveWithQueries(port1 as unknown as Port);
  port1.start();
  port2.start();
  ends.push(() => port1.close());
  return PromqlWorkerStore.open(port2 as unknown as Channel, () => port1.close(), {
    storage: 'memory',
  });
}

async function assertAnswers(store: Queried): Promise<void> {
  assert.ok(CASES.queries.length >= 20);
  assert.deepEqual(await wrongAnswers(store, CASES), []);
}

/** The files that a module imports, and those that they import. */
function importsOf(url: URL, known = new Set<string>()): Set<string> {
  if (known.has(url.href)) return known;
  known.add(url.href);
  const source = readFileSync(url, 'utf8');
  // Workers, too: a page loads what its worker does.
  for (const [, path] of source.matchAll(/(?:from|import|new URL\()\s*'(\.[^']+\.js)'/g)) {
    importsOf(new URL(path!, url), known);
  }
  return known;
}

test('a program loads one component: with PromQL, or without', () => {
  const entry = (path: string) => {
    const files = importsOf(new URL(`../../src/${path}/index.js`, import.meta.url));
    const components = [...files].filter((file) => file.endsWith('/generated/engine.js'));
    return components.map((file) => file.slice(file.indexOf('/dist/src/')));
  };
  for (const path of ['.', 'worker', 'testing']) {
    assert.deepEqual(entry(path), ['/dist/src/generated/engine.js'], path);
  }
  for (const path of ['promql', 'promql/worker']) {
    assert.deepEqual(entry(path), ['/dist/src/promql/generated/engine.js'], path);
  }
});

test('a store in memory gives the answers of Prometheus', async () => {
  const store = await openMemory();
  await writeCases(store, CASES);
  await assertAnswers(store);
  await store.close();
});

test('a store in a directory gives them from the head, and from blocks after it was reopened', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'tidepool-'));
  ends.push(() => rmSync(dir, { recursive: true }));
  // Blocks of five minutes, so that most of the quarter of an hour is cut from the head.
  const options = { storage: new NodeFiles(dir), blockDurationMs: 300_000 };
  const store = await tidepool.open(options);
  await writeCases(store, CASES);
  await assertAnswers(store);
  assert.ok((await store.compact()).length > 0);
  await assertAnswers(store);
  await store.close();
  const again = await tidepool.open(options);
  await assertAnswers(again);
  await again.close();
});

test('a store in a worker gives them, too', async () => {
  const store = await openOverChannel();
  await writeCases(store, CASES);
  await assertAnswers(store);
  await store.close();
});

const lines = (name: string) =>
  text(`engine/promql/tests/cases/${name}.tsv`)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split('\t').map((field) => JSON.parse(field)));

test('expressions are printed and taken apart as by Prometheus', async () => {
  const store = await openMemory();
  const worker = await openOverChannel();
  for (const [expression, , , printed] of lines('print')) {
    assert.equal(store.formatQuery(expression), printed);
  }
  for (const [expression, tree] of lines('tree').slice(0, 50)) {
    assert.deepEqual(store.parseQuery(expression), tree);
    assert.deepEqual(await worker.parseQuery(expression), tree);
  }
  assert.equal(await worker.formatQuery('sum  (up)'), 'sum(up)');
  await assert.rejects(worker.formatQuery('sum('), tidepool.QueryParseError);
  assert.throws(() => store.parseQuery('sum('), tidepool.QueryParseError);
  await store.close();
  await worker.close();
});

test('the place of a mistake counts in characters of JavaScript', async () => {
  const store = await openMemory();
  const expression = '{a="🌊é"} and foo bar';
  const place = (error: unknown) => {
    assert.ok(error instanceof tidepool.QueryParseError);
    return expression.slice(error.start, error.end);
  };
  await assert.rejects(store.query(expression).result(), (error) => place(error) === 'bar');
  assert.throws(() => store.formatQuery(expression), (error) => place(error) === 'bar');
  await store.close();
});

/** Series `m` with the labels `s` from 0 on, each with its number as value each 15 s. */
function writeMany(store: tidepool.Store, count: number, steps: number): void {
  for (let s = 0; s < count; s += 1) {
    const timestampsMs = Array.from({ length: steps }, (_, step) => NOW_MS + 15_000 * step);
    const series = store.seriesRef({ __name__: 'm', s: String(s) });
    store.append({ series, timestampsMs, values: timestampsMs.map(() => s) });
  }
}

const RANGE = { startMs: NOW_MS, endMs: NOW_MS + 15_000 * 99, stepMs: 15_000 };

test('series come piece by piece, and a loop that is left ends the query', async () => {
  const store = await openMemory();
  writeMany(store, 1000, 100);
  const answer = store.query('m * 2', RANGE);
  assert.equal(answer.resultType, undefined);
  let seen = 0;
  for await (const { labels, timestampsMs, values } of answer) {
    assert.deepEqual([timestampsMs.length, values[99]], [100, 2 * Number(labels['s'])]);
    seen += 1;
  }
  assert.equal(seen, 1000);
  assert.equal(answer.resultType, 'matrix');
  // Prometheus counts 100,000: one sample for each step of each series.
  assert.equal(answer.stats.samples, 100_000);
  assert.equal(answer.stats.series, 1000);
  assert.ok(answer.stats.samplesPeak > 0 && answer.stats.memoryPeakBytes > 0);
  // Each of its 100 samples is read once.
  assert.equal(answer.stats.samplesRead, 100_000);
  assert.deepEqual(answer.stats.samplesPerStep, []);
  await assert.rejects(answer.result(), TypeError);
  const { stats } = await store.query('m', { ...RANGE, statsPerStep: true }).result();
  assert.deepEqual(stats.samplesPerStep, Array(100).fill(1000));

  const left = store.query('m', RANGE);
  for await (const { labels } of left) {
    assert.equal(labels['__name__'], 'm');
    break;
  }
  assert.ok(left.stats.samples < 100_000, 'it was not evaluated to its end');
  assert.equal(store.stats().openCursors, 0);
  assert.deepEqual(await left.next(), { done: true, value: undefined });
  await store.close();
});

test('a signal ends a query in the page and in a worker', async () => {
  const store = await openMemory();
  writeMany(store, 1000, 100);
  const reason = new Error('no longer wanted');
  const stopped = AbortSignal.abort(reason);
  await assert.rejects(store.query('m', { ...RANGE, signal: stopped }).result(), reason);

  const controller = new AbortController();
  let seen = 0;
  const read = async () => {
    for await (const _ of store.query('m', { ...RANGE, signal: controller.signal })) {
      seen += 1;
      if (seen === 5) controller.abort(reason);
    }
  };
  await assert.rejects(read(), reason);
  assert.equal(seen, 5);
  // From outside, while the answer is collected: other work has its turn between pieces.
  const other = new AbortController();
  setTimeout(() => other.abort(reason));
  const { signal } = other;
  const slow = 'sum_over_time(m[20m:15s]) + m';
  await assert.rejects(store.query(slow, { ...RANGE, signal }).result(), reason);
  assert.equal(store.stats().openCursors, 0);
  assert.equal((await store.query('count(m)', { timeMs: NOW_MS }).result()).series[0]!.values[0], 1000);
  await store.close();

  const worker = await openOverChannel();
  await writeCases(worker, CASES);
  const late = new AbortController();
  const answer = worker.query('http_requests_total', { timeMs: NOW_MS, signal: late.signal }).result();
  late.abort(reason);
  await assert.rejects(answer, reason);
  await assertAnswers(worker);
  assert.equal((await worker.stats()).openCursors, 0);
  await worker.close();
});

test('limits end a query, and nothing else', async () => {
  const store = await openMemory();
  writeMany(store, 1000, 100);
  const limited = (options: tidepool.QuerySettings) =>
    store.query('sum without (s) (sort(m))', { timeMs: NOW_MS, ...options }).result();
  for (const options of [{ samplesMax: 999 }, { memoryBytesMax: 10_000 }]) {
    await assert.rejects(limited(options), (error) => {
      assert.ok(error instanceof tidepool.LimitExceededError, String(error));
      assert.equal(error.max, Object.values(options)[0]);
      return true;
    });
  }
  // All numbers from 0 to 999.
  assert.equal((await limited({ samplesMax: 10_000 })).series[0]!.values[0], 499_500);
  const few = await store.query('m', { timeMs: NOW_MS, seriesMax: 3 }).result();
  assert.equal(few.series.length, 3);
  assert.equal(few.warnings.length, 1);
  const late = { timeMs: NOW_MS + 15_000 * 99 + 60_000 };
  assert.equal((await store.query('m', late).result()).series.length, 1000);
  assert.equal((await store.query('m', { ...late, lookbackMs: 59_000 }).result()).series.length, 0);
  await store.close();
});

test('syntax that Prometheus has behind flags is an option', async () => {
  const store = await openMemory();
  writeMany(store, 3, 100);
  const timeMs = NOW_MS + 600_000;
  const cases = [
    ['max_of(1, 2)', 'experimentalFunctions'],
    ['increase(m[1m] smoothed)', 'extendedRangeSelectors'],
    ['m + fill(0) m', 'binopFillModifiers'],
  ] as const;
  for (const [expression, option] of cases) {
    await assert.rejects(store.query(expression, { timeMs }).result(), tidepool.QueryParseError);
    await store.query(expression, { timeMs, [option]: true }).result();
  }
  await store.close();
});

test('arguments that cannot be right are refused, and the store goes on', async () => {
  const store = await openMemory();
  const refused: [string, tidepool.QueryOptions][] = [
    ['1', { timeMs: 1.5 }],
    ['1', { ...RANGE, stepMs: 0 }],
    ['1', { ...RANGE, endMs: RANGE.startMs - 1 }],
    ['1', { startMs: NOW_MS, endMs: NOW_MS } as unknown as tidepool.QueryOptions],
    ['m[5m]', RANGE],
    ['1', { lookbackMs: -1 }],
    [7 as unknown as string, {}],
  ];
  for (const [expression, options] of refused) {
    await assert.rejects(store.query(expression, options).result(), tidepool.TidepoolError);
  }
  assert.equal((await store.query('1').result()).resultType, 'scalar');
  const open = store.query('1');
  await store.close();
  await assert.rejects(open.result(), tidepool.NotOpenError);
});

test('native histograms: a sum adds buckets, and fractions are exact', async () => {
  const store = await openMemory();
  const zigzag = (n: number) => varint(BigInt(n < 0 ? -2 * n - 1 : 2 * n));
  // Schema 0; of ten observations two in (0.5, 1], three in (1, 2], five in (2, 4].
  const histogram = message(
    0x22,
    [0x08, 10],
    [0x19, ...float(22)],
    [0x20, ...zigzag(0)],
    [0x29, ...float(0.001)],
    [0x30, 0],
    message(0x5a, [0x08, ...zigzag(0)], [0x10, 3]),
    message(0x62, zigzag(2), zigzag(1), zigzag(2)),
    [0x78, ...varint(BigInt(NOW_MS))],
  );
  const series = (instance: string) =>
    message(0x0a, label('__name__', 'h'), label('instance', instance), histogram);
  const body = Uint8Array.from([...series('a'), ...series('b')]);
  assert.equal(store.appendRemoteWrite('v1', body).histogramsWritten, 2);
  const ask = async (expression: string) =>
    (await store.query(expression, { timeMs: NOW_MS }).result()).series[0]!;
  const { labels, histograms } = await ask('sum(h)');
  const [sum] = histograms;
  assert.deepEqual([labels, sum!.timestampMs, sum!.count, sum!.sum], [{}, NOW_MS, 20, 44]);
  assert.deepEqual(tidepool.histogramBuckets(sum!), [
    { lower: 0.5, upper: 1, count: 4 },
    { lower: 1, upper: 2, count: 6 },
    { lower: 2, upper: 4, count: 10 },
  ]);
  assert.deepEqual([...(await ask('histogram_fraction(1, 2, sum(h))')).values], [0.3]);
  assert.deepEqual([...(await ask('histogram_avg(h{instance="a"})')).values], [2.2]);
  await store.close();
});

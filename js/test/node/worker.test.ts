/** The worker's calls over a channel: the same answers and errors as without one. */

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import * as tidepool from '../../src/index.js';
import { WorkerStore, type Channel } from '../../src/worker/client.js';
import { fromPlainError, toPlainError } from '../../src/worker/protocol.js';
import { serve, type Port } from '../../src/worker/serve.js';
import { START_MS } from '../shared/series.js';
import { NOW_MS, plain } from './support.js';

const ends: (() => void)[] = [];
after(() => ends.forEach((end) => end()));

function openOverChannel(): Promise<WorkerStore> {
  const { port1, port2 } = new MessageChannel();
  serve(port1 as unknown as Port, tidepool.open);
  port1.start();
  port2.start();
  const end = () => port1.close();
  ends.push(end);
  return WorkerStore.open(port2 as unknown as Channel, end, { storage: 'memory' });
}

/** Writes so many series, step by step, without waiting in between. */
async function fill(store: WorkerStore, series: number, steps: number) {
  const labels = Array.from({ length: series }, (_, s) => ({ __name__: 'm', s: `${s}` }));
  const refs = await store.seriesRefs(labels);
  const sent: Promise<unknown>[] = [];
  for (let step = 0; step < steps; step += 1) {
    const timestampsMs = refs.map(() => START_MS + 15_000 * step);
    sent.push(store.append({ series: refs, timestampsMs, values: refs.map((_, s) => s + step) }));
  }
  await Promise.all(sent);
}

async function all<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of iterable) items.push(item);
  return items;
}

test('a store over a channel answers as one without', async () => {
  const store = await openOverChannel();
  await fill(store, 300, 900);
  const found = await all(store.select());
  assert.equal(found.length, 300);
  assert.equal(found.reduce((sum, { values }) => sum + values.length, 0), 270_000);
  for (const { labels, timestampsMs, values } of found) {
    const s = Number(labels['s']);
    assert.deepEqual(values, Float64Array.from({ length: 900 }, (_, step) => s + step));
    assert.deepEqual([timestampsMs[0], timestampsMs[899]], [START_MS, START_MS + 15_000 * 899]);
  }
  const raw = await all(store.selectChunks());
  assert.deepEqual(raw.map((one) => plain(tidepool.decodeSeries(one))), found.map(plain));
  assert.ok((await store.compact()).length > 0);
  assert.deepEqual((await all(store.select())).map(plain), found.map(plain));
  assert.deepEqual(await store.labelNames(), ['__name__', 's']);
  assert.equal((await store.labelValues('s', { limit: 7 })).length, 7);
  await store.delete({ matchers: [{ name: 's', op: '!=', value: '7' }] });
  assert.deepEqual((await all(store.select())).map(({ labels }) => labels['s']), ['7']);
  assert.deepEqual(await all(store.files()), []);
  await store.close();
  await assert.rejects(store.stats(), tidepool.NotOpenError);
});

test('a loop that is left early, or never begun, leaves no cursor', async () => {
  const store = await openOverChannel();
  await fill(store, 300, 500);
  for await (const { labels } of store.select()) {
    assert.equal(labels['__name__'], 'm');
    break;
  }
  store.select();
  assert.equal((await store.stats()).openCursors, 0);
  await store.close();
});

test('a part of a large array crosses without the rest', async () => {
  const { port1, port2 } = new MessageChannel();
  ends.push(() => port1.close());
  const crossed: number[] = [];
  port1.on('message', ({ id, call, args }) => {
    if (call === 'append') crossed.push(args[0].values.buffer.byteLength, args[0].values[1]);
    port1.postMessage({ id, value: undefined });
  });
  port2.start();
  const store = await WorkerStore.open(port2 as unknown as Channel, () => port1.close(), {});
  const large = Float64Array.from({ length: 100_000 }, (_, i) => i);
  await store.append({ series: 1n, timestampsMs: [1, 2], values: large.subarray(7, 9) }, 2);
  assert.deepEqual(crossed, [16, 8]);
  await store.close();
});

test('raw chunks cross one by one, each alone', async () => {
  const store = await tidepool.open({ storage: new tidepool.MemoryStorage() });
  const series = store.seriesRef({ __name__: 'm' });
  store.append({ series, timestampsMs: [1, 2], values: [1, 2] }, 2);
  const [{ chunks }] = [...store.selectChunks()] as [tidepool.SeriesChunks];
  assert.equal(chunks[0]!.data.buffer.byteLength, chunks[0]!.data.byteLength);
  await store.close();
});

test('errors keep their class and what they say', async () => {
  const store = await openOverChannel();
  await assert.rejects(store.append({ series: 7n, timestampsMs: [1], values: [1] }), (error) => {
    assert.ok(error instanceof tidepool.InvalidError);
    assert.match(error.message, /series 7 is unknown/);
    return true;
  });
  await assert.rejects(store.appendRemoteWrite('v1', Uint8Array.of(1)), tidepool.MalformedError);
  const matchers = [{ name: 'a', op: '=~', value: '(' }] as const;
  await assert.rejects(all(store.select({ matchers })), tidepool.InvalidError);
  await store.close();

  const damage = { where: 'here', offset: 7, reason: 'because' };
  const errors: tidepool.TidepoolError[] = [
    new tidepool.NotOpenError(),
    new tidepool.WrongRoleError('append'),
    new tidepool.InvalidError('not so'),
    new tidepool.MalformedError(damage),
    new tidepool.CorruptError(damage),
    new tidepool.ChunkError(1, 2, 'short'),
    new tidepool.LimitExceededError('samples', 9),
    new tidepool.LimitExceededError('samples', 9, 'more than 9 samples'),
    new tidepool.QueryParseError('1:1: parse error: no expression', 0, 3),
    new tidepool.QueryExecutionError('many-to-many'),
    new tidepool.ShortOfMemoryError(8),
    new tidepool.BusyError(),
    new tidepool.SeriesDroppedError(),
    new tidepool.HeadLostError('restarted'),
    new tidepool.HeadLostError('crashed', 'at the end'),
    new tidepool.StorageError('no-space', 'wal/1'),
    new tidepool.EngineStoppedError('panicked', 'cause'),
  ];
  for (const error of errors) {
    const crossed = fromPlainError(structuredClone(toPlainError(error)));
    assert.equal(crossed.constructor, error.constructor);
    assert.equal(crossed.message, error.message);
    assert.deepEqual({ ...crossed, cause: 0 }, { ...error, cause: 0 });
  }
});

test('calls between the slices of a compaction are answered', async () => {
  const store = await openOverChannel();
  await fill(store, 50, 2000);
  const order: string[] = [];
  const compacted = store.compact(NOW_MS).then(() => order.push('compact'));
  const counted = store.stats().then(() => order.push('stats'));
  await Promise.all([compacted, counted]);
  assert.deepEqual(order, ['stats', 'compact']);
  await store.close();
});


/** Errors have types, and an error does only the harm that it must. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as tidepool from '../../src/index.js';
import { NOW_MS, openMemory, read } from './support.js';

const { MemoryStorage, open } = tidepool;

test("the caller's mistakes", async () => {
  const store = await openMemory();
  const series = store.seriesRef({ __name__: 'up' });
  const row = { series, timestampsMs: [NOW_MS], values: [1] };
  const mistakes: [() => unknown, RegExp][] = [
    [() => store.append({ ...row, series: 77n }, NOW_MS), /series 77 is unknown/],
    [() => store.append({ ...row, values: [1, 2] }, NOW_MS), /columns differ in length/],
    [() => store.append({ ...row, timestampsMs: [0.5] }, NOW_MS), /row 0 is 0.5/],
    [() => store.append(row, NaN), /nowMs is NaN/],
    [() => store.seriesRef({ job: 'nameless' }), /name/],
    [() => store.seriesRef({ __name__: 1 as never }), /label __name__ is 1/],
    [() => store.append({ ...row, series: [1 as never] }, NOW_MS), /series of row 0/],
    [() => store.appendRemoteWrite('v3' as 'v1', new Uint8Array(), NOW_MS), /v3/],
    [() => store.appendRemoteWrite('v1', [] as never, NOW_MS), /Uint8Array/],
    [() => store.select({ matchers: [{ name: 'job', op: '=~', value: '(' }] }), /\(/],
    [() => store.select({ matchers: [{ name: 'job', op: '~' as '=', value: '' }] }), /none of/],
    [() => store.select({ startMs: Infinity }), /startMs/],
  ];
  for (const [mistake, message] of mistakes) {
    assert.throws(mistake, (error) => {
      assert.ok(error instanceof tidepool.InvalidError && error instanceof tidepool.TidepoolError);
      assert.equal(error.code, 'invalid');
      assert.equal(error.name, 'InvalidError');
      assert.match(error.message, message);
      return true;
    });
  }
  assert.deepEqual(read(store), []);
  await assert.rejects(openMemory({ blockDurationMs: 1 }), tidepool.InvalidError);
  await assert.rejects(openMemory({ seriesMax: -1 }), tidepool.InvalidError);
  await store.close();
});

test('a body that does not decode says where', async () => {
  const store = await openMemory();
  assert.throws(
    () => store.appendRemoteWrite('v1', Uint8Array.of(0x0a, 0x05, 0x0a), NOW_MS),
    (error) =>
      error instanceof tidepool.MalformedError && error.damage.where.includes('WriteRequest'),
  );
  await store.close();
});

test('a closed store says so', async () => {
  const store = await openMemory();
  for (const job of ['a', 'b']) {
    const series = store.seriesRef({ __name__: 'up', job });
    store.append({ series, timestampsMs: [NOW_MS], values: [1] }, NOW_MS);
  }
  const answer = store.select();
  await store.close();
  await store.close();
  assert.throws(() => answer.next(), tidepool.NotOpenError);
  assert.deepEqual(answer.next(), { done: true, value: undefined });
  assert.throws(() => store.stats(), tidepool.NotOpenError);
  assert.throws(() => store.select(), tidepool.NotOpenError);
  await assert.rejects(store.compact(), tidepool.NotOpenError);
});

test('a storage without space refuses a batch as a whole, and the store lives on', async () => {
  const storage = new MemoryStorage();
  const store = await open({ storage });
  const series = store.seriesRef({ __name__: 'up' });
  const append = storage.wal.append.bind(storage.wal);
  storage.wal.append = () => {
    throw new tidepool.StorageError('no-space', 'segment 3');
  };
  const rows = { series, timestampsMs: [NOW_MS], values: [1] };
  assert.throws(
    () => store.append(rows, NOW_MS),
    (error) => {
      assert.ok(error instanceof tidepool.StorageError);
      assert.deepEqual([error.kind, error.detail], ['no-space', 'segment 3']);
      return true;
    },
  );
  assert.deepEqual(read(store), []);
  storage.wal.append = append;
  assert.equal(store.append(rows, NOW_MS).samplesWritten, 1);
  await store.close();
});

/** A store with a block of two samples and a head of one, of which one file reads wrong. */
async function damagedStore(file: string): Promise<tidepool.Store> {
  const storage = new MemoryStorage();
  const store = await open({ storage, blockDurationMs: 1000 });
  const series = store.seriesRef({ __name__: 'up' });
  const timestampsMs = [NOW_MS, NOW_MS + 500, NOW_MS + 5000];
  store.append({ series, timestampsMs, values: [1, 2, 3] }, NOW_MS + 5000);
  await store.compact(NOW_MS);
  const blockOpen = storage.blocks.open.bind(storage.blocks);
  storage.blocks.open = (block, name) => {
    const opened = blockOpen(block, name);
    if (name !== file) return opened;
    const damaged = opened.readAt(0, opened.sizeBytes).slice();
    for (let at = 8; at < damaged.length; at += 1) damaged[at]! ^= 0x55;
    const readAt = (offset: number, length: number) => damaged.subarray(offset, offset + length);
    return { sizeBytes: opened.sizeBytes, readAt, close: () => opened.close() };
  };
  return store;
}

test('damage in a chunk says which file', async () => {
  const store = await damagedStore('chunks/000001');
  assert.throws(
    () => read(store),
    (error) => error instanceof tidepool.CorruptError && error.damage.where.includes('/chunks/'),
  );
  assert.equal(store.stats().openCursors, 0);
  await store.close();
});

test('a block that does not open is left out, and all else is served', async () => {
  const store = await damagedStore('meta.json');
  assert.deepEqual(read(store)[0]?.timestampsMs, [BigInt(NOW_MS + 5000)].map(Number));
  assert.match(store.compactSlice(NOW_MS).damaged[0]!, /meta\.json/);
  assert.deepEqual(store.compactSlice(NOW_MS).damaged, [], 'each is reported once');
  await store.close();
});

test("a storage's bug stops the engine, and another store can be opened", async () => {
  const storage = new MemoryStorage();
  const store = await open({ storage });
  const series = store.seriesRef({ __name__: 'up' });
  const append = storage.wal.append.bind(storage.wal);
  const bug = new TypeError('a bug');
  storage.wal.append = () => {
    throw bug;
  };
  const isStopped = (error: unknown) =>
    error instanceof tidepool.EngineStoppedError && error.cause === bug;
  const rows = { series, timestampsMs: [NOW_MS], values: [1] };
  assert.throws(() => store.append(rows, NOW_MS), isStopped);
  assert.throws(() => store.stats(), isStopped);
  storage.wal.append = append;
  await store.close();

  const next = await open({ storage });
  assert.equal(
    next.append({ ...rows, series: next.seriesRef({ __name__: 'up' }) }, NOW_MS).refused,
    0,
  );
  await next.close();
});

test('a storage that calls its own store gets an error before harm is done', async () => {
  const storage = new MemoryStorage();
  const store = await open({ storage });
  const series = store.seriesRef({ __name__: 'up' });
  const append = storage.wal.append.bind(storage.wal);
  storage.wal.append = (records) => {
    assert.throws(() => store.stats(), tidepool.InvalidError);
    return append(records);
  };
  assert.equal(store.append({ series, timestampsMs: [NOW_MS], values: [1] }, NOW_MS).refused, 0);
  assert.equal(store.stats().samplesAppended, 1);
  await store.close();
});

test("a panic's message is in the error", () => {
  const output =
    "\nthread '<unnamed>' (1) panicked at engine/src/head/mod.rs:9:5:\nindex out of bounds\n" +
    'note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n';
  const error = new tidepool.EngineStoppedError(
    output,
    new WebAssembly.RuntimeError('unreachable'),
  );
  assert.match(error.message, /^the engine stopped: thread .* index out of bounds$/);
  const silent = new tidepool.EngineStoppedError('', new WebAssembly.RuntimeError('unreachable'));
  assert.match(silent.message, /unreachable$/);
});

/** Blocks that compaction cuts, the log that is read back, and both together. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryStorage, open, StorageError, type Store } from '../../src/index.js';
import { NOW_MS, read, seeded } from './support.js';

const BLOCK_MS = 60_000;
const STEP_MS = 1000;
const SERIES = 25;

/** Writes some series over these steps of time, step by step: what lags half a block is too old. */
function write(store: Store, fromStep: number, toStep: number): void {
  const random = seeded(fromStep);
  const refs = Array.from({ length: SERIES }, (_, s) => {
    return store.seriesRef({ __name__: 'm', instance: `node-${s}` });
  });
  for (let step = fromStep; step < toStep; step += 1) {
    const timeMs = NOW_MS + STEP_MS * step;
    const timestampsMs = refs.map(() => timeMs);
    const values = refs.map(() => Math.floor(random() * 1000) / 10);
    const outcome = store.append({ series: refs, timestampsMs, values }, timeMs);
    assert.equal(outcome.refused, 0);
  }
}

test('blocks are cut, and the answer stays the same', async () => {
  const storage = new MemoryStorage();
  const options = { storage, blockDurationMs: BLOCK_MS, blockDurationMaxMs: BLOCK_MS };
  const store = await open(options);
  write(store, 0, 300);
  const before = read(store);
  const inHead = store.stats();
  assert.equal(inHead.blocks, 0);

  const blocks = await store.compact(NOW_MS);
  assert.ok(blocks.length >= 3, `${blocks.length} blocks`);
  assert.deepEqual(
    storage.blocks.list(),
    blocks.map(({ id }) => id),
  );
  assert.equal(blocks[0]?.samples, SERIES * (BLOCK_MS / STEP_MS));
  const meta = storage.blocks.open(blocks[0]!.id, 'meta.json');
  const { minTime, maxTime } = JSON.parse(Buffer.from(meta.readAt(0, meta.sizeBytes)).toString());
  assert.deepEqual([minTime, maxTime], [NOW_MS, NOW_MS + BLOCK_MS]);

  const after = store.stats();
  assert.equal(after.blocks, blocks.length);
  assert.ok(after.headMinTimeMs! > inHead.headMinTimeMs!);
  assert.deepEqual(read(store), before);
  const range = { startMs: NOW_MS + 30_000, endMs: NOW_MS + 250_000 };
  assert.deepEqual(read(store, range)[3]?.timestampsMs.length, 221);
  assert.deepEqual(await store.compact(NOW_MS), []);
  await store.close();
});

test('blocks are merged, and the oldest go', async () => {
  const storage = new MemoryStorage();
  const retentionMs = 100 * BLOCK_MS;
  const store = await open({ storage, blockDurationMs: BLOCK_MS, retentionMs });
  write(store, 0, 600);
  const before = read(store);
  const blocks = await store.compact(NOW_MS);
  assert.ok(blocks.some(({ level }) => level > 1));
  assert.ok(storage.blocks.list().length < blocks.length);
  assert.deepEqual(read(store), before);
  await store.close();

  const short = await open({ storage, blockDurationMs: BLOCK_MS, retentionMs: BLOCK_MS });
  const { deleted } = short.compactSlice(NOW_MS);
  assert.ok(deleted.length > 0 && deleted.every(({ reason }) => reason === 'age'));
  await short.close();
});

test('a second life on the same storage reads the log back', async () => {
  const storage = new MemoryStorage();
  const first = await open({ storage });
  write(first, 0, 200);
  const before = read(first);
  await first.close();

  const second = await open({ storage });
  assert.deepEqual(read(second), before);
  write(second, 200, 210);
  const more = read(second);
  assert.equal(more[0]?.timestampsMs.length, 210);
  await second.close();

  const third = await open({ storage });
  assert.deepEqual(read(third), more);
  await third.close();
});

test('log and blocks together are the whole', async () => {
  const storage = new MemoryStorage();
  const options = { storage, blockDurationMs: BLOCK_MS };
  let before: unknown;
  for (let life = 0; life < 4; life += 1) {
    const store = await open(options);
    if (before !== undefined) assert.deepEqual(read(store), before, `life ${life}`);
    write(store, 100 * life, 100 * (life + 1));
    if (life % 2 === 0) await store.compact(NOW_MS);
    before = read(store);
    await store.close();
  }
  const store = await open(options);
  assert.deepEqual(read(store), before);
  assert.equal(read(store)[0]?.timestampsMs.length, 400);
  await store.close();
});

test('a crash between slices of a compaction loses nothing', async () => {
  const storage = new MemoryStorage();
  const options = { storage, blockDurationMs: BLOCK_MS, blockDurationMaxMs: BLOCK_MS };
  const store = await open(options);
  write(store, 0, 300);
  const before = read(store);
  // The lives in between only read, so that the first can go on.
  for (let slices = 1; slices < 8; slices += 1) {
    store.compactSlice(NOW_MS);
    storage.release();
    const next = await open({ storage, blockDurationMs: BLOCK_MS });
    assert.deepEqual(read(next), before, `after ${slices} slices`);
    await next.close();
  }
});

test('one store at a time is open on a storage', async () => {
  const storage = new MemoryStorage();
  const store = await open({ storage });
  await assert.rejects(open({ storage }), StorageError);
  await store.close();
  await (await open({ storage })).close();
});

test('files that a deletion replaces stay readable where they are open', () => {
  const { blocks } = new MemoryStorage();
  const writer = blocks.create(NOW_MS);
  writer.writeAt('tombstones', 0, Uint8Array.of(1));
  writer.writeAt('meta.json', 0, Uint8Array.of(2));
  writer.commit();
  const read = (name: string) => {
    const file = blocks.open(writer.id, name);
    return () => [...file.readAt(0, file.sizeBytes)];
  };
  const before = read('tombstones');
  blocks.replaceTombstones(writer.id, Uint8Array.of(3, 4), Uint8Array.of(5));
  assert.deepEqual([before(), read('tombstones')(), read('meta.json')()], [[1], [3, 4], [5]]);
  const none = () => blocks.replaceTombstones('none', Uint8Array.of(), Uint8Array.of());
  assert.throws(none, StorageError);
});

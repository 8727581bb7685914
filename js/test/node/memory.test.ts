/** What every storage promises, here of the one in memory: `wit/storage.wit` in tests. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryStorage, StorageError } from '../../src/index.js';

const record = (...bytes: number[]) => Uint8Array.from(bytes);

/** All batches of a new life, as segment and records. */
function replay(storage: MemoryStorage, bytesMax: number) {
  storage.release();
  storage.acquire();
  const batches = [];
  for (;;) {
    const batch = storage.wal.replay(bytesMax);
    if (batch === undefined) return batches;
    batches.push([batch.segment, batch.records.map((bytes) => [...bytes])]);
  }
}

test('the log gives records back in order, batch by batch', () => {
  const storage = new MemoryStorage();
  const { wal } = storage;
  assert.equal(wal.append([record(1), record(2, 2)]), 0);
  assert.equal(wal.append([record(3, 3)]), 0);
  assert.equal(wal.cutSegment(), 0);
  assert.equal(wal.append([record(4)]), 1);

  assert.deepEqual(replay(storage, 4), [
    [0, [[1], [2, 2], [3, 3]]],
    [1, [[4]]],
  ]);
  // The bound counts what follows the first record.
  assert.deepEqual(replay(storage, 3)[0], [0, [[1], [2, 2]]]);
  assert.deepEqual(replay(storage, 0).length, 4);
});

test('a checkpoint replaces the segments before it, once it is committed', () => {
  const storage = new MemoryStorage();
  const { wal } = storage;
  wal.append([record(1)]);
  const last = wal.cutSegment();
  wal.append([record(2)]);

  const aborted = wal.beginCheckpoint(last);
  aborted.append([record(8)]);
  aborted.abort();
  assert.deepEqual(replay(storage, 9), [
    [0, [[1]]],
    [1, [[2]]],
  ]);

  const checkpoint = wal.beginCheckpoint(last);
  checkpoint.append([record(9)]);
  checkpoint.append([record(9, 9)]);
  checkpoint.commit();
  assert.equal(wal.append([record(3)]), 1);
  assert.deepEqual(replay(storage, 9), [
    [0, [[9], [9, 9]]],
    [1, [[2], [3]]],
  ]);
});

test('a block is seen once it is committed, and read while it is open', () => {
  const { blocks } = new MemoryStorage();
  const writer = blocks.create(1_700_000_000_000);
  writer.writeAt('index', 0, record(1, 2, 3, 4));
  writer.writeAt('index', 2, record(7, 8, 9));
  assert.deepEqual(blocks.list(), []);
  writer.commit();
  const later = blocks.create(1_700_000_000_000);
  later.commit();
  assert.deepEqual(blocks.list(), [writer.id, later.id]);
  assert.match(writer.id, /^01HF7YAT00[0-9A-HJKMNP-TV-Z]{16}$/);

  const file = blocks.open(writer.id, 'index');
  blocks.delete(writer.id);
  assert.deepEqual(blocks.list(), [later.id]);
  assert.equal(file.sizeBytes, 5);
  assert.deepEqual([...file.readAt(1, 4)], [2, 7, 8, 9]);
  assert.throws(() => file.readAt(1, 5), StorageError);
});

test('what is not there is an error of its kind', () => {
  const { blocks } = new MemoryStorage();
  const isMissing = (error: unknown) => error instanceof StorageError && error.kind === 'not-found';
  assert.throws(() => blocks.open('01', 'index'), isMissing);
  assert.throws(() => blocks.delete('01'), isMissing);
  assert.throws(() => blocks.create(0).writeAt('index', 1, record(1)), StorageError);
});

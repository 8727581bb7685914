/** What every storage promises: `wit/storage.wit` in tests, of each that runs here. */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { MemoryStorage, StorageError, type Storage } from '../../src/index.js';
import { NodeFiles } from '../../src/node/index.js';
import { DiskStorage, MemoryDisk } from '../shared/memory_disk.js';
import { OpfsDisk } from '../../src/opfs/disk.js';
import { memoryHandles } from '../shared/memory_handles.js';
import { brokenPromises } from '../shared/contract.js';

const record = (...bytes: number[]) => Uint8Array.from(bytes);

/** All batches of a new life, as segment and records. */
async function replay(storage: Storage, bytesMax: number) {
  await storage.release();
  await storage.acquire();
  const batches: [number, number[][]][] = [];
  for (;;) {
    const batch = storage.wal.replay(bytesMax);
    if (batch === undefined) return batches;
    batches.push([batch.segment, batch.records.map((bytes) => [...bytes])]);
  }
}

const NO_BLOCK = '01HF7YAT000000000000000000';

const dirs: string[] = [];
after(() => dirs.forEach((dir) => rmSync(dir, { recursive: true })));

const storages: Record<string, () => Promise<Storage> | Storage> = {
  'in memory': () => new MemoryStorage(),
  'in a directory': () => {
    const dir = mkdtempSync(join(tmpdir(), 'tidepool-'));
    dirs.push(dir);
    return new NodeFiles(dir);
  },
  'in a directory, synced at once': () => {
    const dir = mkdtempSync(join(tmpdir(), 'tidepool-'));
    dirs.push(dir);
    return new NodeFiles(dir, { sync: 'always' });
  },
  'on a disk in memory': () => new DiskStorage(new MemoryDisk()),
  // The checks make more files at once than a store ever does.
  "in a browser's handles": async () => new DiskStorage(await OpfsDisk.open(memoryHandles(), 64)),
};

/** The log as it is now: another one in each life. */
function logOf(storage: Storage): Storage['wal'] {
  return {
    append: (records) => storage.wal.append(records),
    replay: (bytesMax) => storage.wal.replay(bytesMax),
    cutSegment: () => storage.wal.cutSegment(),
    truncate: (last) => storage.wal.truncate(last),
    beginCheckpoint: (last) => storage.wal.beginCheckpoint(last),
  };
}

/** A storage that is held, and whose logs were read. */
async function opened(make: () => Promise<Storage> | Storage): Promise<Storage> {
  const storage = await make();
  await storage.acquire();
  while (storage.wal.replay(1000) !== undefined);
  while (storage.wbl.replay(1000) !== undefined);
  return storage;
}

async function compiled(file: string): Promise<WebAssembly.Module> {
  return WebAssembly.compile(await readFile(new URL(`../generated/${file}`, import.meta.url)));
}

for (const [where, make] of Object.entries(storages)) {
  test(`${where}: the engine finds no promise broken`, async () => {
    const storage = await make();
    assert.deepEqual(await brokenPromises('write', storage, compiled), []);
    assert.deepEqual(await brokenPromises('readBack', storage, compiled), []);
  });

  test(`${where}: the log gives records back in order, batch by batch`, async () => {
    const storage = await opened(make);
    const wal = logOf(storage);
    assert.equal(wal.append([record(1), record(2, 2)]), 0);
    assert.equal(wal.append([record(3, 3)]), 0);
    assert.equal(wal.cutSegment(), 0);
    assert.equal(wal.append([record(4)]), 1);

    assert.deepEqual(await replay(storage, 4), [
      [0, [[1], [2, 2], [3, 3]]],
      [1, [[4]]],
    ]);
    // The bound counts what follows the first record.
    assert.deepEqual((await replay(storage, 3))[0], [0, [[1], [2, 2]]]);
    assert.deepEqual((await replay(storage, 0)).length, 4);
  });

  test(`${where}: a checkpoint replaces the segments before it, once it is committed`, async () => {
    const storage = await opened(make);
    const wal = logOf(storage);
    wal.append([record(1)]);
    const last = wal.cutSegment();
    wal.append([record(2)]);

    const aborted = wal.beginCheckpoint(last);
    aborted.append([record(8)]);
    aborted.abort();
    assert.deepEqual(await replay(storage, 9), [
      [0, [[1]]],
      [1, [[2]]],
    ]);

    const checkpoint = wal.beginCheckpoint(last);
    checkpoint.append([record(9)]);
    checkpoint.append([record(9, 9)]);
    checkpoint.commit();
    const segment = wal.append([record(3)]);
    assert.ok(segment >= 1);
    const batches = await replay(storage, 9);
    assert.deepEqual(batches[0], [0, [[9], [9, 9]]]);
    assert.deepEqual(batches.slice(1).map(([, records]) => records).flat(), [[2], [3]]);
    assert.equal(batches.at(-1)?.[0], segment);
  });

  test(`${where}: a block is seen once it is committed, and read while it is open`, async () => {
    const storage = await opened(make);
    const { blocks } = storage;
    const writer = blocks.create(1_700_000_000_000);
    writer.writeAt('index', 0, record(1, 2, 3, 4));
    writer.writeAt('index', 2, record(7, 8, 9));
    assert.deepEqual(blocks.list(), []);
    writer.writeAt('meta.json', 0, record(1));
    writer.commit();
    const later = blocks.create(1_700_000_000_001);
    later.writeAt('meta.json', 0, record(1));
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

  test(`${where}: what is not there is an error of its kind`, async () => {
    const storage = await opened(make);
    const { blocks } = storage;
    const isMissing = (error: unknown) => error instanceof StorageError && error.kind === 'not-found';
    assert.throws(() => blocks.open(NO_BLOCK, 'index'), isMissing);
    assert.throws(() => blocks.delete(NO_BLOCK), isMissing);
    assert.throws(() => blocks.create(0).writeAt('index', 1, record(1)), StorageError);
  });
}

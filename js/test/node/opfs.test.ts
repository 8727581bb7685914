/** Paths in the browser's files: every change is whole or not there, and the room is bounded. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StorageError } from '../../src/index.js';
import { OpfsDisk } from '../../src/opfs/disk.js';
import { Names, type Change } from '../../src/opfs/names.js';
import { live } from '../shared/life.js';
import { DiskStorage } from '../shared/memory_disk.js';
import { memoryHandles } from '../shared/memory_handles.js';
import { seeded } from './support.js';

const text = (value: string) => new TextEncoder().encode(value);

/** All paths with their contents. */
function content(disk: OpfsDisk): Record<string, string> {
  const files = Array.from(disk.files(), ({ path, bytes }) => [path, new TextDecoder().decode(bytes)]);
  return Object.fromEntries(files) as Record<string, string>;
}

function write(disk: OpfsDisk, path: string, value: string): void {
  const file = disk.create(path);
  file.writeAt(0, text(value));
  file.close();
}

test('thousands of changes come back, in a bounded room', async () => {
  const random = seeded(5);
  const { files } = memoryHandles();
  let disk = await OpfsDisk.open(memoryHandles({}, files));
  const model = new Map<string, string>();
  const paths = ['a', 'b', 'dir/a', 'dir/b', 'other/a'];
  disk.createDir('dir');
  disk.createDir('other');
  for (let i = 0; i < 12_000; i += 1) {
    const [from, to] = [0, 1].map(() => paths[Math.floor(random() * paths.length)]!) as [string, string];
    const isRename = model.has(from) && from !== to && random() < 0.5;
    if (isRename) {
      disk.rename(from, to);
      model.set(to, model.get(from)!);
      model.delete(from);
    } else if (model.has(from) && random() < 0.5) {
      disk.removeFile(from);
      model.delete(from);
    } else {
      write(disk, from, `${i}`);
      model.set(from, `${i}`);
    }
    if (i % 1000 !== 0) continue;
    disk.close();
    disk = await OpfsDisk.open(memoryHandles({}, files));
    assert.deepEqual(content(disk), Object.fromEntries([...model].sort()), `after ${i}`);
  }
  const bytes = [...files.values()].reduce((sum, { length }) => sum + length, 0);
  assert.ok(bytes < 600_000 && files.size < 30, `${bytes} bytes in ${files.size} files`);
});

test('a directory is renamed as a whole, and what is open stays readable', async () => {
  const source = memoryHandles();
  const disk = await OpfsDisk.open(source);
  disk.createDir('block.tmp');
  disk.createDir('block.tmp/chunks');
  write(disk, 'block.tmp/chunks/000001', 'chunks');
  disk.rename('block.tmp', 'block');
  assert.deepEqual(content(disk), { 'block/chunks/000001': 'chunks' });
  const open = disk.open('block/chunks/000001');
  disk.removeFile('block/chunks/000001');
  assert.throws(() => disk.open('block/chunks/000001'), StorageError);
  for (let i = 0; i < 8; i += 1) write(disk, `${i}`, 'other');
  const read = new Uint8Array(6);
  open.readAt(0, read);
  assert.deepEqual(read, text('chunks'));
  open.close();
  assert.equal([...source.files.values()].filter((bytes) => bytes.length === 6).length, 0);
});

test('names that a crash tore are as before', async () => {
  const whole = memoryHandles();
  const disk = await OpfsDisk.open(whole);
  write(disk, 'first', '1');
  const before = whole.files.get('names.0')!.slice();
  disk.rename('first', 'second');
  const after = whole.files.get('names.0')!;
  const end = after.findLastIndex((byte) => byte !== 0) + 1;
  const start = before.findLastIndex((byte) => byte !== 0) + 1;
  assert.ok(end > start);
  for (let cut = start; cut < end; cut += 1) {
    const files = new Map([...whole.files].map(([name, bytes]) => [name, bytes.slice()]));
    files.get('names.0')!.fill(0, cut);
    const torn = await OpfsDisk.open(memoryHandles({}, files));
    assert.deepEqual(content(torn), { first: '1' }, `cut at ${cut}`);
    write(torn, 'third', '3');
    torn.close();
    const again = await OpfsDisk.open(memoryHandles({}, files));
    assert.deepEqual(content(again), { first: '1', third: '3' });
  }
});

test('what a power cut left behind a torn name never comes back', async () => {
  const whole = memoryHandles();
  const disk = await OpfsDisk.open(whole);
  write(disk, 'kept', '1');
  const length = () => whole.files.get('names.0')!.findLastIndex((byte) => byte !== 0) + 1;
  const start = length();
  write(disk, 'lost', '2');
  const middle = length();
  disk.rename('kept', 'moved');
  // A later page of the log is on the disk, an earlier one is not.
  const files = new Map([...whole.files].map(([name, bytes]) => [name, bytes.slice()]));
  files.get('names.0')!.fill(0, start, middle);
  const torn = await OpfsDisk.open(memoryHandles({}, files));
  assert.deepEqual(content(torn), { kept: '1' });
  // As long as the entry that was lost.
  write(torn, 'more', '3');
  torn.close();
  const again = await OpfsDisk.open(memoryHandles({}, files));
  assert.deepEqual(content(again), { kept: '1', more: '3' });
});

test('a power cut that keeps any pages leaves names as they were at some time', async () => {
  for (let seed = 0; seed < 60; seed += 1) {
    const random = seeded(seed);
    const below = (end: number) => Math.floor(random() * end);
    const source = pagedHandles(random);
    let synced = new Map<string, string>();
    let unsynced: Change[] = [];
    for (let life = 0; life < 8; life += 1) {
      const names = new Names([await source.open('names.0'), await source.open('names.1')]);
      names.begin();
      const found = JSON.stringify([...names.files].sort());
      assert.ok(states(synced, unsynced).includes(found), `seed ${seed}, life ${life}: ${found}`);
      // What was found is what counts from now on.
      [synced, unsynced] = [new Map(names.files), []];
      for (let i = below(60); i > 0; i -= 1) {
        // All entries are of the same length, so that one may stand where another was.
        const change: Change = ['create', `${below(10)}`.padEnd(60, 'x'), `${100 + below(900)}`];
        names.change(change);
        unsynced.push(change);
        if (random() > 0.02) continue;
        names.sync();
        [synced, unsynced] = [new Map(names.files), []];
      }
      source.cutPower();
    }
  }
});

/** What there is after each of some changes. */
function states(synced: Map<string, string>, changes: readonly Change[]): string[] {
  const files = new Map(synced);
  const now = () => JSON.stringify([...files].sort());
  const all = [now()];
  for (const [, path, slot] of changes) {
    files.set(path, slot!);
    all.push(now());
  }
  return all;
}

/** Handles whose pages reach the disk in any order until they are flushed. */
function pagedHandles(random: () => number) {
  const PAGE_BYTES = 512;
  const durable = new Map<string, Uint8Array>();
  const { files, open } = memoryHandles();
  const keep = (name: string) => durable.set(name, files.get(name)!.slice());
  return {
    async open(name: string) {
      const handle = await open(name);
      return {
        ...handle,
        flush: () => keep(name),
        // A change of length is on the disk at once.
        truncate(length: number) {
          handle.truncate(length);
          keep(name);
        },
      };
    },
    cutPower() {
      for (const [name, bytes] of files) {
        const old = durable.get(name)!;
        for (let at = 0; at < bytes.length; at += PAGE_BYTES) {
          const end = Math.min(at + PAGE_BYTES, bytes.length);
          if (random() < 0.5) bytes.set(old.subarray(at, end), at);
        }
        keep(name);
      }
    },
  };
}

test('a table that could not be rewritten does not count', async () => {
  const { files, open } = memoryHandles();
  let isFailing = false;
  const failing = async (name: string) => {
    const handle = await open(name);
    const flush = () => {
      if (isFailing) throw new DOMException('as the test wants it', 'InvalidStateError');
      handle.flush();
    };
    return { ...handle, flush };
  };
  const names = new Names([await failing('names.0'), await failing('names.1')]);
  names.begin();
  isFailing = true;
  // The table is written to the other file, but the disk does not say so.
  for (let i = 0; i < 9_000; i += 1) names.change(['create', 'a', `${i}`.padStart(5, '0')]);
  const again = new Names([await open('names.0'), await open('names.1')]);
  assert.deepEqual([...again.files], [['a', '08999']]);
  assert.ok([...files.values()].every(({ length }) => length > 0));
});

test('files without names are not thrown away', async () => {
  const source = memoryHandles();
  const disk = await OpfsDisk.open(source);
  write(disk, 'a', 'precious');
  disk.close();
  for (const name of ['names.0', 'names.1']) source.files.get(name)!.fill(7, 0, 20);
  await assert.rejects(OpfsDisk.open(source), (error) => {
    return error instanceof StorageError && error.message.includes('damaged');
  });
  const texts = [...source.files.values()].map((bytes) => new TextDecoder().decode(bytes));
  assert.ok(texts.includes('precious'));
});

test('a worker that dies at any call loses nothing acknowledged', async () => {
  let calls = 0;
  for (let failAt = 0; ; failAt += 1) {
    const { files } = memoryHandles();
    const budget = { callsLeft: Infinity };
    const acknowledged: string[] = [];
    const storage = new DiskStorage(await OpfsDisk.open(memoryHandles(budget, files)), { sync: 'off' });
    await storage.acquire();
    assert.equal(storage.wal.replay(1), undefined);
    budget.callsLeft = failAt;
    live(storage, acknowledged);
    calls = failAt - budget.callsLeft;
    const hasFailed = budget.callsLeft < 0;

    const disk = await OpfsDisk.open(memoryHandles({}, files));
    const next = new DiskStorage(disk, { sync: 'off', onDamage: () => assert.fail('damage') });
    await next.acquire();
    const found: string[] = [];
    for (let batch; (batch = next.wal.replay(1000)) !== undefined; ) {
      found.push(...batch.records.map((record) => new TextDecoder().decode(record)));
    }
    assert.deepEqual(found.slice(0, acknowledged.length), acknowledged, `call ${failAt}`);
    assert.ok(found.length - acknowledged.length <= 2, `call ${failAt}`);
    for (const block of next.blocks.list()) {
      assert.equal(next.blocks.open(block, 'chunks/000001').sizeBytes, 6);
    }
    if (!hasFailed) break;
  }
  assert.ok(calls > 30, `${calls} calls were made`);
});

test('where the quota ends, space can still be freed', async () => {
  const budget = { bytesMax: Infinity };
  const source = memoryHandles(budget);
  const disk = await OpfsDisk.open(source);
  write(disk, 'large', 'x'.repeat(10_000));
  budget.bytesMax = [...source.files.values()].reduce((sum, { length }) => sum + length, 0);
  const file = disk.create('more');
  assert.throws(
    () => file.writeAt(0, text('y')),
    (error) => error instanceof StorageError && error.kind === 'no-space',
  );
  disk.removeFile('large');
  file.writeAt(0, text('y'));
  file.close();
  assert.deepEqual(content(disk), { more: 'y' });
  disk.close();
  assert.deepEqual(content(await OpfsDisk.open(source)), { more: 'y' });
});

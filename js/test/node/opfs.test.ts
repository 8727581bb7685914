/** Paths in the browser's files: every change is whole or not there, and the room is bounded. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StorageError } from '../../src/index.js';
import { OpfsDisk } from '../../src/opfs/disk.js';
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

/** Logs and blocks in files: worked bytes, torn tails, damage, and a disk that fails anywhere. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32c } from '../../src/files/crc32c.js';
import { frame, PAGE_BYTES } from '../../src/files/page.js';
import type { DamagedPlace } from '../../src/files/reader.js';
import { snappyPack, snappyUnpack } from '../../src/files/snappy.js';
import { live } from '../shared/life.js';
import { DiskStorage, MemoryDisk } from '../shared/memory_disk.js';
import { seeded } from './support.js';

const random = seeded(11);
const noise = (length: number) => Uint8Array.from({ length }, () => Math.floor(random() * 256));
const text = (value: string) => new TextEncoder().encode(value);

/** Everything that a log's life before left. */
function readAll(storage: DiskStorage): Uint8Array[] {
  const records: Uint8Array[] = [];
  for (let batch; (batch = storage.wal.replay(1000)) !== undefined; ) records.push(...batch.records);
  while (storage.wbl.replay(1000) !== undefined);
  return records;
}

async function opened(disk: MemoryDisk, damaged: DamagedPlace[] = []) {
  const onDamage = (place: DamagedPlace) => void damaged.push(place);
  const storage = new DiskStorage(disk, { sync: 'off', onDamage });
  await storage.acquire();
  return { storage, records: readAll(storage) };
}

test('the documented bytes', () => {
  assert.equal(crc32c(text('123456789')), 0xe3069283);
  const framed = frame([text('123456789')], 0);
  const expected = [1, 0, 9, 0xe3, 0x06, 0x92, 0x83, ...text('123456789')];
  assert.deepEqual([...framed], expected);
  // google/snappy's format description: the literal, then copies of what was just written.
  assert.deepEqual(snappyUnpack(Uint8Array.of(5, 0, 97, 0x0e, 1, 0), 9), text('aaaaa'));
});

test('snappy gives back what it took, and survives anything', () => {
  const long = Uint8Array.from({ length: 300_000 }, (_, i) => (i / 7) & 255);
  const records = [new Uint8Array(0), text('x'), noise(70_000), long, text('ab'.repeat(99))];
  for (let i = 0; i < 300; i += 1) {
    const piece = noise(1 + Math.floor(random() * 20));
    const parts = Array.from({ length: 40 }, () => (random() < 0.6 ? piece : noise(5)));
    records.push(Uint8Array.from(parts.flatMap((part) => [...part])));
  }
  for (const record of records) {
    const packed = snappyPack(record);
    assert.deepEqual(snappyUnpack(packed, record.length), record);
    if (record.length > 0) assert.equal(snappyUnpack(packed, record.length - 1), undefined);
    for (let i = 0; i < 20; i += 1) {
      const bad = packed.slice(0, Math.ceil(random() * packed.length));
      bad[Math.floor(random() * bad.length)]! ^= 1 << Math.floor(random() * 8);
      snappyUnpack(bad, 1_000_000);
    }
  }
  assert.ok(snappyPack(long).length < long.length / 5);
});

test('records of every length come back across pages', async () => {
  const disk = new MemoryDisk();
  const lengths = [1, 100, 0, PAGE_BYTES, 3 * PAGE_BYTES + 5, 7];
  // Every place near a page's end is met.
  for (let left = 0; left < 20; left += 1) lengths.push(PAGE_BYTES - 7 - left, 3);
  const records = lengths.map((length) => noise(Math.max(1, length)));
  const first = await opened(disk);
  for (const record of records) first.storage.wal.append([record]);
  first.storage.wal.cutSegment();
  first.storage.wal.append(records);
  await first.storage.release();
  assert.equal(disk.files.get('wal/00000000')!.bytes.length % PAGE_BYTES, 0);
  const second = await opened(disk);
  assert.deepEqual(second.records, [...records, ...records]);
});

test('a torn tail is cut off, wherever it was torn', async () => {
  const whole = new MemoryDisk();
  const { storage } = await opened(whole);
  storage.wal.append([text('first')]);
  const end = whole.files.get('wal/00000000')!.bytes.length;
  storage.wal.append([text('second'), noise(PAGE_BYTES)]);
  const { bytes } = whole.files.get('wal/00000000')!;
  for (let length = end; length < bytes.length; length += length < end + 40 ? 1 : 997) {
    const disk = new MemoryDisk();
    disk.dirs.add('wal');
    disk.files.set('wal/00000000', { bytes: bytes.slice(0, length) });
    const damaged: DamagedPlace[] = [];
    const { records } = await opened(disk, damaged);
    assert.deepEqual(records[0], text('first'));
    assert.ok(records.length <= 2, `cut to ${length}`);
    assert.deepEqual(damaged, []);
    const again = await opened(disk, damaged);
    assert.deepEqual([again.records, damaged], [records, []]);
    // It is not the last one any more: what had stayed of the tail would now be damage.
    again.storage.wal.append([text('next')]);
    const third = await opened(disk, damaged);
    assert.deepEqual([third.records, damaged], [[...records, text('next')], []]);
    const { bytes: left } = disk.files.get('wal/00000000')!;
    assert.deepEqual(left, bytes.slice(0, left.length));
  }
});

test('damage in the middle costs what it hits, and is reported', async () => {
  const disk = new MemoryDisk();
  const { storage } = await opened(disk);
  for (let i = 0; i < 50; i += 1) storage.wal.append([text(`record ${i}`)]);
  const { bytes } = disk.files.get('wal/00000000')!;
  bytes[Math.floor(bytes.length / 2)]! ^= 4;
  const damaged: DamagedPlace[] = [];
  const { records } = await opened(disk, damaged);
  assert.equal(records.length, 49);
  assert.equal(damaged.length, 1);
  const [{ path, offset, bytes: lost }] = damaged as [DamagedPlace];
  assert.equal(path, 'wal/00000000');
  assert.ok(offset <= bytes.length / 2 && offset + lost > bytes.length / 2);
});

test('a damaged segment is quarantined once a checkpoint stands for it', async () => {
  const disk = new MemoryDisk();
  const { storage } = await opened(disk);
  storage.wal.append([text('first'), text('second')]);
  const { bytes } = disk.files.get('wal/00000000')!;
  bytes[9]! ^= 1;
  const { storage: next, records } = await opened(disk, []);
  assert.deepEqual(records, [text('second')]);
  const checkpoint = next.wal.beginCheckpoint(next.wal.cutSegment());
  checkpoint.append(records);
  checkpoint.commit();
  const aside = [...disk.files.keys()].filter((path) => path.startsWith('set-aside/'));
  assert.match(aside[0]!, /^set-aside\/000001-\d{8}T\d{6}Z-wal-00000000$/);
  assert.deepEqual(disk.files.get(aside[0]!)!.bytes, bytes);
  assert.equal(disk.files.has('wal/00000000'), false);
});

test('a checkpoint whose commit failed at any call can be begun again', async () => {
  for (let failAt = 0; ; failAt += 1) {
    const disk = new MemoryDisk();
    const { storage } = await opened(disk);
    storage.wal.append([text('replaced')]);
    const last = storage.wal.cutSegment();
    storage.wal.append([text('kept')]);
    const commit = () => {
      const checkpoint = storage.wal.beginCheckpoint(last);
      checkpoint.append([text('checkpoint')]);
      checkpoint.commit();
    };
    disk.callsLeft = failAt;
    let hasFailed = false;
    try {
      commit();
    } catch {
      hasFailed = true;
    }
    const isPast = disk.callsLeft >= 0;
    disk.callsLeft = Infinity;
    if (hasFailed) commit();
    const { records } = await opened(disk);
    assert.deepEqual(records, [text('checkpoint'), text('kept')], `call ${failAt}`);
    if (hasFailed) assert.equal(disk.files.has('wal/00000000'), false, `call ${failAt}`);
    if (isPast) break;
  }
});

test("Prometheus' cache of its head goes before the first write, with its marks", async () => {
  for (const isDamaged of [false, true]) {
    const disk = new MemoryDisk();
    const { storage } = await opened(disk);
    storage.wal.append([text('series')]);
    const mark = Uint8Array.of(5, 1, 2, 3);
    storage.wbl.append([text('late'), mark, text('later')]);
    storage.wbl.cutSegment();
    storage.wbl.append([text('latest')]);
    await storage.release();
    disk.dirs.add('chunks_head');
    disk.files.set('chunks_head/000001', { bytes: text('chunks') });
    if (isDamaged) disk.files.get('wal/00000000')!.bytes[8]! ^= 1;

    const { storage: next } = await opened(disk, []);
    assert.ok(disk.dirs.has('chunks_head'), 'who only reads changes nothing');
    next.wal.append([text('more')]);
    assert.equal(disk.dirs.has('chunks_head'), false);
    const aside = [...disk.files.keys()].filter((path) => path.startsWith('set-aside/'));
    assert.equal(aside.length, isDamaged ? 1 : 0);
    await next.release();

    const last = new DiskStorage(disk, { sync: 'off', onDamage() {} });
    await last.acquire();
    const outOfOrder: Uint8Array[] = [];
    for (let batch; (batch = last.wbl.replay(1000)) !== undefined; ) outOfOrder.push(...batch.records);
    assert.deepEqual(outOfOrder, [text('late'), text('later'), text('latest')]);
  }
});

test('records that are packed in a way that cannot be read stop the opening', async () => {
  const disk = new MemoryDisk();
  disk.dirs.add('wal');
  const framed = frame([text('1')], 0);
  framed[0] = 1 | 16;
  disk.files.set('wal/00000000', { bytes: framed });
  await assert.rejects(opened(disk), /Zstandard.*Node 22/);
});

for (const isDead of [false, true]) {
  const what = isDead ? 'dies at any call' : 'fails once, at any call, and keeps no half batch';
  test(`nothing acknowledged is lost when a disk ${what}`, async () => {
    let calls = 0;
    for (let failAt = 0; ; failAt += 1) {
      const disk = new MemoryDisk();
      const { storage } = await opened(disk);
      const acknowledged: string[] = [];
      disk.isDead = isDead;
      disk.callsLeft = failAt;
      live(storage, acknowledged);
      calls = failAt - disk.callsLeft;
      const hasFailed = disk.callsLeft < 0;
      disk.callsLeft = Infinity;

      const next = await opened(disk);
      const found = next.records.map((record) => new TextDecoder().decode(record));
      if (isDead) {
        // Of the batch during which it died any number of records may be whole.
        assert.deepEqual(found.slice(0, acknowledged.length), acknowledged, `call ${failAt}`);
        assert.ok(found.length - acknowledged.length <= 2, `call ${failAt}`);
      } else {
        assert.deepEqual(found, acknowledged, `call ${failAt}`);
      }
      for (const block of next.storage.blocks.list()) {
        assert.equal(next.storage.blocks.open(block, 'chunks/000001').sizeBytes, 6);
      }
      const leftovers = [...disk.files.keys(), ...disk.dirs].filter((path) => path.includes('.tmp'));
      assert.deepEqual(leftovers, [], `call ${failAt}`);
      if (!hasFailed) break;
    }
    assert.ok(calls > 30, `${calls} calls were made`);
  });
}

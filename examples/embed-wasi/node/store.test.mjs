// Appends, compacts and reads back, in a real directory.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { open } from './store.mjs';

const NOW_MS = 1_700_000_000_000n;
const ALL = { startMs: -(2n ** 63n), endMs: 2n ** 63n - 1n };
const U64_MAX = 2n ** 64n - 1n;

test('a store in a directory', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tidepool-'));
  const { store, directory: files, packed } = await open(directory);
  const seriesRef = store.seriesRef([
    { name: '__name__', value: 'up' },
    { name: 'job', value: 'api' },
  ]);
  const rows = {
    series: new BigUint64Array([seriesRef, seriesRef]),
    timestampsMs: new BigInt64Array([NOW_MS, NOW_MS + 15_000n]),
    values: new Float64Array([1.5, -0]),
  };
  assert.equal(store.append(rows, NOW_MS + 15_000n).samplesWritten, 2n);
  files.sync();
  assert.ok(existsSync(join(directory, 'wal', '00000000')));

  const held = () => {
    const answer = packed.select([{ name: 'job', op: 'equal', value: 'api' }], ALL);
    const { series, values } = answer.next(1 << 20);
    assert.deepEqual(JSON.parse(answer.next(1 << 20).series), []);
    // An answer that is open keeps the head from truncating.
    answer[Symbol.dispose]();
    const bytes = Uint8Array.from(Buffer.from(values, 'base64'));
    return [JSON.parse(series), [...new Float64Array(bytes.buffer)]];
  };
  const expected = [
    [{ labels: { __name__: 'up', job: 'api' }, samples: 2, histograms: 0 }],
    [1.5, -0],
  ];
  assert.deepEqual(held(), expected);

  store.cutAll();
  const room = { freeBytes: U64_MAX, otherBytes: files.otherBytes(), memoryBytes: U64_MAX };
  const made = [];
  for (let done = false; !done; ) {
    const progress = store.compact(NOW_MS, room);
    if (progress.block !== undefined) made.push(progress.block.id);
    ({ done } = progress);
  }
  assert.equal(made.length, 1);
  assert.deepEqual(readdirSync(join(directory, made[0])).sort(), [
    'chunks',
    'index',
    'meta.json',
    'tombstones',
  ]);
  assert.deepEqual(held(), expected);
  store.close();
  rmSync(directory, { recursive: true });
});

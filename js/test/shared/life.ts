/** What a store may do to its storage in one life, for disks that fail at any call of it. */

import assert from 'node:assert/strict';
import { StorageError, type Storage } from '../../src/index.js';

const text = (value: string) => new TextEncoder().encode(value);

/** Appends, a checkpoint and a block; what the log acknowledged is added to a list. */
export function live(storage: Storage, acknowledged: string[]): void {
  const attempt = (call: () => void) => {
    try {
      call();
      return true;
    } catch (error) {
      assert.ok(error instanceof StorageError, String(error));
      return false;
    }
  };
  for (let i = 0; i < 12; i += 1) {
    const batch = [`${i} a`, `${i} b`.repeat(1 + i * 700)];
    if (attempt(() => storage.wal.append(batch.map(text)))) acknowledged.push(...batch);
    if (i === 5) {
      attempt(() => {
        const last = storage.wal.cutSegment();
        const checkpoint = storage.wal.beginCheckpoint(last);
        checkpoint.append(acknowledged.map(text));
        checkpoint.commit();
      });
    }
    if (i === 8) {
      attempt(() => {
        const writer = storage.blocks.create(1);
        writer.writeAt('chunks/000001', 0, text('chunks'));
        writer.writeAt('meta.json', 0, text('meta'));
        writer.commit();
      });
    }
  }
}

/** Records that are read back, in pieces of a bounded size. */

import type { WalBatch } from './storage.js';

/** Batches of one segment; each asks again how many bytes may follow its first record. */
export function* batches(
  segment: number,
  records: Iterable<Uint8Array>,
  bytesMax: () => number,
): Generator<WalBatch, undefined> {
  let batch: Uint8Array[] = [];
  let bytes = 0;
  for (const record of records) {
    if (batch.length > 0 && bytes + record.length > bytesMax()) {
      yield { segment, records: batch };
      batch = [];
      bytes = 0;
    }
    // The bound is on what follows the first record.
    bytes += batch.length === 0 ? 0 : record.length;
    batch.push(record);
  }
  if (batch.length > 0) yield { segment, records: batch };
  return undefined;
}

/** Logs whose records are packed with Zstandard, by its own program. */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32c } from '../../../src/files/crc32c';
import { SegmentReader } from '../../../src/files/reader';

const PAGE_BYTES = 32 * 1024;
const HEADER_BYTES = 7;
/** Types of fragments, and the bit of Zstandard. Source: Prometheus' `tsdb/wlog/wlog.go`. */
const [FULL, FIRST, MIDDLE, LAST, ZSTD] = [1, 2, 3, 4, 1 << 4];

/** Packs the segments of a log anew; returns how many records there are. */
export function repackLog(dir: string): number {
  let count = 0;
  for (const name of readdirSync(dir).filter((name) => /^\d+$/.test(name))) {
    const path = join(dir, name);
    const records = recordsOf(readFileSync(path), path);
    count += records.length;
    writeFileSync(path, Buffer.concat(framed(records.map((record) => execFileSync('zstd', ['-q', '-c'], { input: record, maxBuffer: 1 << 28 })))));
  }
  return count;
}

function recordsOf(bytes: Buffer, path: string): Uint8Array[] {
  const none = (): void => {};
  const file = {
    sizeBytes: () => bytes.length,
    readAt: (offset: number, out: Uint8Array) => out.set(bytes.subarray(offset, offset + out.length)),
    ...{ writeAt: none, setSize: none, sync: none, close: none },
  };
  return [...new SegmentReader(file, path, undefined).records()];
}

function framed(records: readonly Uint8Array[]): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let at = 0;
  const put = (part: Uint8Array): void => {
    parts.push(part);
    at += part.length;
  };
  for (const record of records) {
    for (let from = 0; from < record.length; ) {
      const left = PAGE_BYTES - (at % PAGE_BYTES);
      if (left <= HEADER_BYTES) {
        put(new Uint8Array(left));
        continue;
      }
      const data = record.subarray(from, from + left - HEADER_BYTES);
      const [isFirst, isLast] = [from === 0, from + data.length === record.length];
      const header = new DataView(new ArrayBuffer(HEADER_BYTES));
      header.setUint8(0, (isFirst ? (isLast ? FULL : FIRST) : isLast ? LAST : MIDDLE)! | ZSTD!);
      header.setUint16(1, data.length);
      header.setUint32(3, crc32c(data));
      put(new Uint8Array(header.buffer));
      put(data);
      from += data.length;
    }
  }
  return parts;
}

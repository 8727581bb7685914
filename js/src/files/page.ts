/**
 * Framing: records to fragments in pages, and back, as `tsdb/docs/format/wal.md` in Prometheus'
 * repository gives it.
 *
 * ```text
 * ┌────────┬─────────┬───────────┬────────┐
 * │ head 1 │ len 2   │ CRC-32C 4 │ data   │   × n in pages of 32 KiB, big endian
 * └────────┴─────────┴───────────┴────────┘
 * head:  7 6 5        4      3        2 1 0
 *        reserved 0   zstd   snappy   0 padding · 1 full · 2 first · 3 middle · 4 last
 * ```
 *
 * No fragment crosses a page; fewer than 7 bytes left in a page are zeros; a zero head means that
 * zeros fill the rest of the page; a file may end anywhere.
 */

import { crc32c } from './crc32c.js';
import { snappyPack } from './snappy.js';

/** Bytes of a page. */
export const PAGE_BYTES = 32 * 1024;
/** Bytes before a fragment's data. */
export const HEADER_BYTES = 7;
/** The longest record that is written, or made by unpacking. */
export const RECORD_BYTES_MAX = 128 * 1024 * 1024;

const SNAPPY = 0b1000;
const ZSTD = 0b1_0000;

/** How a record's bytes are packed. */
export type Packing = 'none' | 'snappy' | 'zstd';

const PACKINGS = new Map<number, Packing>([
  [0, 'none'],
  [SNAPPY, 'snappy'],
  [ZSTD, 'zstd'],
]);

/** What lies at some place of a page. */
export type Parsed =
  | { readonly is: 'padding' }
  | { readonly is: 'damaged'; readonly cause: DamageCause }
  | Fragment;

/** A fragment whose checksum is right. */
export interface Fragment {
  readonly is: 'fragment';
  readonly kind: number;
  /** Unknown where the head says something that this version does not know. */
  readonly packing: Packing | undefined;
  readonly data: Uint8Array;
  /** Where in the page the next fragment begins. */
  readonly end: number;
}

/** What is wrong with some bytes of a segment; for people. */
export type DamageCause =
  | 'an unknown kind of fragment'
  | 'a fragment longer than its page'
  | 'a fragment that is cut off by the end of the file'
  | 'a wrong checksum'
  | 'padding that is not zero'
  | 'a record without its beginning'
  | 'a record without its end'
  | 'a read error'
  | 'a record that does not decompress';

/** Fragment kinds. */
export const FULL = 1;
export const FIRST = 2;
export const MIDDLE = 3;
export const LAST = 4;

/** Frames records, to be written where the file is `sizeBytes` long. */
export function frame(records: readonly Uint8Array[], sizeBytes: number): Uint8Array {
  const packed = records.map(pack);
  const bytes = packed.reduce((sum, { data }) => sum + data.length + HEADER_BYTES, 0);
  const fragments = Math.ceil(bytes / (PAGE_BYTES - 2 * HEADER_BYTES)) + 1;
  const framer = new Framer(new Uint8Array(bytes + 2 * HEADER_BYTES * fragments), sizeBytes);
  for (const { data, flag } of packed) framer.put(data, flag);
  return framer.framed();
}

/** Packs where that gains something. */
function pack(record: Uint8Array): { data: Uint8Array; flag: number } {
  const packed = snappyPack(record);
  const isShorter = packed.length < record.length;
  return isShorter ? { data: packed, flag: SNAPPY } : { data: record, flag: 0 };
}

class Framer {
  readonly #out: Uint8Array;
  readonly #view: DataView;
  readonly #base: number;
  #at = 0;

  constructor(out: Uint8Array, sizeBytes: number) {
    this.#out = out;
    this.#view = new DataView(out.buffer);
    this.#base = sizeBytes % PAGE_BYTES;
  }

  framed(): Uint8Array {
    return this.#out.subarray(0, this.#at);
  }

  put(packed: Uint8Array, flag: number): void {
    let from = 0;
    do {
      const room = PAGE_BYTES - ((this.#base + this.#at) % PAGE_BYTES);
      const end = Math.min(packed.length, from + room - HEADER_BYTES);
      const isLast = end === packed.length;
      const kind = from === 0 && !this.#isBegun ? (isLast ? FULL : FIRST) : isLast ? LAST : MIDDLE;
      this.#isBegun = !isLast;
      const part = packed.subarray(from, end);
      this.#out[this.#at] = kind | flag;
      this.#view.setUint16(this.#at + 1, part.length);
      this.#view.setUint32(this.#at + 3, crc32c(part));
      this.#out.set(part, this.#at + HEADER_BYTES);
      this.#at += HEADER_BYTES + part.length;
      const left = room - HEADER_BYTES - part.length;
      if (left < HEADER_BYTES) this.#at += left;
      from = end;
    } while (this.#isBegun);
  }

  /** Whether a first fragment was put, which may be empty, and no last one. */
  #isBegun = false;
}

/** Reads what lies at `at` in a page, which is shorter than others only where a file ends. */
export function parse(page: Uint8Array, at: number): Parsed {
  const head = page[at] ?? 0;
  const kind = head & 7;
  if (kind === 0) {
    for (let i = at; i < page.length; i += 1) {
      if (page[i] !== 0) return damaged('padding that is not zero');
    }
    return { is: 'padding' };
  }
  if (kind > LAST) return damaged('an unknown kind of fragment');
  if (at + HEADER_BYTES > page.length) return beyond(at + HEADER_BYTES);
  const view = new DataView(page.buffer, page.byteOffset + at, HEADER_BYTES);
  const end = at + HEADER_BYTES + view.getUint16(1);
  if (end > page.length) return beyond(end);
  const data = page.subarray(at + HEADER_BYTES, end);
  if (crc32c(data) !== view.getUint32(3)) return damaged('a wrong checksum');
  return { is: 'fragment', kind, packing: PACKINGS.get(head & ~7), data, end };
}

function damaged(cause: DamageCause): Parsed {
  return { is: 'damaged', cause };
}

function beyond(end: number): Parsed {
  const isInPage = end <= PAGE_BYTES;
  return damaged(
    isInPage
      ? 'a fragment that is cut off by the end of the file'
      : 'a fragment longer than its page',
  );
}

/** Bytes whose checksums are tried, at most, to find a fragment behind damage in one page. */
const SEARCH_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Where the next fragment begins behind damage: the first one from `from` on that has data and
 * whose checksum is right. Seven bytes of any record may look like an empty one.
 */
export function findFragment(page: Uint8Array, from: number): number | undefined {
  let bytesLeft = SEARCH_BYTES_MAX;
  for (let at = from; at + HEADER_BYTES < page.length; at += 1) {
    const head = page[at]!;
    const isHead = (head & 7) >= FULL && (head & 7) <= LAST && (head & 0b1110_0000) === 0;
    const length = (page[at + 1]! << 8) | page[at + 2]!;
    if (!isHead || length === 0 || at + HEADER_BYTES + length > page.length) continue;
    bytesLeft -= length;
    if (bytesLeft < 0) return undefined;
    if (parse(page, at).is === 'fragment') return at;
  }
  return undefined;
}

/**
 * Reading one segment back, around whatever is damaged in it: after damage, reading goes on at the
 * next fragment whose checksum is right, and records begin again at the next full or first one.
 *
 * A damaged place that reaches the end of the file is a *torn tail* if it looks like what a crash
 * leaves of a write: the file ends inside of a record, or in zeros that were never written.
 */

import { StorageError } from '../errors.js';
import type { DiskFile } from './disk.js';
import * as page from './page.js';
import { snappyUnpack } from './snappy.js';

/** Bytes fetched by one read: whole pages. */
const WINDOW_BYTES = 16 * page.PAGE_BYTES;

/** What a disk writes at least at a time: no crash tears anything smaller. */
const SECTOR_BYTES = 512;

/** Bytes of a segment that were passed over. */
export interface DamagedPlace {
  /** The segment's path in the data directory. */
  readonly path: string;
  readonly offset: number;
  readonly bytes: number;
  readonly cause: page.DamageCause;
}

/** Unpacks a frame of Zstandard; `undefined` if the bytes are none. */
export type Unzstd = (packed: Uint8Array, bytesMax: number) => Uint8Array | undefined;

/** A damaged place whose end was not found yet. */
interface OpenDamage {
  readonly offset: number;
  readonly cause: page.DamageCause;
  /** Whether it cannot come from a crash: unreadable, or with fragments of an unknown record. */
  isNoTear: boolean;
}

/** Reads the records of one segment. */
export class SegmentReader {
  readonly #file: DiskFile;
  readonly #path: string;
  readonly #sizeBytes: number;
  readonly #unzstd: Unzstd | undefined;
  #window: Uint8Array = new Uint8Array(0);
  #windowStart = 0;
  #at = 0;
  /** Fragments of a record whose last one has not come yet, and where it begins. */
  #parts: Uint8Array[] = [];
  #partsBytes = 0;
  #begun: number | undefined;
  #damage: OpenDamage | undefined;
  #wholeEnd = 0;
  /** Damaged places whose ends were found. */
  readonly damaged: DamagedPlace[] = [];

  constructor(file: DiskFile, path: string, unzstd: Unzstd | undefined) {
    this.#file = file;
    this.#path = path;
    this.#sizeBytes = file.sizeBytes();
    this.#unzstd = unzstd;
  }

  /** All records to the end of the segment. */
  *records(): Generator<Uint8Array, void> {
    for (let record = this.#next(); record !== undefined; record = this.#next()) yield record;
  }

  #next(): Uint8Array | undefined {
    while (this.#at < this.#sizeBytes) {
      const pageStart = this.#at - (this.#at % page.PAGE_BYTES);
      const bytes = this.#page(pageStart);
      const parsed: page.Parsed =
        bytes === undefined
          ? { is: 'damaged', cause: 'a read error' }
          : page.parse(bytes, this.#at - pageStart);
      if (parsed.is === 'padding') {
        this.#at = pageStart + page.PAGE_BYTES;
      } else if (parsed.is === 'damaged') {
        const found = bytes && page.findFragment(bytes, this.#at - pageStart + 1);
        this.#lose(this.#at, parsed.cause);
        this.#at = pageStart + (found ?? page.PAGE_BYTES);
      } else {
        const start = this.#at;
        this.#at = pageStart + parsed.end;
        const record = this.#take(parsed, start);
        if (record !== undefined) return record;
      }
    }
    return undefined;
  }

  /**
   * To be called at the end: where the last whole record ends if a torn tail follows it. All other
   * damage is in {@link damaged} then.
   */
  tornAt(): number | undefined {
    if (this.#begun !== undefined) this.#lose(this.#begun, 'a record without its end');
    if (this.#damage === undefined) return undefined;
    if (this.#isTorn(this.#damage)) return this.#wholeEnd;
    this.endDamage(this.#sizeBytes);
    return undefined;
  }

  /** Counts an open damaged place as ending here. */
  endDamage(end: number): void {
    if (this.#damage === undefined) return;
    const { offset, cause } = this.#damage;
    this.#damage = undefined;
    this.damaged.push({ path: this.#path, offset, bytes: end - offset, cause });
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  #isTorn({ offset, cause, isNoTear }: OpenDamage): boolean {
    if (isNoTear) return false;
    if (cause === 'a fragment that is cut off by the end of the file') return true;
    if (cause === 'a record without its end') return true;
    // The length was written, but not what comes last.
    const last = Math.floor((this.#sizeBytes - 1) / SECTOR_BYTES) * SECTOR_BYTES;
    const unwritten = this.#window.subarray(last - this.#windowStart);
    return last > offset && last >= this.#windowStart && unwritten.every((byte) => byte === 0);
  }

  #take({ kind, packing, data }: page.Fragment, start: number): Uint8Array | undefined {
    const isFirst = kind === page.FULL || kind === page.FIRST;
    if (isFirst) {
      if (this.#begun !== undefined) this.#lose(this.#begun, 'a record without its end');
      this.endDamage(start);
    } else if (this.#begun === undefined) {
      this.#lose(start, 'a record without its beginning');
      if (this.#damage !== undefined) this.#damage.isNoTear = true;
      return undefined;
    }
    if (kind === page.FIRST) this.#begun = start;
    if (kind !== page.FULL) {
      // The window is overwritten before the record is whole.
      this.#parts.push(data.slice());
      this.#partsBytes += data.length;
    }
    if (this.#partsBytes > page.RECORD_BYTES_MAX) {
      this.#lose(start, 'a record that does not decompress');
      return undefined;
    }
    if (kind === page.FIRST || kind === page.MIDDLE) return undefined;

    const begun = this.#begun ?? start;
    this.#begun = undefined;
    const packed = kind === page.FULL ? data : concat(this.#parts, this.#partsBytes);
    this.#clearParts();
    const record = this.#unpack(packed, packing);
    // Even one that does not unpack was written whole: no crash has torn it.
    this.#wholeEnd = this.#at;
    if (record === undefined) {
      this.#lose(begun, 'a record that does not decompress');
      this.endDamage(this.#at);
    }
    return record;
  }

  #unpack(packed: Uint8Array, packing: page.Packing | undefined): Uint8Array | undefined {
    switch (packing) {
      case 'none':
        return packed.slice();
      case 'snappy':
        return snappyUnpack(packed, page.RECORD_BYTES_MAX);
      case 'zstd':
        // Taken for damage it would be lost with the next checkpoint.
        if (this.#unzstd === undefined) {
          const remedy = 'read it with Node 22.15 or later, or write it with --wal-compression=snappy';
          throw new StorageError('io', `${this.#path} is packed with Zstandard: ${remedy}`);
        }
        return this.#unzstd(packed, page.RECORD_BYTES_MAX);
      default:
        return undefined;
    }
  }

  /** The page that begins here, as far as the file has it; nothing if it cannot be read. */
  #page(start: number): Uint8Array | undefined {
    const isHere = start >= this.#windowStart && start < this.#windowStart + this.#window.length;
    if (!isHere && !this.#fetch(start)) return undefined;
    const from = start - this.#windowStart;
    return this.#window.subarray(from, from + page.PAGE_BYTES);
  }

  /** Fills the window from a page on. If the device will not read that much, the page alone. */
  #fetch(start: number): boolean {
    this.#windowStart = start;
    for (const bytesMax of [WINDOW_BYTES, page.PAGE_BYTES]) {
      this.#window = new Uint8Array(Math.min(bytesMax, this.#sizeBytes - start));
      try {
        this.#file.readAt(start, this.#window);
        return true;
      } catch (error) {
        if (!(error instanceof StorageError)) throw error;
        this.#window = new Uint8Array(0);
      }
    }
    return false;
  }

  /** Opens a damaged place here, or where the unfinished record begins, unless one is open. */
  #lose(at: number, cause: page.DamageCause): void {
    const offset = this.#begun ?? at;
    this.#begun = undefined;
    this.#clearParts();
    this.#damage ??= { offset, cause, isNoTear: false };
    if (cause === 'a read error') this.#damage.isNoTear = true;
  }

  #clearParts(): void {
    this.#parts = [];
    this.#partsBytes = 0;
  }
}

function concat(parts: readonly Uint8Array[], bytes: number): Uint8Array {
  const all = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

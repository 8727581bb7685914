/**
 * Writing: batches of records to the end of the newest segment of a directory. A batch is framed
 * into one buffer and written with one call, so that it lies in one segment, whole or not at all:
 *
 * ```text
 * append ─┬─ fits ────────────────────────────▶ write ─┬─ done: length moves
 *         └─ too long ─▶ cut: create next, retire old ─┘
 *                                                      └─ failed: cut the file back to its length
 *                                                           └─ failed too: no more batches here
 * ```
 *
 * A segment is given up for new records when it is full and when a sync failed, since the system
 * may then have dropped what was written.
 */

import { StorageError } from '../errors.js';
import { ignoring, join, type Disk, type DiskFile } from './disk.js';
import { segmentName } from './names.js';
import { frame, PAGE_BYTES, RECORD_BYTES_MAX } from './page.js';

/** Upstream's segment length. A longer one is made only for a single batch that is longer. */
export const SEGMENT_BYTES_MAX = 128 * 1024 * 1024;

interface OpenSegment {
  readonly number: number;
  readonly path: string;
  readonly file: DiskFile;
  sizeBytes: number;
  isSynced: boolean;
  /** A sync failed: nothing more is written here. */
  isSuspect: boolean;
  /** Bytes of a failed write lie behind the end, and must go before anything else is written. */
  isAbandoned: boolean;
}

/** Writes the segments of one directory. */
export class SegmentWriter {
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #segmentBytesMax: number;
  #open: OpenSegment | undefined;
  #next: number;

  /** Will begin with segment `first`, which is created when it is needed. */
  constructor(disk: Disk, dir: string, first: number, segmentBytesMax = SEGMENT_BYTES_MAX) {
    this.#disk = disk;
    this.#dir = dir;
    this.#next = first;
    this.#segmentBytesMax = segmentBytesMax;
  }

  /** Appends all records, or none, and says in which segment they lie. */
  append(records: readonly Uint8Array[], isSyncedAtOnce: boolean): number {
    const long = records.find((record) => record.length > RECORD_BYTES_MAX);
    if (long !== undefined) {
      throw new StorageError('io', `a log record of ${long.length} bytes is over the limit`);
    }
    let open = this.#usable();
    if (records.length === 0) return open.number;
    let framed = frame(records, open.sizeBytes);
    if (open.sizeBytes > 0 && open.sizeBytes + framed.length > this.#segmentBytesMax) {
      open = this.#cut();
      framed = frame(records, open.sizeBytes);
    }
    try {
      open.isSynced = false;
      open.file.writeAt(open.sizeBytes, framed);
      if (isSyncedAtOnce) this.sync();
    } catch (error) {
      if (error instanceof StorageError) this.#undo(open);
      throw error;
    }
    open.sizeBytes += framed.length;
    return open.number;
  }

  /** The number of the segment that takes records; one is begun if there is none. */
  openSegment(): number {
    return this.#usable().number;
  }

  /** Ends the segment that is being written and returns its number. */
  cutSegment(): number {
    const { number } = this.#open ?? this.#usable();
    this.#cut();
    return number;
  }

  /** Makes all records survive a power cut, or throws; those before may then not. */
  sync(): void {
    const open = this.#open;
    if (open === undefined || open.isSynced) return;
    try {
      open.file.sync();
    } catch (error) {
      open.isSuspect = true;
      throw error;
    }
    open.isSynced = true;
  }

  /** Pads and syncs the last segment, and closes it. */
  finish(): void {
    const open = this.#usable();
    this.#open = undefined;
    retire(open);
  }

  /** Closes the file as it is. */
  close(): void {
    this.#open?.file.close();
    this.#open = undefined;
  }

  #usable(): OpenSegment {
    const open = this.#open;
    if (open?.isAbandoned) {
      open.file.setSize(open.sizeBytes);
      open.isAbandoned = false;
    }
    return open === undefined || open.isSuspect ? this.#cut() : open;
  }

  #undo(open: OpenSegment): void {
    open.isAbandoned = true;
    ignoring(() => {
      open.file.setSize(open.sizeBytes);
      open.isAbandoned = false;
    });
  }

  /** Creates the next segment, then retires the open one. Without the next all stays as it is. */
  #cut(): OpenSegment {
    const path = join(this.#dir, segmentName(this.#next));
    const file = this.#disk.create(path);
    try {
      this.#disk.syncDir(this.#dir);
    } catch (error) {
      file.close();
      ignoring(() => this.#disk.removeFile(path));
      throw error;
    }
    const ended = this.#open;
    const number = this.#next;
    this.#next += 1;
    const state = { isSynced: true, isSuspect: false, isAbandoned: false };
    this.#open = { number, path, file, sizeBytes: 0, ...state };
    if (ended !== undefined) retire(ended);
    return this.#open;
  }
}

/**
 * Full pages everywhere but at the very end of the log, as upstream leaves them. A short page
 * reads the same, so that a failure does no harm.
 */
function retire(open: OpenSegment): void {
  const padded = Math.ceil(open.sizeBytes / PAGE_BYTES) * PAGE_BYTES;
  try {
    ignoring(() => open.file.setSize(open.isAbandoned ? open.sizeBytes : padded));
    if (!open.isSynced && !open.isSuspect) open.file.sync();
  } finally {
    open.file.close();
  }
}

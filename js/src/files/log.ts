/**
 * A log in a directory: numbered segments of records, read once at start, then appended to.
 *
 * A segment of an earlier life is never written to, but for cutting a torn tail off the last one.
 * Damage elsewhere is passed over and reported; the segment stays until a checkpoint stands for it,
 * and is then quarantined.
 *
 * ```text
 * checkpoint.00000006.tmp/00000000…   written, synced
 *   └─ rename, sync directory ──▶ checkpoint.00000006/     from here on, it counts
 *        └─ remove segments up to 6 and older checkpoints, oldest first
 * ```
 */

import { StorageError } from '../errors.js';
import { batches } from '../imports/batches.js';
import type { Wal, WalBatch, WalCheckpoint } from '../imports/storage.js';
import { ignoring, isNotFound, join, removeTree, type Disk } from './disk.js';
import { checkpointNames, isUnfinishedInLog, listLog, segmentName } from './names.js';
import { UNFINISHED_REWRITE, type Numbered } from './names.js';
import { SegmentReader, type DamagedPlace, type Unzstd } from './reader.js';
import { keepCopy, quarantine } from './quarantine.js';
import { SegmentWriter } from './writer.js';

/** How a log is kept. */
export interface LogOptions {
  /** Whether an append returns only when its records would survive a power cut. */
  readonly isSyncedAtOnce: boolean;
  /** Called for each damaged place that the replay skipped. */
  readonly onDamage: (place: DamagedPlace) => void;
  readonly unzstd: Unzstd | undefined;
}

/** One of the two logs of a data directory. */
export class FileLog implements Wal {
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #options: LogOptions;
  readonly #writer: SegmentWriter;
  /** Segments, by their paths, in which something was passed over. */
  readonly #damaged = new Set<string>();
  #replay: Iterator<WalBatch, undefined> | undefined;
  #bytesMax = 0;

  /** Opens the log for replay. A directory that is missing is made with the first record. */
  constructor(disk: Disk, dir: string, options: LogOptions) {
    this.#disk = disk;
    this.#dir = dir;
    this.#options = options;
    const listing = this.#list();
    for (const { name } of this.#entries()) {
      if (isUnfinishedInLog(name)) removeTree(disk, join(dir, name));
    }
    this.#writer = new SegmentWriter(disk, dir, (listing.numberMax ?? -1) + 1);
    this.#replay = this.#batches();
  }

  append(records: Uint8Array[]): number {
    this.#makeDir();
    return this.#writer.append(records, this.#options.isSyncedAtOnce);
  }

  replay(bytesMax: number): WalBatch | undefined {
    this.#bytesMax = bytesMax;
    const next = this.#replay?.next();
    if (next?.done) this.#replay = undefined;
    return next?.value;
  }

  cutSegment(): number {
    this.#makeDir();
    return this.#writer.cutSegment();
  }

  truncate(lastSegment: number): void {
    this.#makeDir();
    const last = Math.min(lastSegment, this.#writer.openSegment() - 1);
    // One by one, for good: after a power cut an older sample must not stand alone where a newer
    // one of the same time followed.
    for (const { number, path } of this.#list().segments) {
      if (number > last) break;
      this.#remove(path);
      this.#disk.syncDir(this.#dir);
    }
  }

  beginCheckpoint(lastSegment: number): WalCheckpoint {
    const current = this.#writer.openSegment();
    const found = this.#list().checkpoints.at(-1);
    const newest = found?.number ?? -1;
    if (lastSegment >= current || newest > lastSegment) {
      const range = `segment ${current} is being written, and checkpoint ${newest} is the newest`;
      throw new StorageError('io', `no checkpoint can stand for segment ${lastSegment}: ${range}`);
    }
    const disk = this.#disk;
    // A commit that failed may have come as far as the name: then that is kept, and finished.
    const isNamed =
      found?.number === lastSegment && listLog(disk, found.path).segments.length > 0;
    const { name, unfinished } = checkpointNames(lastSegment);
    const target = join(this.#dir, name);
    const dir = join(this.#dir, unfinished);
    removeTree(disk, dir);
    disk.createDir(dir);
    const writer = new SegmentWriter(disk, dir, 0);
    const abandon = () => {
      writer.close();
      ignoring(() => removeTree(disk, dir));
    };
    return {
      append: (records) => void writer.append(records, false),
      commit: () => {
        try {
          writer.finish();
          disk.syncDir(dir);
          removeTree(disk, isNamed ? dir : target);
          if (!isNamed) disk.rename(dir, target);
        } catch (error) {
          abandon();
          throw error;
        }
        // Until this is done a power cut may bring the old name back: nothing may go before.
        disk.syncDir(this.#dir);
        ignoring(() => this.#removeReplaced(lastSegment));
      },
      abort: abandon,
    };
  }

  /** Makes all records survive a power cut. */
  sync(): void {
    this.#writer.sync();
  }

  close(): void {
    this.#writer.close();
  }

  /** Whether all that earlier lives appended could be read. */
  get isWhole(): boolean {
    return this.#damaged.size === 0;
  }

  /**
   * Drops records from the segments of earlier runs. Each segment is rewritten beside the log, and
   * then replaces the old one. To be called after the replay, before the first append.
   */
  dropRecords(isDropped: (record: Uint8Array) => boolean): void {
    for (const { path } of this.#list().segments) {
      const records = this.#readSegment(path);
      const kept = records.filter((record) => !isDropped(record));
      if (kept.length === records.length) continue;
      if (this.#damaged.delete(path)) keepCopy(this.#disk, path);
      const dir = join(this.#dir, UNFINISHED_REWRITE);
      removeTree(this.#disk, dir);
      this.#disk.createDir(dir);
      const writer = new SegmentWriter(this.#disk, dir, 0, Infinity);
      writer.append(kept, false);
      writer.finish();
      this.#disk.rename(join(dir, segmentName(0)), path);
      this.#disk.syncDir(this.#dir);
      removeTree(this.#disk, dir);
    }
  }

  #readSegment(path: string): Uint8Array[] {
    const file = this.#disk.open(path, 'read');
    try {
      const reader = new SegmentReader(file, path, this.#options.unzstd);
      return [...reader.records()];
    } finally {
      file.close();
    }
  }

  /** A damaged file is quarantined: it may be readable later, or by another program. */
  #remove(path: string): void {
    if (this.#damaged.delete(path)) quarantine(this.#disk, path);
    else this.#disk.removeFile(path);
  }

  #removeReplaced(lastSegment: number): void {
    const { segments, checkpoints } = this.#list();
    for (const { number, path } of segments) {
      if (number <= lastSegment) this.#remove(path);
    }
    for (const { number, path } of checkpoints) {
      if (number >= lastSegment) continue;
      for (const inside of listLog(this.#disk, path).segments) this.#remove(inside.path);
      removeTree(this.#disk, path);
    }
    this.#disk.syncDir(this.#dir);
  }

  /** The newest checkpoint that holds anything, then the segments after it. */
  *#batches(): Generator<WalBatch, undefined> {
    const { segments, checkpoints } = this.#list();
    let first = 0;
    for (const { number, path } of checkpoints.reverse()) {
      const inside = listLog(this.#disk, path).segments;
      if (inside.length === 0) continue;
      first = number + 1;
      for (const found of inside) yield* this.#segment(found, number, false);
      break;
    }
    const later = segments.filter(({ number }) => number >= first);
    // Later empty ones may come from lives that wrote nothing.
    const last = later.findLast(({ sizeBytes }) => sizeBytes > 0);
    for (const found of later) yield* this.#segment(found, found.number, found === last);
    return undefined;
  }

  *#segment(found: Numbered, segment: number, isLast: boolean): Generator<WalBatch, undefined> {
    const file = this.#disk.open(found.path, isLast ? 'write' : 'read');
    try {
      const reader = new SegmentReader(file, found.path, this.#options.unzstd);
      yield* batches(segment, reader.records(), () => this.#bytesMax);
      const tornAt = reader.tornAt();
      if (tornAt !== undefined && isLast) file.setSize(tornAt);
      else reader.endDamage(reader.sizeBytes);
      // The life that wrote it may have been killed before it could.
      if (isLast) file.sync();
      if (reader.damaged.length > 0) this.#damaged.add(found.path);
      reader.damaged.forEach(this.#options.onDamage);
    } finally {
      file.close();
    }
  }

  #list() {
    try {
      return listLog(this.#disk, this.#dir);
    } catch (error) {
      if (isNotFound(error)) return { segments: [], checkpoints: [], numberMax: undefined };
      throw error;
    }
  }

  #entries() {
    try {
      return this.#disk.list(this.#dir);
    } catch (error) {
      if (isNotFound(error)) return [];
      throw error;
    }
  }

  /**
   * Not before it is needed: older versions of upstream's tools stumble over an empty out-of-order
   * log.
   */
  #makeDir(): void {
    if (this.#isMade) return;
    this.#disk.createDir(this.#dir);
    this.#disk.syncDir('');
    this.#isMade = true;
  }

  #isMade = false;
}

/** A log that is only read: as {@link FileLog} replays it, without what that does to the files. */

import { batches } from '../imports/batches.js';
import type { Wal, WalBatch } from '../imports/storage.js';
import { isNotFound, type Disk } from '../files/disk.js';
import { listLog, type LogListing, type Numbered } from '../files/names.js';
import { SegmentReader, type DamagedPlace, type Unzstd } from '../files/reader.js';
import { refuse } from './disk.js';

/** How a log is read. */
export interface ReadLogOptions {
  readonly onDamage: (place: DamagedPlace) => void;
  readonly unzstd: Unzstd | undefined;
}

/** One of the two logs of a data directory. */
export class ReadLog implements Wal {
  readonly #disk: Disk;
  readonly #options: ReadLogOptions;
  readonly #replay: Iterator<WalBatch, undefined>;
  #bytesMax = 0;

  /** A directory that is missing is an empty log. */
  constructor(disk: Disk, dir: string, options: ReadLogOptions) {
    this.#disk = disk;
    this.#options = options;
    this.#replay = this.#batches(listed(disk, dir));
  }

  replay(bytesMax: number): WalBatch | undefined {
    this.#bytesMax = bytesMax;
    return this.#replay.next().value;
  }

  append = refuse;
  cutSegment = refuse;
  truncate = refuse;
  beginCheckpoint = refuse;

  /** The newest checkpoint that holds anything, then the segments after it. */
  *#batches({ segments, checkpoints }: LogListing): Generator<WalBatch, undefined> {
    let first = 0;
    for (const { number, path } of checkpoints.toReversed()) {
      const inside = listLog(this.#disk, path).segments;
      if (inside.length === 0) continue;
      first = number + 1;
      for (const found of inside) yield* this.#segment(found, number, false);
      break;
    }
    const later = segments.filter(({ number }) => number >= first);
    const last = later.findLast(({ sizeBytes }) => sizeBytes > 0);
    for (const found of later) yield* this.#segment(found, found.number, found === last);
    return undefined;
  }

  *#segment({ path }: Numbered, segment: number, isLast: boolean): Generator<WalBatch, undefined> {
    const reader = new SegmentReader(this.#disk.open(path, 'read'), path, this.#options.unzstd);
    yield* batches(segment, reader.records(), () => this.#bytesMax);
    // A torn tail of the last segment is what every crash leaves, and every copy of a running
    // server: nothing that was acknowledged is missing.
    if (reader.tornAt() === undefined || !isLast) reader.endDamage(reader.sizeBytes);
    reader.damaged.forEach(this.#options.onDamage);
  }
}

function listed(disk: Disk, dir: string): LogListing {
  try {
    return listLog(disk, dir);
  } catch (error) {
    if (isNotFound(error)) return { segments: [], checkpoints: [], numberMax: undefined };
    throw error;
  }
}

/**
 * A data directory as a storage, in Prometheus' format and that of the `tidepool` program:
 *
 * ```text
 * wal/00000007  wal/checkpoint.00000006/     segments, and a checkpoint for those before
 * wbl/                                       the same for out-of-order samples, without checkpoints
 * 01J…ULID/{meta.json,index,tombstones,chunks/000001}
 * ```
 *
 * Names that end in `.tmp`, `.tmp-for-creation` or `.tmp-for-deletion` are unfinished work, which
 * is swept at start. What is damaged goes to `set-aside/`. `head_snapshot`, from which `tidepool`
 * starts faster, goes before anything is written, as it does there.
 */

import { StorageError } from '../errors.js';
import type { Blocks, Storage, Wal } from '../imports/storage.js';
import { FileBlocks, isUnfinishedBlock, sweepReplacements } from './blocks.js';
import { ignoring, isNotFound, removeTree, type Disk } from './disk.js';
import { isUnfinishedHeadCache, retireHeadCaches } from './head_caches.js';
import { FileLog } from './log.js';
import type { DamagedPlace, Unzstd } from './reader.js';
import { sweepQuarantine } from './quarantine.js';

/** How often the log is forced to the device, unless that is left to each append. */
export const SYNC_INTERVAL_MS = 1000;

/** When the log is forced to the device. */
export type SyncPolicy =
  /** When the system likes: a power cut may cost minutes, the death of the process nothing. */
  | 'off'
  /** Every second at least. */
  | 'interval'
  /** Before each append returns. */
  | 'always';

/** How a data directory is kept. */
export interface FileStorageOptions {
  /** When appended rows survive a power cut. Default: `interval`. */
  readonly sync?: SyncPolicy;
  /**
   * Called for each damaged place in the log that the replay skipped; all else is read. Default: a
   * warning on the console.
   */
  readonly onDamage?: (place: DamagedPlace) => void;
}

/** A directory that no other process works in. */
export interface HeldDisk {
  readonly disk: Disk;
  /** Closes every file and lets others in. */
  letGo(): void;
}

/** A storage in files; whose, the subclass says. */
export abstract class FileStorage implements Storage {
  readonly #options: FileStorageOptions;
  readonly #unzstd: Unzstd | undefined;
  #opened: Opened | undefined;
  /** Whether the logs were written to in this life. */
  #hasWritten = false;
  #timer: ReturnType<typeof setInterval> | undefined;
  #syncError: StorageError | undefined;

  protected constructor(options: FileStorageOptions, unzstd?: Unzstd) {
    this.#options = options;
    this.#unzstd = unzstd;
  }

  /** Locks and opens the directory. */
  protected abstract openLocked(): Promise<HeldDisk>;

  get wal(): Wal {
    return this.#reporting(this.#open.inOrder);
  }
  get wbl(): Wal {
    return this.#reporting(this.#open.outOfOrder);
  }
  get blocks(): Blocks {
    return this.#open.blocks;
  }

  async acquire(): Promise<void> {
    const held = await this.openLocked();
    const { disk } = held;
    try {
      sweep(disk);
      const { sync = 'interval', onDamage = warn } = this.#options;
      const options = { isSyncedAtOnce: sync === 'always', onDamage, unzstd: this.#unzstd };
      disk.createDir('wal');
      const inOrder = new FileLog(disk, 'wal', options);
      const outOfOrder = new FileLog(disk, 'wbl', options);
      this.#opened = { held, inOrder, outOfOrder, blocks: new FileBlocks(disk) };
      this.#hasWritten = false;
      if (sync === 'interval') this.#startSyncing();
    } catch (error) {
      held.letGo();
      throw error;
    }
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    const opened = this.#opened;
    this.#opened = undefined;
    try {
      if (opened !== undefined && this.#options.sync !== 'off') {
        opened.inOrder.sync();
        opened.outOfOrder.sync();
      }
    } finally {
      opened?.inOrder.close();
      opened?.outOfOrder.close();
      opened?.held.letGo();
    }
  }

  get #open() {
    if (this.#opened === undefined) throw new StorageError('io', 'the storage is not held');
    return this.#opened;
  }

  #startSyncing(): void {
    this.#timer = setInterval(() => {
      try {
        this.#opened?.inOrder.sync();
        this.#opened?.outOfOrder.sync();
      } catch (error) {
        if (!(error instanceof StorageError)) throw error;
        this.#syncError = error;
      }
    }, SYNC_INTERVAL_MS);
    // In Node, a store that is open does not keep the program from ending.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  /** To be called before each write to the logs. */
  #prepareToWrite(): void {
    if (this.#hasWritten) return;
    const { held, inOrder, outOfOrder } = this.#open;
    retireHeadCaches(held.disk, outOfOrder, inOrder.isWhole && outOfOrder.isWhole);
    this.#hasWritten = true;
  }

  /** The next append tells of a sync that failed, and appends nothing. */
  #reporting(log: FileLog): Wal {
    const prepared = <T>(write: () => T): T => {
      this.#prepareToWrite();
      return write();
    };
    return {
      append: (records) => {
        const error = this.#syncError;
        this.#syncError = undefined;
        if (error !== undefined) {
          const loss = 'what was written in the last second may not survive a power cut';
          throw new StorageError(error.kind, `${error.detail}; ${loss}`);
        }
        return prepared(() => log.append(records));
      },
      replay: (bytesMax) => log.replay(bytesMax),
      cutSegment: () => prepared(() => log.cutSegment()),
      truncate: (lastSegment) => prepared(() => log.truncate(lastSegment)),
      beginCheckpoint: (lastSegment) => prepared(() => log.beginCheckpoint(lastSegment)),
    };
  }
}

interface Opened {
  readonly held: HeldDisk;
  readonly inOrder: FileLog;
  readonly outOfOrder: FileLog;
  readonly blocks: FileBlocks;
}

function warn({ path, offset, bytes, cause }: DamagedPlace): void {
  console.warn(`tidepool: ${path} is damaged at byte ${offset} (${cause}): passed over ${bytes} bytes`);
}

function sweep(disk: Disk): void {
  const found = disk.list('');
  for (const { name, isDir } of found) {
    const isLeftOver = isUnfinishedBlock(name) || isUnfinishedHeadCache(name);
    if (isDir && isLeftOver) removeTree(disk, name);
    else if (!isDir && name.endsWith('.tmp')) disk.removeFile(name);
  }
  sweepReplacements(disk);
  sweepQuarantine(disk);
  try {
    disk.removeFile('head_snapshot');
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  ignoring(() => disk.syncDir(''));
}

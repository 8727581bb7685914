/** A data directory of picked files as a storage, which is only read. */

import { FileBlocks } from '../files/blocks.js';
import type { DamagedPlace, Unzstd } from '../files/reader.js';
import type { Blocks, Storage, Wal } from '../imports/storage.js';
import { PickedDisk, refuse, type Files } from './disk.js';
import { ReadLog } from './log.js';
import type { ReadPart } from './windows.js';

/** How picked files are read. */
export interface PickedFilesOptions {
  /** Reads a part of a file, synchronously. */
  readonly read: ReadPart;
  /** Unpacks records that Prometheus wrote with `--wal-compression=zstd`. */
  readonly unzstd?: Unzstd | undefined;
  /** Called for each damaged place in the log that was skipped. */
  readonly onDamage: (place: DamagedPlace) => void;
  /** Blocks that are left out. */
  readonly excluded?: ReadonlySet<string>;
}

/** Picked files. No lock is asked for: they are a copy, or their owner does not change them. */
export class PickedFiles implements Storage {
  readonly #options: PickedFilesOptions;
  readonly #disk: PickedDisk;
  #logs: { wal: Wal; wbl: Wal };
  readonly blocks: Blocks;

  constructor(files: Files, options: PickedFilesOptions) {
    this.#options = options;
    this.#disk = new PickedDisk(files, options.read);
    this.#logs = this.#openLogs();
    const blocks = new FileBlocks(this.#disk);
    this.blocks = {
      list: () => blocks.list().filter((block) => options.excluded?.has(block) !== true),
      open: (block, name) => blocks.open(block, name),
      create: refuse,
      delete: refuse,
      replaceTombstones: refuse,
    };
  }

  get wal(): Wal {
    return this.#logs.wal;
  }
  get wbl(): Wal {
    return this.#logs.wbl;
  }

  /** A store that is opened anew reads the log anew. */
  acquire(): void {
    this.#logs = this.#openLogs();
  }
  release(): void {}

  #openLogs() {
    const { onDamage, unzstd } = this.#options;
    const log = (dir: string) => new ReadLog(this.#disk, dir, { onDamage, unzstd });
    return { wal: log('wal'), wbl: log('wbl') };
  }
}

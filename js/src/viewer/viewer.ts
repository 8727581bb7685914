/**
 * Picked files with an engine that reads them. A block that turns out to be damaged while it is
 * read is left out from then on, and named; all else is shown.
 */

import type { Build, Instance } from '../component.js';
import { CorruptError, EngineStoppedError, StorageError } from '../errors.js';
import type { DamagedPlace, Unzstd } from '../files/reader.js';
import type { ExportsWithQueries } from '../promql/build.js';
import { PromqlStore } from '../promql/store.js';
import { openWith } from '../store.js';
import { blocksOf, type ViewedBlock } from './blocks.js';
import { findData, type Found, type Picked } from './find.js';
import type { ViewerSummary } from './protocol.js';
import { PickedFiles } from './storage.js';
import type { ReadPart } from './windows.js';

/** What a viewer needs from where it runs. */
export interface ViewerOptions {
  readonly build: Build<ExportsWithQueries>;
  /** Reads a part of a file, synchronously. */
  readonly read: ReadPart;
  readonly unzstd?: Unzstd;
}

/** A store that gives its instance away. */
class ViewedStore extends PromqlStore {
  constructor(
    readonly instance: Instance<ExportsWithQueries>,
    storage: PickedFiles,
  ) {
    super(instance, storage);
  }
}

/** A directory that is open. */
export class Viewer {
  readonly blocks: readonly ViewedBlock[];
  readonly #found: Found;
  readonly #options: ViewerOptions;
  readonly #logDamage = new Map<string, string>();
  #store: ViewedStore | undefined;

  private constructor(found: Found, blocks: readonly ViewedBlock[], options: ViewerOptions) {
    this.#found = found;
    this.blocks = blocks;
    this.#options = options;
  }

  /** Opens what was picked. Throws an `Error` if nothing in it can be shown. */
  static async open(picked: readonly Picked[], options: ViewerOptions): Promise<Viewer> {
    const found = await findData(picked);
    const viewer = new Viewer(found, await blocksOf(found.files), options);
    await viewer.#retrying(() => viewer.#opened());
    return viewer;
  }

  /** What is damaged, one sentence each. */
  get damage(): string[] {
    const blocks = this.blocks.filter(({ error }) => error !== undefined);
    return [
      ...this.#found.damage,
      ...blocks.map(({ ulid, error }) => `Block ${ulid} is left out: ${error}`),
      ...this.#logDamage.values(),
    ];
  }

  /** What is shown. */
  async summary(): Promise<ViewerSummary> {
    return this.reading(async (instance) => {
      const { newestTimeMs } = instance.call((store) => store.briefStats());
      const { headSeries } = instance.call((store) => store.stats());
      const endMs = Number(newestTimeMs);
      return {
        name: this.#found.name,
        endMs: Number.isSafeInteger(endMs) ? endMs : undefined,
        blocks: this.blocks.filter(({ error }) => error === undefined).length,
        logSeries: Number(headSeries),
        bytes: [...this.#found.files.values()].reduce((sum, file) => sum + file.size, 0),
        damage: this.damage,
        others: this.#found.others,
      };
    });
  }

  /** Reads; once more after each block that turns out to be damaged. */
  reading<T>(read: (instance: Instance<ExportsWithQueries>) => Promise<T>): Promise<T> {
    return this.#retrying(async () => read((await this.#opened()).instance));
  }

  async close(): Promise<void> {
    const store = this.#store;
    this.#store = undefined;
    await store?.close();
  }

  async #opened(): Promise<ViewedStore> {
    if (this.#store !== undefined) return this.#store;
    const { build, read, unzstd } = this.#options;
    const excluded = new Set(this.blocks.flatMap(({ ulid, error }) => (error === undefined ? [] : [ulid])));
    const onDamage = (place: DamagedPlace) => this.#keepDamage(place);
    const storage = new PickedFiles(this.#found.files, { read, unzstd, onDamage, excluded });
    this.#store = await openWith(build, { storage }, (instance) => new ViewedStore(instance, storage));
    return this.#store;
  }

  async #retrying<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!this.#leaveOut(error)) {
          // An engine that stopped is of no further use.
          if (error instanceof EngineStoppedError) await this.close();
          throw error;
        }
        await this.close();
      }
    }
  }

  /** Leaves out the block that an error names, if it names one that is shown. */
  #leaveOut(error: unknown): boolean {
    const isOfData = error instanceof CorruptError || error instanceof StorageError;
    const text = isOfData ? error.message : '';
    const block = this.blocks.find(({ ulid, error }) => error === undefined && text.includes(ulid));
    if (block === undefined) return false;
    block.error = text;
    return true;
  }

  #keepDamage({ path, offset, bytes, cause }: DamagedPlace): void {
    this.#logDamage.set(`${path} ${offset}`, `${path} is damaged at byte ${offset} (${cause}): ${bytes} bytes are left out`);
  }
}

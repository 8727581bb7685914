/**
 * `@tidepool/engine/opfs`: storage in the browser's origin-private file system. For dedicated
 * workers, since only they have synchronous files; `@tidepool/engine/worker` makes one for a page.
 */

import { StorageError } from '../errors.js';
import { FileStorage, type FileStorageOptions, type HeldDisk } from '../files/storage.js';
import { OpfsDisk } from './disk.js';
import { toStorageError, type HandleSource, type SyncHandle } from './handles.js';

export type { FileStorageOptions, SyncPolicy } from '../files/storage.js';
export type { DamagedPlace } from '../files/reader.js';

/** Where stores lie in the origin's file system. */
const ROOT_DIR = 'tidepool';

/**
 * How often, and after what time, files are tried again that a tab which was killed still holds.
 */
const OPEN_TRIES = 40;
const OPEN_PAUSE_MS = 50;

/** How a store in the browser is kept. */
export interface OpfsOptions extends FileStorageOptions {
  /**
   * Files that may be made between two calls of `ready`: so many are open before they are needed.
   * Default: 16, more than a slice of a compaction makes.
   */
  readonly filesAtOnce?: number;
}

/** TypeScript knows it in workers only. */
interface SyncFileHandle extends FileSystemFileHandle {
  createSyncAccessHandle?: () => Promise<SyncHandle>;
}

/**
 * Keeps a store in the browser, under a name of its own. It is there again after a reload or when
 * the tab was killed, until the user clears the site's data; ask `navigator.storage.persist()` to
 * keep the browser from clearing it when the disk is full. One tab at a time can have it open.
 */
export class OpfsFiles extends FileStorage {
  /** The store's name. */
  readonly name: string;
  readonly #filesAtOnce: number | undefined;
  #disk: OpfsDisk | undefined;

  /** A name is any text that is a file's name: no `/`, not `.` or `..`. */
  constructor(name = 'default', options: OpfsOptions = {}) {
    super(options);
    this.#filesAtOnce = options.filesAtOnce;
    if (!isName(name)) throw new StorageError('io', `${name} is no name for a store`);
    this.name = name;
  }

  /** Waits until as many files are open as the next calls may need. */
  ready(): Promise<void> {
    return this.#disk?.ready() ?? Promise.resolve();
  }

  /**
   * The data directory file by file, to take it elsewhere: the `tidepool` program, Prometheus and
   * `NodeFiles` open it. For an open store.
   */
  files(): Generator<{ path: string; bytes: Uint8Array }> {
    if (this.#disk === undefined) throw new StorageError('io', 'the storage is not held');
    return this.#disk.files();
  }

  /** Deletes a store that is not open; none of that name is fine. */
  static async delete(name = 'default'): Promise<void> {
    if (!isName(name)) throw new StorageError('io', `${name} is no name for a store`);
    const unlock = await lock(name);
    try {
      const root = await navigator.storage.getDirectory();
      const all = await root.getDirectoryHandle(ROOT_DIR, { create: true });
      await all.removeEntry(name, { recursive: true });
    } catch (error) {
      if ((error as Error).name !== 'NotFoundError') throw toStorageError('delete', name, error);
    } finally {
      unlock();
    }
  }

  protected async openLocked(): Promise<HeldDisk> {
    const unlock = await lock(this.name);
    try {
      const disk = await OpfsDisk.open(await directory(this.name), this.#filesAtOnce);
      this.#disk = disk;
      const letGo = () => {
        this.#disk = undefined;
        disk.close();
        unlock();
      };
      return { disk, letGo };
    } catch (error) {
      unlock();
      throw error;
    }
  }
}

function isName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/');
}

/**
 * Makes sure that no other tab or worker has the store open. The files themselves can be opened
 * once only, too, but would not say by whom; and the browser lets go of a lock as soon as its tab
 * is gone.
 */
async function lock(name: string): Promise<() => void> {
  if (navigator.locks === undefined || navigator.storage?.getDirectory === undefined) {
    const remedy = 'serve the page over https or from localhost, to a current browser';
    throw new StorageError('io', `there is no origin-private file system here: ${remedy}`);
  }
  return new Promise((resolve, reject) => {
    const held = navigator.locks.request(`tidepool/${name}`, { ifAvailable: true }, (granted) => {
      if (granted !== null) return new Promise<void>((unlock) => resolve(unlock));
      const remedy = 'close it there, or read and write through that tab';
      throw new StorageError('io', `another tab or worker has the store ${name} open: ${remedy}`);
    });
    held.catch(reject);
  });
}

/** The files of one store. */
async function directory(name: string): Promise<HandleSource> {
  const root = await navigator.storage.getDirectory();
  const all = await root.getDirectoryHandle(ROOT_DIR, { create: true });
  const dir = await all.getDirectoryHandle(name, { create: true });
  return {
    async names() {
      const names: string[] = [];
      // TypeScript's DOM leaves out that a directory can be iterated.
      for await (const key of (dir as unknown as { keys(): AsyncIterable<string> }).keys()) {
        names.push(key);
      }
      return names;
    },
    async open(file) {
      const handle: SyncFileHandle = await dir.getFileHandle(file, { create: true });
      if (handle.createSyncAccessHandle === undefined) {
        throw new StorageError('io', 'synchronous files exist in dedicated workers only');
      }
      for (let tries = 1; ; tries += 1) {
        try {
          return await handle.createSyncAccessHandle();
        } catch (error) {
          const isHeld = (error as Error).name === 'NoModificationAllowedError';
          if (!isHeld || tries === OPEN_TRIES) throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, OPEN_PAUSE_MS));
      }
    },
  };
}

/**
 * The browser's origin-private files as a {@link Disk}.
 *
 * The browser reads and writes them at once, but takes its time to open, make or rename one. So a
 * number of files is opened before they are needed, under names that mean nothing (*slots*), and
 * {@link Names} says which path is kept in which. What frees a slot empties its file.
 */

import { StorageError } from '../errors.js';
import { isNotFound, type Disk, type DiskEntry, type DiskFile } from '../files/disk.js';
import { attempt, toStorageError, writeAll, type HandleSource, type SyncHandle } from './handles.js';
import { Names } from './names.js';

/**
 * Files that are opened before they are needed: more than a compaction makes between two pauses.
 */
const FREE_SLOTS = 16;

interface Slot {
  readonly name: string;
  readonly handle: SyncHandle;
  /** Open handles of the file; it is emptied once there are none and no path names it. */
  readers: number;
  isNamed: boolean;
}

/** A tree of files inside one flat directory of the browser's. */
export class OpfsDisk implements Disk {
  readonly #source: HandleSource;
  readonly #names: Names;
  readonly #slots: Map<string, Slot>;
  readonly #free: Slot[] = [];
  #growing: Promise<void> | undefined;
  #isClosed = false;

  readonly #freeSlots: number;

  private constructor(
    source: HandleSource,
    names: Names,
    slots: Map<string, Slot>,
    freeSlots: number,
  ) {
    this.#source = source;
    this.#names = names;
    this.#slots = slots;
    this.#freeSlots = freeSlots;
  }

  /** Opens all files that there are, and as many more as may be made at once. */
  static async open(source: HandleSource, freeSlots: number = FREE_SLOTS): Promise<OpfsDisk> {
    const opened: SyncHandle[] = [];
    const open = async (name: string) => {
      const handle = await source.open(name);
      opened.push(handle);
      return handle;
    };
    try {
      const tables = [await open('names.0'), await open('names.1')] as const;
      const found = (await source.names()).filter((name) => /^[0-9]+$/.test(name));
      const slots = new Map<string, Slot>();
      for (const name of found) {
        slots.set(name, { name, handle: await open(name), readers: 0, isNamed: false });
      }
      const disk = new OpfsDisk(source, new Names(tables), slots, freeSlots);
      disk.#tables = tables;
      disk.#sort();
      await disk.ready();
      return disk;
    } catch (error) {
      for (const handle of opened) handle.close();
      throw error instanceof StorageError ? error : toStorageError('open', 'the files', error);
    }
  }

  #tables: readonly SyncHandle[] = [];

  /** Waits until enough files are open for what may be made at once. */
  ready(): Promise<void> {
    this.#growing ??= this.#grow().finally(() => {
      this.#growing = undefined;
    });
    return this.#growing;
  }

  createDir(path: string): void {
    if (!this.#names.dirs.has(path)) this.#names.change(['dir', path]);
  }

  create(path: string): DiskFile {
    this.#removeIfThere(path);
    const slot = this.#free.at(-1);
    // A slot that is started now does not help this call, but may help the next.
    if (this.#free.length <= this.#freeSlots / 2) this.ready().catch(() => {});
    if (slot === undefined) {
      throw new StorageError('io', `could not create ${path}: too many files were made at once`);
    }
    this.#names.change(['create', path, slot.name]);
    this.#free.pop();
    slot.isNamed = true;
    return this.#opened(slot, path);
  }

  open(path: string): DiskFile {
    return this.#opened(this.#slot(path), path);
  }

  list(dir: string): DiskEntry[] {
    if (!this.#names.dirs.has(dir)) throw new StorageError('not-found', dir);
    const prefix = dir === '' ? '' : `${dir}/`;
    const entries: DiskEntry[] = [];
    const add = (path: string, isDir: boolean, sizeBytes: () => number) => {
      const name = path.slice(prefix.length);
      if (path.length <= prefix.length || !path.startsWith(prefix) || name.includes('/')) return;
      entries.push({ name, isDir, sizeBytes: sizeBytes() });
    };
    for (const path of this.#names.dirs) add(path, true, () => 0);
    for (const path of this.#names.files.keys()) {
      add(path, false, () => attempt('read', path, () => this.#slot(path).handle.getSize()));
    }
    return entries;
  }

  rename(from: string, to: string): void {
    if (!this.#names.dirs.has(from)) this.#slot(from);
    const replaced = this.#names.files.get(to);
    this.#names.change(['rename', from, to]);
    this.#unname(replaced);
  }

  removeFile(path: string): void {
    const { name } = this.#slot(path);
    this.#names.change(['remove', path]);
    this.#unname(name);
  }

  removeDir(path: string): void {
    this.#names.change(['remove', path]);
  }

  syncDir(): void {
    this.#names.sync();
  }

  /** All files with their paths, so that callers can copy them elsewhere. */
  *files(): Generator<{ path: string; bytes: Uint8Array }> {
    for (const path of [...this.#names.files.keys()].sort()) {
      const file = this.open(path);
      const bytes = new Uint8Array(file.sizeBytes());
      file.readAt(0, bytes);
      file.close();
      yield { path, bytes };
    }
  }

  /** Closes every file. */
  close(): void {
    this.#isClosed = true;
    for (const handle of this.#tables) handle.close();
    for (const { handle } of this.#slots.values()) handle.close();
  }

  /** Finds out which slots are free, and empties those that a crash left full. */
  #sort(): void {
    const isFull = ({ handle }: Slot) => attempt('read', 'a file', () => handle.getSize()) > 0;
    if (this.#names.isNew && [...this.#slots.values()].some(isFull)) {
      const remedy = 'nothing says which file is which; delete the store to start over';
      throw new StorageError('io', `the names of the store's files are damaged: ${remedy}`);
    }
    this.#names.begin();
    for (const [path, name] of this.#names.files) {
      const slot = this.#slots.get(name);
      if (slot === undefined) throw new StorageError('io', `the file of ${path} is gone`);
      slot.isNamed = true;
    }
    for (const slot of this.#slots.values()) this.#recycle(slot);
  }

  async #grow(): Promise<void> {
    for (let next = this.#slots.size; this.#free.length < this.#freeSlots; next += 1) {
      const name = String(next);
      if (this.#slots.has(name)) continue;
      const handle = await this.#source.open(name).catch((error: unknown) => {
        throw toStorageError('open', 'one more file', error);
      });
      if (this.#isClosed) return handle.close();
      const slot = { name, handle, readers: 0, isNamed: false };
      this.#slots.set(name, slot);
      this.#free.push(slot);
    }
  }

  #slot(path: string): Slot {
    const slot = this.#slots.get(this.#names.files.get(path) ?? '');
    if (slot === undefined) throw new StorageError('not-found', path);
    return slot;
  }

  #removeIfThere(path: string): void {
    try {
      this.removeFile(path);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  #unname(name: string | undefined): void {
    const slot = this.#slots.get(name ?? '');
    if (slot === undefined) return;
    slot.isNamed = false;
    this.#recycle(slot);
  }

  /** A slot that is used again before its old name is gone for good would bear two. */
  #recycle(slot: Slot): void {
    if (slot.isNamed || slot.readers > 0) return;
    this.#names.sync();
    attempt('empty', 'a file', () => slot.handle.truncate(0));
    this.#free.push(slot);
  }

  #opened(slot: Slot, path: string): DiskFile {
    const { handle } = slot;
    slot.readers += 1;
    let isClosed = false;
    return {
      sizeBytes: () => attempt('read', path, () => handle.getSize()),
      readAt(offset, out) {
        const read = attempt('read', path, () => handle.read(out, { at: offset }));
        if (read < out.length) throw new StorageError('io', `${path} ends at byte ${offset + read}`);
      },
      writeAt: (offset, bytes) => writeAll(handle, path, bytes, offset),
      setSize: (sizeBytes) => attempt('write', path, () => handle.truncate(sizeBytes)),
      sync: () => attempt('sync', path, () => handle.flush()),
      close: () => {
        if (isClosed) return;
        isClosed = true;
        slot.readers -= 1;
        if (!this.#isClosed) this.#recycle(slot);
      },
    };
  }
}

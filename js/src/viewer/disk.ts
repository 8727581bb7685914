/** Picked files as a {@link Disk} that cannot be written to. */

import { StorageError } from '../errors.js';
import type { Disk, DiskEntry, DiskFile } from '../files/disk.js';
import { Windows, type ReadPart } from './windows.js';

/** Files by their paths in a data directory. */
export type Files = ReadonlyMap<string, Blob>;

/** A disk of files. It has no empty directories. */
export class PickedDisk implements Disk {
  readonly #files: Files;
  readonly #dirs = new Map<string, Map<string, DiskEntry>>([['', new Map()]]);
  readonly #windows: Windows;

  constructor(files: Files, read: ReadPart) {
    this.#files = files;
    this.#windows = new Windows(read);
    for (const [path, { size }] of files) this.#enter(path, false, size);
  }

  open(path: string, access: 'read' | 'write'): DiskFile {
    if (access === 'write') refuse();
    const file = this.#files.get(path);
    if (file === undefined) throw new StorageError('not-found', path);
    return {
      sizeBytes: () => file.size,
      readAt: (offset, out) => this.#windows.fill(path, file, offset, out),
      writeAt: refuse,
      setSize: refuse,
      sync: refuse,
      close: () => {},
    };
  }

  list(dir: string): DiskEntry[] {
    const entries = this.#dirs.get(dir);
    if (entries === undefined) throw new StorageError('not-found', dir);
    return [...entries.values()];
  }

  createDir = refuse;
  create = refuse;
  rename = refuse;
  removeFile = refuse;
  removeDir = refuse;
  syncDir = refuse;

  #enter(path: string, isDir: boolean, sizeBytes: number): void {
    const at = path.lastIndexOf('/');
    const [dir, name] = [path.slice(0, Math.max(at, 0)), path.slice(at + 1)];
    if (!this.#dirs.has(dir)) {
      this.#dirs.set(dir, new Map());
      this.#enter(dir, true, 0);
    }
    this.#dirs.get(dir)!.set(name, { name, isDir, sizeBytes });
  }
}

/** What every write gets. */
export function refuse(): never {
  throw new StorageError('io', 'picked files are only read');
}

/** A disk in memory that fails on request, for tests of what is kept on disks. */

import { StorageError, type StorageErrorKind } from '../../src/index.js';
import type { Disk, DiskEntry, DiskFile } from '../../src/files/disk.js';
import { FileStorage, type FileStorageOptions, type HeldDisk } from '../../src/files/storage.js';

interface Inode {
  bytes: Uint8Array;
}

/** Files by path, and directories, which have no content. */
export class MemoryDisk implements Disk {
  readonly files = new Map<string, Inode>();
  readonly dirs = new Set<string>(['']);
  /** How many changing calls may still be made before one fails; that one does half of its work. */
  callsLeft = Infinity;
  failure: StorageErrorKind = 'no-space';
  /** Whether everything fails behind the first failure, as after a death of the process. */
  isDead = false;

  createDir(path: string): void {
    this.#change(() => this.dirs.add(path));
  }
  create(path: string): DiskFile {
    const inode = { bytes: new Uint8Array(0) };
    this.#change(() => this.files.set(path, inode));
    return this.#file(inode);
  }
  open(path: string): DiskFile {
    const inode = this.files.get(path);
    if (inode === undefined) throw new StorageError('not-found', path);
    return this.#file(inode);
  }
  list(dir: string): DiskEntry[] {
    if (!this.dirs.has(dir)) throw new StorageError('not-found', dir);
    const prefix = dir === '' ? '' : `${dir}/`;
    const below = (path: string) =>
      path !== '' && path.startsWith(prefix) && !path.slice(prefix.length).includes('/');
    const files = [...this.files].map(([path, { bytes }]) => ({ path, isDir: false, bytes }));
    const dirs = [...this.dirs].map((path) => ({ path, isDir: true, bytes: new Uint8Array(0) }));
    return [...files, ...dirs]
      .filter(({ path }) => below(path))
      .map(({ path, isDir, bytes }) => {
        return { name: path.slice(prefix.length), isDir, sizeBytes: bytes.length };
      });
  }
  rename(from: string, to: string): void {
    const moved = (path: string) =>
      path === from || path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;
    if (!this.files.has(from) && !this.dirs.has(from)) throw new StorageError('not-found', from);
    this.#change(() => {
      for (const [path, inode] of [...this.files]) {
        this.files.delete(path);
        this.files.set(moved(path), inode);
      }
      for (const path of [...this.dirs]) {
        this.dirs.delete(path);
        this.dirs.add(moved(path));
      }
    });
  }
  link(from: string, to: string): boolean {
    const inode = this.files.get(from);
    if (inode === undefined) throw new StorageError('not-found', from);
    if (this.files.has(to)) throw new StorageError('io', to);
    this.#change(() => this.files.set(to, inode));
    return true;
  }
  removeFile(path: string): void {
    if (!this.files.has(path)) throw new StorageError('not-found', path);
    this.#change(() => this.files.delete(path));
  }
  removeDir(path: string): void {
    this.#change(() => this.dirs.delete(path));
  }
  syncDir(): void {
    this.#change(() => {});
  }

  #file(inode: Inode): DiskFile {
    return {
      sizeBytes: () => inode.bytes.length,
      readAt: (offset, out) => {
        const bytes = inode.bytes.subarray(offset, offset + out.length);
        if (bytes.length < out.length) throw new StorageError('io', 'past the end');
        out.set(bytes);
      },
      writeAt: (offset, bytes) => {
        const write = (part: Uint8Array) => {
          const end = Math.max(inode.bytes.length, offset + part.length);
          const grown = new Uint8Array(end);
          grown.set(inode.bytes);
          grown.set(part, offset);
          inode.bytes = grown;
        };
        this.#change(
          () => write(bytes),
          () => write(bytes.subarray(0, bytes.length >> 1)),
        );
      },
      setSize: (sizeBytes) => {
        this.#change(() => {
          const sized = new Uint8Array(sizeBytes);
          sized.set(inode.bytes.subarray(0, sizeBytes));
          inode.bytes = sized;
        });
      },
      sync: () => this.#change(() => {}),
      close: () => {},
    };
  }

  #change(call: () => void, half?: () => void): void {
    this.callsLeft -= 1;
    if (this.callsLeft >= 0) return call();
    if (this.callsLeft === -1) half?.();
    if (this.callsLeft < -1 && !this.isDead) return call();
    throw new StorageError(this.failure, 'as the test wants it');
  }
}

/** A storage on an existing disk that no other storage holds. */
export class DiskStorage extends FileStorage {
  constructor(
    readonly disk: Disk,
    options: FileStorageOptions = {},
  ) {
    super(options);
  }
  protected async openLocked(): Promise<HeldDisk> {
    return { disk: this.disk, letGo() {} };
  }
}

/** Node's file system as a {@link Disk}. */

import * as fs from 'node:fs';
import { join as joinPath } from 'node:path';
import { StorageError } from '../errors.js';
import type { Disk, DiskEntry, DiskFile } from '../files/disk.js';

/** Codes that mean: no room here. */
const NO_SPACE = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Codes that mean: no hard links here, or no more of this file. */
const NO_LINKS = new Set(['EPERM', 'EACCES', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EXDEV', 'EMLINK']);

/** A directory and all below it. */
export class NodeDisk implements Disk {
  readonly #root: string;
  readonly #open = new Set<NodeFile>();

  constructor(root: string) {
    this.#root = root;
  }

  createDir(path: string): void {
    attempt('create', path, () => fs.mkdirSync(this.#at(path), { recursive: true }));
  }

  create(path: string): DiskFile {
    return this.#opened('create', path, 'w+');
  }

  open(path: string, access: 'read' | 'write'): DiskFile {
    return this.#opened('open', path, access === 'read' ? 'r' : 'r+');
  }

  list(dir: string): DiskEntry[] {
    return attempt('list', dir, () => {
      return fs.readdirSync(this.#at(dir), { withFileTypes: true }).map((entry) => {
        const isDir = entry.isDirectory();
        const sizeBytes = isDir ? 0 : fs.lstatSync(joinPath(this.#at(dir), entry.name)).size;
        return { name: entry.name, isDir, sizeBytes };
      });
    });
  }

  rename(from: string, to: string): void {
    attempt('rename', from, () => fs.renameSync(this.#at(from), this.#at(to)));
  }

  link(from: string, to: string): boolean {
    return attempt('link', from, () => {
      try {
        fs.linkSync(this.#at(from), this.#at(to));
        return true;
      } catch (error) {
        if (NO_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) return false;
        throw error;
      }
    });
  }

  removeFile(path: string): void {
    attempt('remove', path, () => fs.unlinkSync(this.#at(path)));
  }

  removeDir(path: string): void {
    attempt('remove', path, () => fs.rmdirSync(this.#at(path)));
  }

  syncDir(path: string): void {
    attempt('sync', path, () => {
      const fd = fs.openSync(this.#at(path), 'r');
      try {
        fs.fsyncSync(fd);
      } finally {
        fs.closeSync(fd);
      }
    });
  }

  /** Closes what is open still, such as the files of a store that crashed. */
  close(): void {
    for (const file of [...this.#open]) file.close();
  }

  #opened(what: string, path: string, flags: string): DiskFile {
    const fd = attempt(what, path, () => fs.openSync(this.#at(path), flags, 0o644));
    const file = new NodeFile(fd, path, () => this.#open.delete(file));
    this.#open.add(file);
    return file;
  }

  #at(path: string): string {
    return joinPath(this.#root, path);
  }
}

class NodeFile implements DiskFile {
  readonly #fd: number;
  readonly #path: string;
  readonly #onClose: () => void;
  #isClosed = false;

  constructor(fd: number, path: string, onClose: () => void) {
    this.#fd = fd;
    this.#path = path;
    this.#onClose = onClose;
  }

  sizeBytes(): number {
    return attempt('read', this.#path, () => fs.fstatSync(this.#fd).size);
  }

  readAt(offset: number, out: Uint8Array): void {
    attempt('read', this.#path, () => {
      for (let at = 0; at < out.length; ) {
        const count = fs.readSync(this.#fd, out, at, out.length - at, offset + at);
        if (count === 0) throw new Error(`the file ends at byte ${offset + at}`);
        at += count;
      }
    });
  }

  writeAt(offset: number, bytes: Uint8Array): void {
    attempt('write', this.#path, () => {
      for (let at = 0; at < bytes.length; ) {
        at += fs.writeSync(this.#fd, bytes, at, bytes.length - at, offset + at);
      }
    });
  }

  setSize(sizeBytes: number): void {
    attempt('write', this.#path, () => fs.ftruncateSync(this.#fd, sizeBytes));
  }

  sync(): void {
    attempt('sync', this.#path, () => fs.fdatasyncSync(this.#fd));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClose();
    fs.closeSync(this.#fd);
  }
}

/** Tells a failure in the contract's words. */
export function attempt<T>(what: string, path: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    const detail = `could not ${what} ${path || 'the data directory'}: ${message}`;
    const kind = code === 'ENOENT' ? 'not-found' : NO_SPACE.has(code) ? 'no-space' : 'io';
    throw new StorageError(kind, detail);
  }
}

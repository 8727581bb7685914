/**
 * Block directories, each change in one step:
 *
 * ```text
 * <ULID>.tmp-for-creation/ ── commit: sync files, sync directories, rename ──▶ <ULID>/
 * <ULID>/ ── delete: rename, sync ──▶ <ULID>.tmp-for-deletion/ ── remove ──▶ nothing
 * ```
 *
 * A directory named by a ULID is whole and durable, and nothing in it changes but `tombstones` and
 * `meta.json`, each as a whole; so blocks can share the other files, where a disk has links.
 */

import { StorageError } from '../errors.js';
import type { BlockFile, Blocks, BlockWriter } from '../imports/storage.js';
import { ignoring, isNotFound, join, removeTree, replaceFile } from './disk.js';
import type { Disk, DiskFile } from './disk.js';
import { chance, isUlid, ulid } from './ulid.js';

const CREATION_SUFFIX = '.tmp-for-creation';
const DELETION_SUFFIX = '.tmp-for-deletion';
const META_FILE = 'meta.json';
const CHUNKS_DIR = 'chunks';

/** Only these shapes reach the file system, so that no name can lead out of the block. */
const FILE_NAME = /^(meta\.json|index|tombstones|chunks\/[0-9]{6})$/;

/** Whether this was never finished; `.tmp` is what older versions of upstream wrote. */
export function isUnfinishedBlock(name: string): boolean {
  const suffix = [CREATION_SUFFIX, DELETION_SUFFIX, '.tmp'].find((end) => name.endsWith(end));
  return suffix !== undefined && isUlid(name.slice(0, -suffix.length));
}

/** The blocks of a data directory. */
export class FileBlocks implements Blocks {
  readonly #disk: Disk;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  list(): string[] {
    const names = this.#disk.list('').filter(({ name, isDir }) => isDir && isUlid(name));
    const isWhole = (name: string) =>
      this.#disk.list(name).some((file) => file.name === META_FILE && !file.isDir);
    return names.map(({ name }) => name).filter(isWhole).sort();
  }

  open(block: string, name: string): BlockFile {
    const path = join(checkedBlock(block), checkedFile(name));
    const file = this.#disk.open(path, 'read');
    const sizeBytes = file.sizeBytes();
    return {
      sizeBytes,
      readAt(offset, length) {
        if (offset + length > sizeBytes) {
          const reach = `${length} bytes at ${offset} reach past the end (${sizeBytes} bytes)`;
          throw new StorageError('io', `${path}: ${reach}`);
        }
        const bytes = new Uint8Array(length);
        file.readAt(offset, bytes);
        return bytes;
      },
      close: () => file.close(),
    };
  }

  create(nowMs: number): BlockWriter {
    return new FileBlockWriter(this.#disk, ulid(nowMs, chance()));
  }

  delete(block: string): void {
    const doomed = checkedBlock(block) + DELETION_SUFFIX;
    removeTree(this.#disk, doomed);
    this.#disk.rename(block, doomed);
    this.#disk.syncDir('');
    // It is gone for everybody; only its space is not free until the next start.
    ignoring(() => removeTree(this.#disk, doomed));
  }

  replaceTombstones(block: string, tombstones: Uint8Array, meta: Uint8Array): void {
    // A listing names what is missing.
    this.#disk.list(checkedBlock(block));
    replaceFile(this.#disk, block, 'tombstones', tombstones);
    replaceFile(this.#disk, block, META_FILE, meta);
  }
}

class FileBlockWriter implements BlockWriter {
  readonly id: string;
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #files = new Map<string, { file: DiskFile; sizeBytes: number }>();
  /** Files of other blocks, by their names here. */
  readonly #linked = new Map<string, DiskFile>();
  #hasChunks = false;

  constructor(disk: Disk, id: string) {
    this.#disk = disk;
    this.id = id;
    this.#dir = id + CREATION_SUFFIX;
    disk.createDir(this.#dir);
  }

  linkFile(block: string, name: string, newName: string): boolean {
    const [from, to] = [join(checkedBlock(block), checkedFile(name)), checkedFile(newName)];
    if (this.#files.has(to) || this.#linked.has(to)) {
      throw new StorageError('io', `${this.#dir}/${to} is there already`);
    }
    // It may not be on the device yet, if the block was copied here by hand: the commit syncs it.
    const file = this.#disk.open(from, 'read');
    this.#createChunksDir(to);
    let isLinked = false;
    try {
      isLinked = this.#disk.link?.(from, join(this.#dir, to)) ?? false;
    } finally {
      if (!isLinked) file.close();
    }
    if (isLinked) this.#linked.set(to, file);
    return isLinked;
  }

  writeAt(name: string, offset: number, bytes: Uint8Array): void {
    if (this.#linked.has(name)) {
      throw new StorageError('io', `${this.#dir}/${name} is shared with another block`);
    }
    const known = this.#files.get(name);
    if (offset > (known?.sizeBytes ?? 0)) {
      throw new StorageError('io', `a write at ${offset} leaves a hole in ${this.#dir}/${name}`);
    }
    const target = known ?? this.#create(checkedFile(name));
    try {
      target.file.writeAt(offset, bytes);
    } catch (error) {
      // A retry, once space is free, finds the file as it was.
      ignoring(() => target.file.setSize(target.sizeBytes));
      throw error;
    }
    target.sizeBytes = Math.max(target.sizeBytes, offset + bytes.length);
  }

  /** Whatever fails before the rename leaves no block, and after it a whole one. */
  commit(): void {
    try {
      if (!this.#files.has(META_FILE)) {
        throw new StorageError('io', `block ${this.id} has no ${META_FILE}`);
      }
      for (const { file } of this.#files.values()) file.sync();
      for (const file of this.#linked.values()) file.sync();
      this.#close();
      if (this.#hasChunks) this.#disk.syncDir(join(this.#dir, CHUNKS_DIR));
      this.#disk.syncDir(this.#dir);
      this.#disk.rename(this.#dir, this.id);
    } catch (error) {
      this.abort();
      throw error;
    }
    try {
      this.#disk.syncDir('');
    } catch (error) {
      // The caller will take this for no block: so it must not be listed.
      ignoring(() => this.#disk.rename(this.id, this.#dir));
      throw error;
    }
  }

  abort(): void {
    this.#close();
    ignoring(() => removeTree(this.#disk, this.#dir));
  }

  #close(): void {
    for (const { file } of this.#files.values()) file.close();
    for (const file of this.#linked.values()) file.close();
  }

  #createChunksDir(name: string): void {
    if (!name.startsWith(CHUNKS_DIR) || this.#hasChunks) return;
    this.#disk.createDir(join(this.#dir, CHUNKS_DIR));
    this.#hasChunks = true;
  }

  #create(name: string) {
    this.#createChunksDir(name);
    const target = { file: this.#disk.create(join(this.#dir, name)), sizeBytes: 0 };
    this.#files.set(name, target);
    return target;
  }
}

function checkedBlock(name: string): string {
  if (isUlid(name)) return name;
  throw new StorageError('not-found', `${name} is no name of a block`);
}

function checkedFile(name: string): string {
  if (FILE_NAME.test(name)) return name;
  throw new StorageError('not-found', `${name} is no name of a block's file`);
}

/** Removes what a crash left of files that were being replaced. */
export function sweepReplacements(disk: Disk): void {
  for (const { name: block, isDir } of disk.list('')) {
    if (!isDir || !isUlid(block)) continue;
    for (const { name } of disk.list(block)) {
      if (name !== 'tombstones.tmp' && name !== 'meta.json.tmp') continue;
      try {
        disk.removeFile(join(block, name));
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  }
}

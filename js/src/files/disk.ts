/**
 * What a data directory needs from a file system: a small synchronous one, of which Node's files
 * and the browser's origin-private ones are two. Paths are relative, with `/` between names.
 *
 * Assumed of a disk:
 *
 * - `sync` makes a file's bytes and length survive a power cut, nothing else does;
 * - a name created, renamed or removed survives once its directory was synced;
 * - a rename is atomic; a write is not, it may be torn at any byte;
 * - an open file stays readable after its name was removed.
 *
 * Whatever fails throws a {@link StorageError}: `not-found`, `no-space` or `io`.
 */

import { StorageError } from '../errors.js';

/** A file system, as far as a data directory needs one. */
export interface Disk {
  /** Creates a directory; one that exists is fine. Its parent exists. */
  createDir(path: string): void;
  /** Creates an empty file for reading and writing, in place of any of that name. */
  create(path: string): DiskFile;
  /** Opens a file that exists. */
  open(path: string, access: 'read' | 'write'): DiskFile;
  /** What a directory holds, in no particular order. */
  list(dir: string): DiskEntry[];
  /** Gives a file or directory a new name; a file takes the place of one that has it. */
  rename(from: string, to: string): void;
  /** Gives a file a second name, which is free; false if there are no such names here. */
  link?(from: string, to: string): boolean;
  removeFile(path: string): void;
  /** Removes an empty directory. */
  removeDir(path: string): void;
  /** Makes the names in a directory survive a power cut. */
  syncDir(path: string): void;
}

/** One open file. */
export interface DiskFile {
  /** Its length now. */
  sizeBytes(): number;
  /** Fills `out` from `offset`; throws where the file ends before. */
  readAt(offset: number, out: Uint8Array): void;
  /** Writes all bytes. After an error any part of them may have been written. */
  writeAt(offset: number, bytes: Uint8Array): void;
  /** Cuts the file, or extends it with zeros. */
  setSize(sizeBytes: number): void;
  /** Makes bytes and length survive a power cut. */
  sync(): void;
  /** Any call after the first does nothing. */
  close(): void;
}

/** One name in a directory. */
export interface DiskEntry {
  readonly name: string;
  readonly isDir: boolean;
  /** Length of a file; meaningless for a directory. */
  readonly sizeBytes: number;
}

/** Whether an error says that something is not there. */
export function isNotFound(error: unknown): boolean {
  return error instanceof StorageError && error.kind === 'not-found';
}

/** A path below a directory; the root is the empty path. */
export function join(dir: string, name: string): string {
  return dir === '' ? name : `${dir}/${name}`;
}

/** Removes a directory with everything in it, deepest first. Nothing to remove is fine. */
export function removeTree(disk: Disk, dir: string): void {
  let entries;
  try {
    entries = disk.list(dir);
  } catch (error) {
    if (isNotFound(error)) return;
    throw error;
  }
  for (const { name, isDir } of entries) {
    const path = join(dir, name);
    if (isDir) removeTree(disk, path);
    else disk.removeFile(path);
  }
  disk.removeDir(dir);
}

/** Writes a file under another name, makes it durable, and puts it in a name's place. */
export function replaceFile(disk: Disk, dir: string, name: string, bytes: Uint8Array): void {
  const target = join(dir, name);
  const unfinished = `${target}.tmp`;
  const file = disk.create(unfinished);
  try {
    file.writeAt(0, bytes);
    file.sync();
  } catch (error) {
    file.close();
    ignoring(() => disk.removeFile(unfinished));
    throw error;
  }
  file.close();
  disk.rename(unfinished, target);
  disk.syncDir(dir);
}

/** Does what only saves space or tidies up: a failure leaves it to the next start. */
export function ignoring(tidy: () => void): void {
  try {
    tidy();
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
  }
}

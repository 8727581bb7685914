/** What is needed of the browser's synchronous files, and where they come from. */

import { StorageError } from '../errors.js';

/** A `FileSystemSyncAccessHandle`, which TypeScript knows in workers only. */
export interface SyncHandle {
  getSize(): number;
  read(out: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  truncate(sizeBytes: number): void;
  flush(): void;
  close(): void;
}

/** A flat directory of files. Opening one is the only thing that takes waiting. */
export interface HandleSource {
  /** Names of the files that there are. */
  names(): Promise<string[]>;
  /** Opens a file, which is made if it is missing. */
  open(name: string): Promise<SyncHandle>;
}

/** Tells a failure of the browser's in the contract's words. */
export function attempt<T>(what: string, path: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof StorageError) throw error;
    throw toStorageError(what, path, error);
  }
}

/** A failure of the browser's in the contract's words. */
export function toStorageError(what: string, path: string, error: unknown): StorageError {
  const { name, message } = error as Error;
  if (name !== 'QuotaExceededError') {
    return new StorageError('io', `could not ${what} ${path}: ${name}: ${message}`);
  }
  return new StorageError('no-space', `the browser's quota is used up: could not ${what} ${path}`);
}

/** Writes all bytes: a handle may take a part of them where the room ends. */
export function writeAll(handle: SyncHandle, path: string, bytes: Uint8Array, at: number): void {
  attempt('write', path, () => {
    const written = handle.write(bytes, { at });
    if (written === bytes.length) return;
    throw new StorageError('no-space', `${path} took ${written} of ${bytes.length} bytes`);
  });
}

/**
 * Reads of files that a person picked, in the browser: by windows, never as a whole, and
 * synchronously, as the component wants them. A file of several GB costs as much memory as one of
 * some MB.
 */

import { StorageError } from '../errors.js';

/** Reads a part of a file. In a worker: {@link fileReaderSync}. */
export type ReadPart = (part: Blob) => Uint8Array;

/**
 * Bytes of a window, and of all that are kept: a read of 64 KiB takes a millisecond in Chromium,
 * one of 1 MiB some 5 milliseconds. A query over a hundred blocks takes a few chunks of each in
 * turn, over and over: the window of each must stay until then, and so must their indexes.
 */
export const WINDOW_BYTES = 256 * 1024;
const KEPT_BYTES_MAX = 64 * 1024 * 1024;

/** The way of workers; pages have none that is synchronous. */
export function fileReaderSync(): ReadPart {
  const { FileReaderSync } = globalThis as unknown as {
    FileReaderSync: new () => { readAsArrayBuffer(part: Blob): ArrayBuffer };
  };
  const reader = new FileReaderSync();
  return (part) => new Uint8Array(reader.readAsArrayBuffer(part));
}

/** The windows of some files that were read last. */
export class Windows {
  readonly #read: ReadPart;
  /** By file and place, those used last at the end. */
  readonly #kept = new Map<string, Uint8Array>();
  #keptBytes = 0;

  constructor(read: ReadPart) {
    this.#read = read;
  }

  /** Fills `out` from `offset` of a file; throws where the file ends before. */
  fill(path: string, file: Blob, offset: number, out: Uint8Array): void {
    const end = offset + out.length;
    if (end > file.size) {
      throw new StorageError('io', `${path}: ${out.length} bytes at ${offset} reach past the end (${file.size} bytes)`);
    }
    for (let at = offset; at < end; ) {
      const start = at - (at % WINDOW_BYTES);
      const window = this.#window(path, file, start);
      const part = window.subarray(at - start, end - start);
      out.set(part, at - offset);
      at += part.length;
    }
  }

  #window(path: string, file: Blob, start: number): Uint8Array {
    const key = `${start} ${path}`;
    const known = this.#kept.get(key);
    const window = known ?? this.#fetch(path, file, start);
    this.#kept.delete(key);
    this.#kept.set(key, window);
    if (known === undefined) this.#keptBytes += window.length;
    for (const [oldest, { length }] of this.#kept) {
      if (this.#keptBytes <= KEPT_BYTES_MAX) break;
      this.#kept.delete(oldest);
      this.#keptBytes -= length;
    }
    return window;
  }

  #fetch(path: string, file: Blob, start: number): Uint8Array {
    const end = Math.min(start + WINDOW_BYTES, file.size);
    let window;
    try {
      window = this.#read(file.slice(start, end));
    } catch (error) {
      // Browsers refuse to read a file that has changed since it was picked.
      throw new StorageError('io', `${path} cannot be read: it was changed or removed since it was picked (${String(error)})`);
    }
    if (window.length === end - start) return window;
    throw new StorageError('io', `${path}: ${window.length} of ${end - start} bytes at ${start} were read`);
  }
}

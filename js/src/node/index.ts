/** `@tidepool/engine/node`: storage in Node's files. */

import * as fs from 'node:fs';
import { dirname, resolve } from 'node:path';
import * as zlib from 'node:zlib';
import type { Unzstd } from '../files/reader.js';
import { FileStorage, type FileStorageOptions, type HeldDisk } from '../files/storage.js';
import { attempt, NodeDisk } from './disk.js';
import { lock } from './lock.js';

export type { FileStorageOptions, SyncPolicy } from '../files/storage.js';
export type { DamagedPlace } from '../files/reader.js';

/**
 * Keeps a store in a directory, in the format of the `tidepool` program and of Prometheus: what one
 * wrote opens in the other. A lock keeps them from having it open at once.
 */
export class NodeFiles extends FileStorage {
  /** Where the data is. */
  readonly path: string;

  /** The directory is made when a store is opened, if it is missing. */
  constructor(path: string, options: FileStorageOptions = {}) {
    super(options, unzstd());
    this.path = resolve(path);
  }

  protected async openLocked(): Promise<HeldDisk> {
    // Everything here is synchronous; what throws is a rejection all the same.
    attempt('create', this.path, () => makeDurable(this.path));
    const unlock = lock(this.path);
    const disk = new NodeDisk(this.path);
    const letGo = () => {
      disk.close();
      unlock();
    };
    return { disk, letGo };
  }
}

/** Makes a directory; its name, and those above that are new, survive a power cut. */
function makeDurable(path: string): void {
  const made = fs.mkdirSync(path, { recursive: true });
  if (made === undefined) return;
  for (let dir = path; dir.length >= made.length; dir = dirname(dir)) {
    const fd = fs.openSync(dirname(dir), 'r');
    fs.fsyncSync(fd);
    fs.closeSync(fd);
  }
}

/** Zstandard came with Node 22.15. */
function unzstd(): Unzstd | undefined {
  const { zstdDecompressSync } = zlib as {
    zstdDecompressSync?: (bytes: Uint8Array, options: { maxOutputLength: number }) => Uint8Array;
  };
  if (zstdDecompressSync === undefined) return undefined;
  return (packed, maxOutputLength) => {
    try {
      return zstdDecompressSync(packed, { maxOutputLength });
    } catch {
      return undefined;
    }
  };
}

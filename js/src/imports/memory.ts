/** Storage in memory, which lives as long as the object: for tests, and for data that may go. */

import { StorageError } from '../errors.js';
import { ulid } from '../files/ulid.js';
import { batches } from './batches.js';
import type {
  BlockFile,
  Blocks,
  BlockWriter,
  Storage,
  Wal,
  WalBatch,
  WalCheckpoint,
} from './storage.js';

/** Keeps log and blocks in memory. A store that is closed can be opened again on it. */
export class MemoryStorage implements Storage {
  readonly #inOrder = new MemoryWal();
  readonly #outOfOrder = new MemoryWal();
  readonly wal: Wal = this.#inOrder;
  readonly wbl: Wal = this.#outOfOrder;
  readonly blocks: Blocks = new MemoryBlocks();
  #isHeld = false;

  acquire(): void {
    if (this.#isHeld) throw new StorageError('io', 'another store is open on this storage');
    this.#isHeld = true;
    this.#inOrder.rewind();
    this.#outOfOrder.rewind();
  }

  release(): void {
    this.#isHeld = false;
  }
}

class MemoryWal implements Wal {
  /** Records by segment, in ascending order, the last being written; a checkpoint is one too. */
  #segments = new Map<number, Uint8Array[]>([[0, []]]);
  #written = 0;
  #replay: Iterator<WalBatch, undefined> | undefined;
  #bytesMax = 0;

  rewind(): void {
    this.#replay = this.#batches();
  }

  append(records: Uint8Array[]): number {
    this.#segments.get(this.#written)?.push(...records);
    return this.#written;
  }

  replay(bytesMax: number): WalBatch | undefined {
    this.#bytesMax = bytesMax;
    return this.#replay?.next().value;
  }

  *#batches(): Generator<WalBatch, undefined> {
    for (const [segment, all] of [...this.#segments]) {
      yield* batches(segment, all, () => this.#bytesMax);
    }
    return undefined;
  }

  cutSegment(): number {
    this.#written += 1;
    this.#segments.set(this.#written, []);
    return this.#written - 1;
  }

  truncate(lastSegment: number): void {
    const later = [...this.#segments].filter(([segment]) => segment > lastSegment);
    this.#segments = new Map(later);
  }

  beginCheckpoint(lastSegment: number): WalCheckpoint {
    // What is being written is never part of what is replaced.
    while (this.#written <= lastSegment) this.cutSegment();
    const kept: Uint8Array[] = [];
    return {
      append: (records) => void kept.push(...records),
      commit: () => {
        const later = [...this.#segments].filter(([segment]) => segment > lastSegment);
        this.#segments = new Map([[lastSegment, kept], ...later]);
      },
      abort: () => {},
    };
  }
}

class MemoryBlocks implements Blocks {
  readonly #blocks = new Map<string, Map<string, Uint8Array>>();
  #created = 0;

  list(): string[] {
    return [...this.#blocks.keys()].sort();
  }

  open(block: string, name: string): BlockFile {
    const file = this.#blocks.get(block)?.get(name);
    if (file === undefined) throw new StorageError('not-found', `${block}/${name}`);
    return {
      sizeBytes: file.length,
      readAt(offset, length) {
        if (offset + length > file.length) {
          const reach = `${length} bytes at ${offset} reach past the end (${file.length} bytes)`;
          throw new StorageError('io', `${block}/${name}: ${reach}`);
        }
        return file.subarray(offset, offset + length);
      },
      close() {},
    };
  }

  create(nowMs: number): BlockWriter {
    this.#created += 1;
    // In memory the rest need not be random.
    const id = ulid(nowMs, BigInt(this.#created));
    const files = new Map<string, GrowingFile>();
    const linked = new Map<string, Uint8Array>();
    return {
      id,
      writeAt: (name, offset, bytes) => {
        if (linked.has(name)) throw new StorageError('io', `${name} is linked`);
        const file = files.get(name) ?? new GrowingFile();
        if (offset > file.length) {
          throw new StorageError('io', `a write at ${offset} leaves a hole in ${name}`);
        }
        file.writeAt(offset, bytes);
        files.set(name, file);
      },
      linkFile: (block, name, newName) => {
        const file = this.#blocks.get(block)?.get(name);
        if (file === undefined) throw new StorageError('not-found', `${block}/${name}`);
        if (files.has(newName) || linked.has(newName)) {
          throw new StorageError('io', `${newName} is there already`);
        }
        linked.set(newName, file);
        return true;
      },
      commit: () => {
        const contents = [...files].map(([name, file]) => [name, file.content()] as const);
        this.#blocks.set(id, new Map([...linked, ...contents]));
      },
      abort: () => {},
    };
  }

  delete(block: string): void {
    if (!this.#blocks.delete(block)) throw new StorageError('not-found', block);
  }

  replaceTombstones(block: string, tombstones: Uint8Array, meta: Uint8Array): void {
    const files = this.#blocks.get(block);
    if (files === undefined) throw new StorageError('not-found', block);
    files.set('tombstones', tombstones);
    files.set('meta.json', meta);
  }
}

/** A file whose buffer doubles. */
class GrowingFile {
  length = 0;
  #buffer = new Uint8Array(4096);

  writeAt(offset: number, bytes: Uint8Array): void {
    const end = offset + bytes.length;
    if (end > this.#buffer.length) {
      const grown = new Uint8Array(Math.max(end, 2 * this.#buffer.length));
      grown.set(this.content());
      this.#buffer = grown;
    }
    this.#buffer.set(bytes, offset);
    this.length = Math.max(this.length, end);
  }

  content(): Uint8Array {
    return this.#buffer.subarray(0, this.length);
  }
}

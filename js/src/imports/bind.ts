/**
 * The component's imports `wal`, `blocks` and `head-source`, answered from a {@link Storage}.
 *
 * Generated code wants a class for each resource and drops it through `Symbol.dispose`. An
 * expected failure is thrown as the contract's value; all else passes through the engine and
 * stops it.
 */

import { StorageError } from '../errors.js';
import { dispose } from './dispose.js';
import type { BlockFile, BlockWriter, Storage, WalBatch, WalCheckpoint } from './storage.js';

/** The names that the contract gives to the two logs. */
type Log = 'in-order' | 'out-of-order';

/** Answers the imports from one storage. */
export function storageImports({ wal, wbl, blocks }: Storage): Record<string, object> {
  const logs = { 'in-order': wal, 'out-of-order': wbl };
  class Checkpoint {
    /** A constructor cannot fail, so that a failure waits for the first call that can. */
    readonly #begun: () => WalCheckpoint;
    #isCommitted = false;
    constructor(lastSegment: number) {
      this.#begun = attempt(() => wal.beginCheckpoint(lastSegment));
    }
    append(records: Uint8Array[]): void {
      tell(() => this.#begun().append(records));
    }
    static commit(checkpoint: Checkpoint): void {
      checkpoint.#isCommitted = true;
      tell(() => checkpoint.#begun().commit());
    }
    [dispose](): void {
      if (!this.#isCommitted) this.#begun().abort();
    }
  }

  class File {
    readonly #file: BlockFile;
    constructor(file: BlockFile) {
      this.#file = file;
    }
    size(): bigint {
      return BigInt(this.#file.sizeBytes);
    }
    readAt(offset: bigint, length: number): Uint8Array {
      return tell(() => this.#file.readAt(Number(offset), length));
    }
    /** The component checks what is not listed: it is faster at that than JavaScript. */
    readChunks(offset: bigint, length: number): { bytes: Uint8Array; ends: Uint32Array } {
      return { bytes: this.readAt(offset, length), ends: new Uint32Array() };
    }
    /** Storages keep none: they would save a read of what is in memory anyway. */
    summary(): undefined {
      return undefined;
    }
    keepSummary(): void {}
    [dispose](): void {
      this.#file.close();
    }
  }

  class Writer {
    readonly #writer: BlockWriter;
    #isCommitted = false;
    constructor(writer: BlockWriter) {
      this.#writer = writer;
    }
    id(): string {
      return this.#writer.id;
    }
    writeAt(name: string, offset: bigint, bytes: Uint8Array): void {
      tell(() => this.#writer.writeAt(name, Number(offset), bytes));
    }
    linkFile(block: string, name: string, newName: string): boolean {
      return tell(() => this.#writer.linkFile?.(block, name, newName) ?? false);
    }
    static commit(writer: Writer): void {
      writer.#isCommitted = true;
      tell(() => writer.#writer.commit());
    }
    [dispose](): void {
      if (!this.#isCommitted) this.#writer.abort();
    }
  }

  return {
    'tidepool:tsdb/wal': {
      Checkpoint,
      append: (log: Log, records: Uint8Array[]) => tell(() => logs[log].append(records)),
      replay: (bytesMax: number) =>
        tell(() => {
          const inOrder = wal.replay(bytesMax);
          if (inOrder !== undefined) return batch('in-order', inOrder);
          const outOfOrder = wbl.replay(bytesMax);
          return outOfOrder === undefined ? undefined : batch('out-of-order', outOfOrder);
        }),
      cutSegment: (log: Log) => tell(() => logs[log].cutSegment()),
      truncateOutOfOrder: (lastSegment: number) => tell(() => wbl.truncate(lastSegment)),
    },
    'tidepool:tsdb/blocks': {
      File,
      Writer,
      list: () => tell(() => blocks.list()),
      open: (block: string, name: string) => tell(() => new File(blocks.open(block, name))),
      create: (nowMs: bigint) => tell(() => new Writer(blocks.create(Number(nowMs)))),
      delete: (block: string) => tell(() => blocks.delete(block)),
      replaceTombstones: (block: string, tombstones: Uint8Array, meta: Uint8Array) =>
        tell(() => blocks.replaceTombstones(block, tombstones, meta)),
    },
    'tidepool:tsdb/head-source': {
      Cursor: class {},
      Strings: class {},
      Exemplars: class {},
      open: noOtherHead,
      labelNames: noOtherHead,
      labelValues: noOtherHead,
      scanExemplars: noOtherHead,
      planCut: noOtherHead,
      truncate: noOtherHead,
      deletionMark: noOtherHead,
    },
  };
}

/** Records as the contract wants them: one directly after the other. */
function batch(log: Log, { segment, records }: WalBatch) {
  const lengths = Uint32Array.from(records, (record) => record.length);
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const record of records) {
    bytes.set(record, at);
    at += record.length;
  }
  return { log, segment, bytes, lengths };
}

/** A store here plays the role `all`: it owns its head and never asks for another's. */
function noOtherHead(): never {
  throw new Error('the engine asked for a head that is not its own');
}

/** Words a storage's failure as the contract does. */
function tell<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof StorageError) {
      throw Object.assign(error, { payload: { tag: error.kind, val: error.detail } });
    }
    throw error;
  }
}

/** Calls now; returns its result, or throws its error, as often as asked. */
function attempt<T>(call: () => T): () => T {
  try {
    const value = call();
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

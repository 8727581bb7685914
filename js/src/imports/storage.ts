/**
 * What a store needs from outside: the contract's imported interfaces `wal` and `blocks`, in
 * JavaScript's words. `wit/storage.wit` holds every promise in full.
 *
 * All calls but `acquire` and `release` are synchronous. A call that cannot be done throws a
 * `StorageError` and has had no effect. Byte arrays that a storage is given are its own to keep;
 * those that it returns are copied at once.
 */

/** A place where a store keeps its data. One store at a time can be open on it. */
export interface Storage {
  /** The log of series and of samples that came in order. */
  readonly wal: Wal;
  /** The log of out-of-order samples. */
  readonly wbl: Wal;
  readonly blocks: Blocks;
  /** Called when a store is opened, before anything else. Throws if another store holds it. */
  acquire(): void | Promise<void>;
  /** Called when that store was closed; what it had begun and not committed is gone. */
  release(): void | Promise<void>;
  /**
   * Waited for between the slices of a compaction, by storages that must prepare for what will be
   * written at once.
   */
  ready?(): Promise<void>;
}

/** An append-only log of records, in numbered segments. */
export interface Wal {
  /** Appends all records or none, and says which segment holds them: one for all. */
  append(records: Uint8Array[]): number;
  /**
   * The next records since `acquire`, from the newest checkpoint on, all of one segment: at least
   * one, and no more than fit into `bytesMax` after the first. `undefined` at the end.
   */
  replay(bytesMax: number): WalBatch | undefined;
  /** Ends the segment that is being written and returns its number; later ones are higher. */
  cutSegment(): number;
  /** Deletes every segment up to and including this one. Of the out-of-order log only. */
  truncate(lastSegment: number): void;
  /** Begins a checkpoint that will replace every segment up to and including this one. Of the
   * in-order log only. */
  beginCheckpoint(lastSegment: number): WalCheckpoint;
}

/** Records as `replay` returns them. */
export interface WalBatch {
  /** A checkpoint's records count as lying in the last segment that it replaced. */
  segment: number;
  records: Uint8Array[];
}

/** A checkpoint that is being written. */
export interface WalCheckpoint {
  /** Adds records, in the order in which `replay` shall return them. */
  append(records: Uint8Array[]): void;
  /** Makes the checkpoint durable, then deletes what it replaces. */
  commit(): void;
  /** Ends it without a trace. Not called after `commit`. */
  abort(): void;
}

/** Blocks, each a set of files. Of a committed one only what `replaceTombstones` names changes. */
export interface Blocks {
  /** ULIDs of all committed blocks, ascending. */
  list(): string[];
  /** Opens a file of a committed block; it stays readable when the block is deleted. */
  open(block: string, name: string): BlockFile;
  /** Begins a block under a fresh ULID of the given time. */
  create(nowMs: number): BlockWriter;
  /** Deletes a block; `list` sees it whole or not at all. */
  delete(block: string): void;
  /**
   * Replaces the files `tombstones` and then `meta.json` of a committed block, each in one step.
   * Files that are open keep what they held.
   */
  replaceTombstones(block: string, tombstones: Uint8Array, meta: Uint8Array): void;
}

/** An open file of a block. */
export interface BlockFile {
  readonly sizeBytes: number;
  /** Exactly `length` bytes from `offset`; throws where the file ends before. */
  readAt(offset: number, length: number): Uint8Array;
  close(): void;
}

/** A block that is being written, not visible yet. */
export interface BlockWriter {
  readonly id: string;
  /** Writes into a file, which its first write creates. Past the end is an error: no holes. */
  writeAt(name: string, offset: number, bytes: Uint8Array): void;
  /**
   * Makes a file of a committed block a file of this one, too, under a name that is free here:
   * neither writes its bytes again, and each keeps it when the other is deleted. Returns whether it
   * did; a storage that cannot share files says no, or leaves this out.
   */
  linkFile?(block: string, name: string, newName: string): boolean;
  /** Makes the block durable and then, in one step, visible. */
  commit(): void;
  /** Ends it without a trace. Not called after `commit`. */
  abort(): void;
}

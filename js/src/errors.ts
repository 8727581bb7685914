/**
 * What the store throws: one class per case of the contract's `error` variant, all of them
 * {@link TidepoolError}s with a `code` to switch on. The store lives on after each of them but
 * {@link EngineStoppedError}, and the call that threw had no effect.
 */

/** The names of the cases. */
export type ErrorCode =
  | 'not-open'
  | 'wrong-role'
  | 'invalid'
  | 'malformed'
  | 'corrupt'
  | 'limit-exceeded'
  | 'short-of-memory'
  | 'busy'
  | 'series-dropped'
  | 'head-lost'
  | 'storage'
  | 'engine-stopped'
  | 'query-parse'
  | 'query-execution';

/** The base of all errors that a store throws. */
export abstract class TidepoolError extends Error {
  abstract readonly code: ErrorCode;
  override get name(): string {
    return this.constructor.name;
  }
}

/** The store was closed, or could not be opened. */
export class NotOpenError extends TidepoolError {
  readonly code = 'not-open';
  constructor() {
    super('the store is not open');
  }
}

/** The store's role does not include the call. */
export class WrongRoleError extends TidepoolError {
  readonly code = 'wrong-role';
  constructor(readonly call: string) {
    super(`${call} is not part of this store's role`);
  }
}

/** The caller's mistake: an argument that can never be right. */
export class InvalidError extends TidepoolError {
  readonly code = 'invalid';
}

/** Bytes that are not what their format demands. */
export interface Damage {
  /** The block and file, or the message, that is damaged. */
  readonly where: string;
  /** Offset of the damage in bytes, as near as it is known. */
  readonly offset: number;
  /** What is wrong there. */
  readonly reason: string;
}

/** A remote-write body that does not decode. */
export class MalformedError extends TidepoolError {
  readonly code = 'malformed';
  constructor(readonly damage: Damage) {
    super(`the request does not decode: ${damageText(damage)}`);
  }
}

/** Stored data that does not decode. */
export class CorruptError extends TidepoolError {
  readonly code = 'corrupt';
  constructor(readonly damage: Damage) {
    super(`stored data is damaged: ${damageText(damage)}`);
  }
}

/** A stated limit was reached. */
export class LimitExceededError extends TidepoolError {
  readonly code = 'limit-exceeded';
  /** `what` is bounded by `max`; `text` replaces the message. */
  constructor(
    readonly what: string,
    readonly max: number,
    text = `the limit of ${max} ${what} is reached`,
  ) {
    super(text);
  }
}

/** An expression that is not valid PromQL. Only stores of `@tidepool/engine/promql` throw it. */
export class QueryParseError extends TidepoolError {
  readonly code = 'query-parse';
  /**
   * `text` is Prometheus' message, with line and column. The mistake is in the part of the
   * expression from index `start` to `end`, which is not included.
   */
  constructor(
    text: string,
    readonly start: number,
    readonly end: number,
  ) {
    super(text);
  }
}

/**
 * An expression that cannot be evaluated over the data, such as a match of many series with many.
 * Only stores of `@tidepool/engine/promql` throw it.
 */
export class QueryExecutionError extends TidepoolError {
  readonly code = 'query-execution';
}

/** Memory is short: try again when {@link Store.compact} has cut a block. */
export class ShortOfMemoryError extends TidepoolError {
  readonly code = 'short-of-memory';
  /** `bytesMax` is what `memoryBytesMax` allows. */
  constructor(readonly bytesMax: number) {
    super(`memory is short: ${bytesMax} bytes are allowed`);
  }
}

/** Reads that are still open need what the call would drop; try again when they have ended. */
export class BusyError extends TidepoolError {
  readonly code = 'busy';
  constructor() {
    super('reads are still open; try again when they have ended');
  }
}

/** Series of the head were dropped while they were counted; count again. */
export class SeriesDroppedError extends TidepoolError {
  readonly code = 'series-dropped';
  constructor() {
    super('series of the head were dropped while they were counted; try again');
  }
}

/** Why the head of another instance does not answer. */
export type HeadLostReason =
  | 'restarted'
  | 'not-ready'
  | 'stopped'
  | 'crashed'
  | 'deadline'
  | 'out-of-memory';

/** The head of another instance does not answer. Stores of this package own their head. */
export class HeadLostError extends TidepoolError {
  readonly code = 'head-lost';
  /** `detail` is what a crash left behind. */
  constructor(
    readonly reason: HeadLostReason,
    readonly detail = '',
  ) {
    super(`the head of the other instance does not answer: ${[reason, detail].join(' ').trim()}`);
  }
}

/** Why storage could not do what it was asked. */
export type StorageErrorKind =
  /** There is no such block or file. */
  | 'not-found'
  /** No space is left; the call had no effect. */
  | 'no-space'
  /** What would be written was opened for reading only. */
  | 'read-only'
  /** The device or the host failed. */
  | 'io';

/**
 * The storage beneath failed. A storage throws this, and the store's caller gets it; whatever
 * else a storage throws is taken for a bug and stops the engine.
 */
export class StorageError extends TidepoolError {
  readonly code = 'storage';
  /** `detail` names the file, or says where and why the device failed; for people. */
  constructor(
    readonly kind: StorageErrorKind,
    readonly detail: string,
  ) {
    super(`${STORAGE_ERROR_TEXTS[kind]}: ${detail}`);
  }
}

const STORAGE_ERROR_TEXTS: Record<StorageErrorKind, string> = {
  'not-found': 'there is no such block or file',
  'no-space': 'no space is left',
  'read-only': 'opened for reading only',
  io: 'input/output error',
};

/**
 * The engine crashed: a bug in it, or one in the storage, which is then the `cause`. This store
 * is of no further use; close it and open another on the same storage.
 */
export class EngineStoppedError extends TidepoolError {
  readonly code = 'engine-stopped';
  /** `output` is what the engine wrote to its standard error, such as a panic's message. */
  constructor(
    readonly output: string,
    cause: unknown,
  ) {
    const lines = output.split('\n').filter((line) => line !== '' && !line.startsWith('note: '));
    super(`the engine stopped: ${lines.join(' ') || String(cause)}`, { cause });
  }
}

/** A chunk whose bytes do not decode. */
export class ChunkError extends TidepoolError {
  readonly code = 'corrupt';
  /** `sample` is the number, from zero, of the one that could not be read, of `count`. */
  constructor(
    readonly sample: number,
    readonly count: number,
    reason: string,
  ) {
    super(`sample ${sample + 1} of ${count} in a chunk: ${reason}`);
  }
}

function damageText({ where, offset, reason }: Damage): string {
  return `${where} at byte ${offset}: ${reason}`;
}

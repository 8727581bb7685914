/**
 * What a page and its worker say to each other. Each request has a number, which its answer bears.
 *
 * Samples cross as columns of a whole batch of series in two buffers that change hands: handing
 * over two buffers for each series, or copying them, takes several times as long (see the README).
 */

import * as errors from '../errors.js';
import type * as model from '../model.js';
import type { Notes, QueryOptions } from '../promql/model.js';
import type { OpenOptions } from '../store.js';
import type { TypedColumns } from '../arguments.js';

/** How a store is opened by a worker. */
export type WorkerOpenOptions = Omit<OpenOptions, 'storage'> & {
  /** Name of the store in the browser's files. Default: `default`. */
  readonly name?: string;
  /** Where data is kept. Default: `opfs`, the browser's files. */
  readonly storage?: 'opfs' | 'memory';
  /** When appended rows survive a power cut. Default: `interval`. */
  readonly sync?: 'off' | 'interval' | 'always';
};

/** The calls, each with its arguments and what it returns. */
export interface Calls extends StoreCalls, QueryCalls {}

/** The calls of every store. */
export interface StoreCalls {
  open(options: WorkerOpenOptions): void;
  seriesRefs(labels: readonly model.Labels[]): model.SeriesRef[];
  append(rows: TypedColumns, nowMs: number): model.WriteOutcome;
  appendRemoteWrite(version: 'v1' | 'v2', body: Uint8Array, nowMs: number): model.WriteOutcome;
  /** Opens a cursor and returns its number; its series come decoded or as chunks. */
  select(selection: model.Selection, isRaw: boolean): number;
  /** The next series of a cursor; none at the end, where the cursor has closed. */
  next(cursor: number): SeriesBatch | model.SeriesChunks[];
  closeCursor(cursor: number): void;
  labelNames(lookup: model.Lookup): string[];
  labelValues(name: string, lookup: model.Lookup): string[];
  delete(selection: model.Selection & { matchers: readonly model.Matcher[] }): model.Deletion;
  compact(nowMs: number): model.CompactedBlock[];
  stats(): model.Figures;
  /** The data directory file by file: the one of this number, none behind the last. */
  file(number: number): { path: string; bytes: Uint8Array } | undefined;
  close(): void;
}

/** The calls of a store with PromQL. The page numbers its queries. */
export interface QueryCalls {
  query(query: number, expression: string, options: Omit<QueryOptions, 'signal'>): void;
  /** The next piece of an answer; one without series at the end, where the query has ended. */
  nextOfQuery(query: number): BatchPiece;
  endQuery(query: number): void;
  formatQuery(expression: string): string;
  parseQuery(expression: string): unknown;
}

/** A piece of the answer to a query, as it crosses. */
export interface BatchPiece {
  readonly batch: SeriesBatch;
  readonly notes: Notes;
}

/** Series one after the other, in columns. */
export interface SeriesBatch {
  readonly labels: readonly model.Labels[];
  /** How many samples each has. */
  readonly lengths: Uint32Array;
  readonly timestampsMs: Float64Array;
  readonly values: Float64Array;
  /** Histograms of those series that have any, by the series' number in the batch. */
  readonly histograms: ReadonlyMap<number, readonly model.Histogram[]>;
}

/** From the page. */
export interface Request {
  readonly id: number;
  readonly call: keyof Calls;
  readonly args: readonly unknown[];
}

/** From the worker. */
export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: PlainError };

/** An error as a plain value, since classes do not cross. */
export interface PlainError {
  readonly code: errors.ErrorCode | undefined;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** An error as it crosses. */
export function toPlainError(error: unknown): PlainError {
  if (!(error instanceof errors.TidepoolError)) {
    return { code: undefined, message: String(error), details: {} };
  }
  const { code, message, ...details } = error;
  // Causes are of the worker's own.
  return { code, message: error.message, details: { ...details, cause: undefined } };
}

/** The error that has crossed, of its class again. */
export function fromPlainError({ code, message, details }: PlainError): Error {
  const d = details as Record<string, never>;
  switch (code) {
    case 'not-open':
      return new errors.NotOpenError();
    case 'wrong-role':
      return new errors.WrongRoleError(d['call']!);
    case 'invalid':
      return new errors.InvalidError(message);
    case 'malformed':
      return new errors.MalformedError(d['damage']!);
    case 'corrupt': {
      if (d['damage'] !== undefined) return new errors.CorruptError(d['damage']);
      return Object.assign(new errors.ChunkError(d['sample']!, d['count']!, ''), { message });
    }
    case 'limit-exceeded':
      return new errors.LimitExceededError(d['what']!, d['max']!, message);
    case 'short-of-memory':
      return new errors.ShortOfMemoryError(d['bytesMax']!);
    case 'busy':
      return new errors.BusyError();
    case 'series-dropped':
      return new errors.SeriesDroppedError();
    case 'head-lost':
      return new errors.HeadLostError(d['reason']!, d['detail']!);
    case 'storage':
      return new errors.StorageError(d['kind']!, d['detail']!);
    case 'engine-stopped':
      return new errors.EngineStoppedError(d['output'] ?? '', message);
    case 'query-parse':
      return new errors.QueryParseError(message, d['start']!, d['end']!);
    case 'query-execution':
      return new errors.QueryExecutionError(message);
    default:
      return new Error(message);
  }
}

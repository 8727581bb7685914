/** The words of queries in PromQL. Times are as in the rest of the package. */

import type { Series } from '../model.js';

/** When an expression is evaluated. */
export type QueryTimes =
  /** Once. Default: now. */
  | { readonly timeMs?: number }
  /** At `startMs`, then every `stepMs` until `endMs`, which is included. */
  | { readonly startMs: number; readonly endMs: number; readonly stepMs: number };

/** Options of a query, whose defaults are Prometheus' unless said otherwise. */
export interface QuerySettings {
  /**
   * Ends the query: what waits for its next series is rejected with the signal's reason. The
   * engine looks up between two pieces of an answer. What needs all samples before it gives the
   * first series, such as `sum`, is one piece.
   */
  readonly signal?: AbortSignal;
  /** How far back a selector of instant vectors looks. Default: five minutes. */
  readonly lookbackMs?: number;
  /** Step of subqueries that name none. Default: one minute. */
  readonly subqueryStepMs?: number;
  /**
   * Most samples that the evaluation holds at a time. Default: {@link QUERY_SAMPLES_MAX}. 0: no
   * limit.
   */
  readonly samplesMax?: number;
  /**
   * Most memory that the evaluation holds at a time. Default: {@link QUERY_MEMORY_BYTES_MAX}. 0: no
   * limit, but the engine stops when the memory of its instance is used up.
   */
  readonly memoryBytesMax?: number;
  /** Most series of the answer; a warning says that there were more. Default: no limit. */
  readonly seriesMax?: number;
  /** Allows Prometheus' experimental functions and aggregations. Default: no. */
  readonly experimentalFunctions?: boolean;
  /** Allows `anchored` and `smoothed` range selectors. Default: no. */
  readonly extendedRangeSelectors?: boolean;
  /** Allows `fill`, `fill_left` and `fill_right`. Default: no. */
  readonly binopFillModifiers?: boolean;
  /** Drops metric names at the end of the evaluation instead of at each function. Default: no. */
  readonly delayedNameRemoval?: boolean;
  /** Recognises counters by the label `__type__` instead of by their names. Default: no. */
  readonly typeAndUnitLabels?: boolean;
  /** Uses start timestamps of counters, where the store has them. Default: no. */
  readonly startTimestamps?: boolean;
  /** Counts samples for each step: see {@link QueryStats.samplesPerStep}. Default: no. */
  readonly statsPerStep?: boolean;
}

/** How a query is evaluated. */
export type QueryOptions = QueryTimes & QuerySettings;

/** Prometheus' limit of samples: 50 million. */
export const QUERY_SAMPLES_MAX = 50_000_000;

/** The limit of memory that the `tidepool` program has for a query: 256 MiB. */
export const QUERY_MEMORY_BYTES_MAX = 256 * 1024 * 1024;

/** The type of a result. A scalar is one series without labels. */
export type ResultType = 'scalar' | 'string' | 'vector' | 'matrix';

/** The cost of a query. */
export interface QueryStats {
  /** Samples that were used, counted as Prometheus does: once for each step that uses them. */
  readonly samples: number;
  /** Samples that were read from the store, once for each selector that reads them. */
  readonly samplesRead: number;
  /** Largest number of samples held at a time. */
  readonly samplesPeak: number;
  /** Largest memory held at a time, in bytes. */
  readonly memoryPeakBytes: number;
  /** Series that were selected. */
  readonly series: number;
  /** `samples` of each step, from the first one on; empty unless `statsPerStep` asks for them. */
  readonly samplesPerStep: readonly number[];
}

/** What is known of an answer beside its series. */
export interface Notes {
  readonly resultType: ResultType;
  /** The result of an expression of the type `string`; empty for other types. */
  readonly text: string;
  /** Prometheus' messages, each with its place in the expression. */
  readonly warnings: readonly string[];
  /** As the warnings. */
  readonly infos: readonly string[];
  readonly stats: QueryStats;
}

/** An answer as a whole. */
export interface QueryResult extends Notes {
  /**
   * Range queries have at most one point for each step, instant queries one, or those of a range.
   */
  readonly series: readonly Series[];
}

/** Series that were evaluated together; none at the end. */
export interface Piece {
  readonly series: readonly Series[];
  readonly notes: Notes;
}

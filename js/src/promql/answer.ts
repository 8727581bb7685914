/** The answer to a query as an iterator, wherever it is evaluated. */

import type { Series } from '../model.js';
import type { Notes, Piece, QueryResult, QueryStats, ResultType } from './model.js';

/** A query that has begun. */
export interface Evaluation {
  /** The next piece; one without series at the end. */
  next(): Promise<Piece>;
  /** Ends it. Called once, also after its end and after an error. */
  end(): void;
}

const NO_STATS: QueryStats = {
  samples: 0,
  samplesRead: 0,
  samplesPeak: 0,
  memoryPeakBytes: 0,
  series: 0,
  samplesPerStep: [],
};

/**
 * The answer to a query: an iterator over its series. The query begins when the first series is
 * requested, and ends when the loop is left; it is answered once. Its other properties are of what
 * was evaluated so far, and complete when the loop is at its end.
 *
 * ```js
 * const answer = store.query('sum by (job) (rate(requests_total[5m]))', { startMs, endMs, stepMs });
 * for await (const { labels, timestampsMs, values } of answer) draw(labels, timestampsMs, values);
 * for (const warning of answer.warnings) console.warn(warning);
 * ```
 */
export class QueryAnswer implements AsyncIterableIterator<Series> {
  readonly #series: AsyncGenerator<Series, undefined>;
  #notes: Notes | undefined;
  #isBegun = false;

  /** Use `query` of a store. */
  constructor(begin: () => Evaluation, signal: AbortSignal | undefined) {
    this.#series = this.#read(begin, signal);
  }

  /** The type of the result; undefined before the query has begun. */
  get resultType(): ResultType | undefined {
    return this.#notes?.resultType;
  }

  /** The result of an expression of the type `string`; empty for other types. */
  get text(): string {
    return this.#notes?.text ?? '';
  }

  /** Prometheus' warnings, each with its place in the expression. */
  get warnings(): readonly string[] {
    return this.#notes?.warnings ?? [];
  }

  /** Prometheus' infos, each with its place in the expression. */
  get infos(): readonly string[] {
    return this.#notes?.infos ?? [];
  }

  /** The cost. */
  get stats(): QueryStats {
    return this.#notes?.stats ?? NO_STATS;
  }

  /** All of it, in memory. For an answer of which nothing was read. */
  async result(): Promise<QueryResult> {
    if (this.#isBegun) throw new TypeError('this answer was read before');
    const series: Series[] = [];
    for await (const one of this) series.push(one);
    return { ...this.#notes!, series };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Series, undefined>> {
    this.#isBegun = true;
    return this.#series.next();
  }

  return(): Promise<IteratorResult<Series, undefined>> {
    this.#isBegun = true;
    return this.#series.return(undefined);
  }

  async *#read(
    begin: () => Evaluation,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Series, undefined> {
    signal?.throwIfAborted();
    const evaluation = begin();
    try {
      for (;;) {
        const { series, notes } = await unlessAborted(evaluation.next(), signal);
        this.#notes = notes;
        if (series.length === 0) return undefined;
        for (const one of series) {
          yield one;
          signal?.throwIfAborted();
        }
      }
    } finally {
      evaluation.end();
    }
  }
}

/** Rejects when the signal does, without waiting for what was promised. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

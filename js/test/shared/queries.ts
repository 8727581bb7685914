/**
 * `tests/contract/queries`: samples, expressions, and what Prometheus answers, for every embedder.
 */

import type { Columns, Labels, SeriesRef, WriteOutcome } from '../../src/index.js';
import type { QueryAnswer, QueryOptions, QueryResult } from '../../src/promql/index.js';

/** The file with all of them. */
export interface Cases {
  readonly series: readonly {
    readonly labels: Labels;
    readonly startMs: number;
    readonly stepMs: number;
    readonly values: readonly number[];
  }[];
  readonly queries: readonly Case[];
}

/** An expression, and what Prometheus answers. */
export interface Case {
  readonly query: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Zero is an instant query. */
  readonly stepMs: number;
  readonly errorType?: 'bad_data' | 'execution';
  readonly error?: string;
  readonly resultType?: string;
  readonly text?: string;
  readonly series?: readonly {
    readonly labels: Labels;
    readonly points: readonly (readonly [timeMs: number, value: string])[];
  }[];
  readonly warnings?: readonly string[];
  readonly infos?: readonly string[];
}

/** A store in the page, or in a worker. */
export interface Queried {
  seriesRef(labels: Labels): SeriesRef | Promise<SeriesRef>;
  append(rows: Columns, nowMs?: number): WriteOutcome | Promise<WriteOutcome>;
  query(expression: string, options?: QueryOptions): QueryAnswer;
}

/** Writes the samples. */
export async function writeCases(store: Queried, { series }: Cases): Promise<void> {
  for (const { labels, startMs, stepMs, values } of series) {
    const ref = await store.seriesRef(labels);
    const timestampsMs = values.map((_, step) => startMs + stepMs * step);
    const { refused } = await store.append({ series: ref, timestampsMs, values });
    if (refused > 0) throw new Error(`${refused} samples were refused`);
  }
}

/** How a case is asked. */
export function timesOf({ startMs, endMs, stepMs }: Case): QueryOptions {
  return stepMs === 0 ? { timeMs: startMs } : { startMs, endMs, stepMs };
}

/** Asks all queries; returns a sentence for each answer that is not Prometheus'. */
export async function wrongAnswers(store: Queried, { queries }: Cases): Promise<string[]> {
  const wrong: string[] = [];
  for (const one of queries) {
    const found = await store.query(one.query, timesOf(one)).result().then(plain, failure);
    const wanted = expected(one);
    if (!alike(found, wanted)) {
      wrong.push(`${one.query}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
    }
  }
  return wrong;
}

type Point = readonly [timeMs: number, value: string];

function plain({ resultType, text, series, warnings, infos }: QueryResult) {
  const points = (times: Float64Array, values: Float64Array): Point[] =>
    [...times].map((timeMs, i) => [timeMs, printed(values[i]!)]);
  const all = series.map(({ labels, timestampsMs, values, histograms }) => {
    return { labels, points: points(timestampsMs, values), histograms: histograms.length };
  });
  return { resultType, text, series: sorted(all), warnings, infos };
}

/** Numbers as Prometheus spells them, but for the form of exponents, which `alike` does not see. */
function printed(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

/** Of errors the kind, and of mistakes in the expression the message. */
function failure(error: Error & { code?: string }) {
  const isParse = error.code === 'query-parse';
  return { code: error.code, ...(isParse ? { message: error.message } : {}) };
}

function expected(one: Case) {
  switch (one.errorType) {
    case 'bad_data':
      return { code: 'query-parse', message: one.error!.replace('invalid parameter "query": ', '') };
    case 'execution':
      return { code: 'query-execution' };
  }
  const series = one.series!.map(({ labels, points }) => ({ labels, points, histograms: 0 }));
  const { resultType, text = '', warnings, infos } = one;
  return { resultType, text, series: sorted(series), warnings, infos };
}

function sorted<T extends { labels: Labels }>(series: readonly T[]): T[] {
  const key = ({ labels }: T) => JSON.stringify(Object.entries(labels).sort());
  return [...series].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** The same, where numbers may differ in their last digits. */
function alike(found: unknown, wanted: unknown): boolean {
  if (typeof found === 'string' && typeof wanted === 'string') {
    const [a, b] = [Number(found), Number(wanted)];
    return found === wanted || Math.abs(a - b) <= 1e-12 * Math.abs(b);
  }
  if (typeof found !== 'object' || typeof wanted !== 'object') return found === wanted;
  const [a, b] = [Object.entries(found ?? {}), Object.entries(wanted ?? {})];
  const others = new Map(b);
  return a.length === b.length && a.every(([key, value]) => alike(value, others.get(key)));
}

/**
 * `query`, `query_range`, `parse_query` and `format_query`, answered as Prometheus' HTTP API does.
 */

import { toMs } from '../arguments.js';
import type { Instance } from '../component.js';
import { dispose } from '../imports/dispose.js';
import type { ExportsWithQueries, QueryExports } from '../promql/build.js';
import { format, parse, toOptions, toQueryError, type QueryErrorValue } from '../promql/evaluate.js';
import { nextTurn } from '../store.js';
import { countOf, durationOf, neededTime, Refusal, timeOf, wrong } from './parameters.js';
import type { ViewerAnswer } from './protocol.js';

type Engine = Instance<ExportsWithQueries>;

/** About how many bytes of an answer are taken out of the engine at a time. */
const PIECE_BYTES = 256 * 1024;
/** Bytes of an answer that a page takes: as over HTTP. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Points of a series, as in Prometheus. */
const POINTS_MAX = 11_000;

/** An instant query. Without a time, that of `nowMs`. */
export function instant(engine: Engine, params: URLSearchParams, nowMs: number, signal: AbortSignal): Promise<ViewerAnswer> {
  const [expression, options] = [expressionOf(params), optionsOf(params)];
  const time = toMs(timeOf(params, 'time', "invalid time value for 'time': ") ?? nowMs, 'time');
  return evaluated(engine, expression, ({ query }) => query.instant(expression, time, options), params, signal);
}

/** A range query. */
export function range(engine: Engine, params: URLSearchParams, signal: AbortSignal): Promise<ViewerAnswer> {
  const [expression, options] = [expressionOf(params), optionsOf(params)];
  const [start, end, step] = [neededTime(params, 'start'), neededTime(params, 'end'), durationOf(params, 'step') ?? 0];
  if (end < start) throw wrong('end', 'end timestamp must not be before start time');
  if (step <= 0) throw wrong('step', 'zero or negative query resolution step widths are not accepted. Try a positive integer');
  if ((end - start) / step > POINTS_MAX) {
    const text = `exceeded maximum resolution of ${POINTS_MAX} points per timeseries. Try decreasing the query resolution (?step=XX)`;
    throw new Refusal('bad_data', text);
  }
  const times = [toMs(start, 'start'), toMs(end, 'end'), toMs(step, 'step')] as const;
  return evaluated(engine, expression, ({ query }) => query.range(expression, ...times, options), params, signal);
}

/** The tree of an expression. */
export function parsed(engine: Engine, params: URLSearchParams): ViewerAnswer {
  return { data: JSON.stringify(parse(engine, expressionOf(params))) };
}

/** An expression in Prometheus' layout. */
export function formatted(engine: Engine, params: URLSearchParams): ViewerAnswer {
  return { data: JSON.stringify(format(engine, expressionOf(params))) };
}

function expressionOf(params: URLSearchParams): string {
  return params.get('query') ?? '';
}

function optionsOf(params: URLSearchParams): QueryExports.QueryOptions {
  return toOptions({
    seriesMax: countOf(params, 'limit'),
    lookbackMs: durationOf(params, 'lookback_delta') ?? 0,
    statsPerStep: params.get('stats') === 'all',
  });
}

async function evaluated(
  engine: Engine,
  expression: string,
  begin: (exports: ExportsWithQueries) => QueryExports.Evaluation,
  params: URLSearchParams,
  signal: AbortSignal,
): Promise<ViewerAnswer> {
  const call = <T>(make: (exports: ExportsWithQueries) => T): T =>
    engine.callAny(make, (value) => toQueryError(value as QueryErrorValue, expression));
  const begunMs = performance.now();
  const open = call(begin) as QueryExports.Evaluation & Disposable;
  try {
    const decoder = new TextDecoder();
    const texts: string[] = [];
    let bytes = 0;
    for (;;) {
      const piece = call(() => open.nextBytes('json', PIECE_BYTES));
      if (piece.length === 0) break;
      bytes += piece.length;
      if (bytes > ANSWER_BYTES_MAX) {
        const remedy = 'ask for fewer series, a shorter range or a longer step';
        throw new Refusal('too_large', `the answer is larger than the 64 MiB that a page takes: ${remedy}`);
      }
      texts.push(decoder.decode(piece, { stream: true }));
      // A message that ends the query can come in between.
      await nextTurn();
      signal.throwIfAborted();
    }
    const annotations = call(() => open.annotations(0));
    const of = (areWarnings: boolean) => annotations.filter(({ isWarning }) => isWarning === areWarnings).map(({ text }) => text);
    const stats = (params.get('stats') ?? '') === '' ? '' : `,"stats":${statsOf(call(() => open.stats()), (performance.now() - begunMs) / 1000)}`;
    return { data: `{${texts.join('')}${stats}}`, warnings: of(true), infos: of(false) };
  } finally {
    if (!engine.hasEnded) call(() => open[dispose]());
  }
}

function statsOf({ samples, samplesRead, samplesPeak }: QueryExports.QueryStats, seconds: number): string {
  return JSON.stringify({
    timings: { evalTotalTime: seconds, execTotalTime: seconds },
    samples: { totalQueryableSamples: Number(samples), samplesRead: Number(samplesRead), peakSamples: Number(samplesPeak) },
  });
}

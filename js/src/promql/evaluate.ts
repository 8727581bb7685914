/** Queries on an instance of the component: what the interface `query` takes and returns. */

import * as args from '../arguments.js';
import { toError, type Instance } from '../component.js';
import * as errors from '../errors.js';
import { dispose } from '../imports/dispose.js';
import type { Histogram, Series } from '../model.js';
import { fromLabels } from '../select.js';
import { nextTurn } from '../store.js';
import type { Evaluation } from './answer.js';
import type { ExportsWithQueries, QueryExports } from './build.js';
import type { Piece, QueryOptions, QuerySettings } from './model.js';
import { QUERY_MEMORY_BYTES_MAX, QUERY_SAMPLES_MAX } from './model.js';

/** About how many bytes of series are taken out of the engine at a time. */
const PIECE_BYTES = 256 * 1024;

/** After this time other work has its turn. */
const TURN_MS = 10;

export type QueryErrorValue = Parameters<typeof toError>[0] | QueryExports.QueryError;
type ParseErrorValue = QueryExports.ParseError;

/** Begins a query; arguments that are not valid, and expressions, throw at its first piece. */
export function evaluate(
  instance: Instance<ExportsWithQueries>,
  expression: string,
  options: QueryOptions,
): Evaluation {
  const call = <T>(make: (exports: ExportsWithQueries) => T): T =>
    instance.callAny(make, (value) => toQueryError(value as QueryErrorValue, expression));
  let evaluation: (QueryExports.Evaluation & Disposable) | undefined;
  let isEnded = false;
  let turnMs = performance.now();
  const begin = () => {
    const text = args.toText(expression, 'the expression');
    const settings = toOptions(options);
    const isRange = 'startMs' in options || 'endMs' in options || 'stepMs' in options;
    const begun = isRange ? range(text, options, settings) : instant(text, options, settings);
    return call(begun) as QueryExports.Evaluation & Disposable;
  };
  return {
    async next() {
      if (performance.now() - turnMs > TURN_MS) {
        await nextTurn();
        turnMs = performance.now();
      }
      if (isEnded) throw new errors.InvalidError('the query has ended');
      const open = (evaluation ??= begin());
      return toPiece(call(() => open.next(PIECE_BYTES)), call(() => notesOf(open)));
    },
    end() {
      isEnded = true;
      // The evaluations of an instance end with it.
      const open = evaluation;
      if (open !== undefined && !instance.hasEnded) call(() => open[dispose]());
    },
  };
}

type Begin = (exports: ExportsWithQueries) => QueryExports.Evaluation;

function range(
  text: string,
  { startMs, endMs, stepMs }: { startMs: number; endMs: number; stepMs: number },
  settings: QueryExports.QueryOptions,
): Begin {
  const times = [
    args.toMs(startMs, 'startMs'),
    args.toMs(endMs, 'endMs'),
    args.toMs(stepMs, 'stepMs'),
  ] as const;
  return ({ query }) => query.range(text, ...times, settings);
}

function instant(
  text: string,
  { timeMs = Date.now() }: { timeMs?: number },
  settings: QueryExports.QueryOptions,
): Begin {
  const time = args.toMs(timeMs, 'timeMs');
  return ({ query }) => query.instant(text, time, settings);
}

/** The expression in Prometheus' layout. */
export function format(instance: Instance<ExportsWithQueries>, expression: string): string {
  return read(instance, expression, ({ query }, text) => query.format(text, PARSER_OPTIONS));
}

/** The tree of an expression. */
export function parse(instance: Instance<ExportsWithQueries>, expression: string): unknown {
  const tree = read(instance, expression, ({ query }, text) => query.parse(text, PARSER_OPTIONS));
  return JSON.parse(tree);
}

function read(
  instance: Instance<ExportsWithQueries>,
  expression: string,
  make: (exports: ExportsWithQueries, text: string) => string,
): string {
  const text = args.toText(expression, 'the expression');
  return instance.callAny(
    (exports) => make(exports, text),
    (value) => toParseError(value as ParseErrorValue, text),
  );
}

/** Options as the component takes them. */
export function toOptions(settings: QuerySettings): QueryExports.QueryOptions {
  const {
    lookbackMs = 0,
    subqueryStepMs = 0,
    samplesMax = QUERY_SAMPLES_MAX,
    memoryBytesMax = QUERY_MEMORY_BYTES_MAX,
    seriesMax = 0,
  } = settings;
  return {
    lookbackMs: args.toCount(lookbackMs, 'lookbackMs'),
    subqueryStepMs: args.toCount(subqueryStepMs, 'subqueryStepMs'),
    samplesMax: args.toCount(samplesMax, 'samplesMax'),
    memoryBytesMax: args.toCount(memoryBytesMax, 'memoryBytesMax'),
    seriesMax: args.toCount(seriesMax, 'seriesMax'),
    experimentalFunctions: settings.experimentalFunctions ?? false,
    extendedRangeSelectors: settings.extendedRangeSelectors ?? false,
    binopFillModifiers: settings.binopFillModifiers ?? false,
    delayedNameRemoval: settings.delayedNameRemoval ?? false,
    typeAndUnitLabels: settings.typeAndUnitLabels ?? false,
    startTimestamps: settings.startTimestamps ?? false,
    statsPerStep: settings.statsPerStep ?? false,
  };
}

/** Whatever syntax an evaluation may be allowed. */
export const PARSER_OPTIONS = toOptions({
  experimentalFunctions: true,
  extendedRangeSelectors: true,
  binopFillModifiers: true,
});

function notesOf(open: QueryExports.Evaluation): Piece['notes'] {
  const annotations = open.annotations(0);
  const { samples, samplesRead, samplesPeak, memoryPeakBytes, series } = open.stats();
  const texts = (areWarnings: boolean) =>
    annotations.filter(({ isWarning }) => isWarning === areWarnings).map(({ text }) => text);
  return {
    resultType: open.valueType(),
    text: open.text(),
    warnings: texts(true),
    infos: texts(false),
    stats: {
      samples: Number(samples),
      samplesRead: Number(samplesRead),
      samplesPeak: Number(samplesPeak),
      memoryPeakBytes: Number(memoryPeakBytes),
      series: Number(series),
      samplesPerStep: Array.from(open.samplesPerStep(), Number),
    },
  };
}

function toPiece(series: QueryExports.ResultSeries[], notes: Piece['notes']): Piece {
  return { series: series.map(fromSeries), notes };
}

function fromSeries(series: QueryExports.ResultSeries): Series {
  const { labels, timesMs, values, histogramTimesMs, histograms } = series;
  return {
    labels: fromLabels(labels),
    timestampsMs: Float64Array.from(timesMs, Number),
    values,
    histograms: histograms.map((one, i) => fromHistogram(Number(histogramTimesMs[i]), one)),
  };
}

function fromHistogram(timestampMs: number, value: QueryExports.NativeHistogram): Histogram {
  const { customValues, ...rest } = value;
  // Results have no stale markers: an evaluation ends the series there.
  return { timestampMs, kind: 'float', isStale: false, ...rest, customBounds: customValues };
}

/** The exception for an error of a query. */
export function toQueryError(value: QueryErrorValue, expression: string): errors.TidepoolError {
  switch (value.tag) {
    case 'parse':
      return toParseError(value.val, expression);
    case 'execution':
      return new errors.QueryExecutionError(value.val);
    case 'limit': {
      const { text, limit } = value.val;
      return new errors.LimitExceededError(limit.what, Number(limit.max), text);
    }
    case 'store':
      return toError(value.val as Parameters<typeof toError>[0]);
    default:
      return toError(value);
  }
}

/** The component counts bytes of UTF-8, JavaScript UTF-16 code units. */
function toParseError({ text, at }: ParseErrorValue, expression: string): errors.QueryParseError {
  const bytes = new TextEncoder().encode(expression);
  const index = (byte: number) => new TextDecoder().decode(bytes.subarray(0, byte)).length;
  return new errors.QueryParseError(text, index(at.start), index(at.end));
}

/** `labels`, `label/NAME/values`, `series`, `metadata` and `status/tsdb`. */

import { toSelection } from '../arguments.js';
import type { Instance, StoreExports } from '../component.js';
import { dispose } from '../imports/dispose.js';
import type { ExportsWithQueries } from '../promql/build.js';
import { PARSER_OPTIONS, toQueryError, type QueryErrorValue } from '../promql/evaluate.js';
import { fromLabels } from '../select.js';
import { nextTurn } from '../store.js';
import { countOf, timeOf, wrong } from './parameters.js';
import type { ViewerAnswer } from './protocol.js';

type Engine = Instance<ExportsWithQueries>;

const PIECE_BYTES = 256 * 1024;
/** Prometheus' words for an answer that has a part of what there is. */
const TRUNCATED = 'results truncated due to limit';
/** Series that one answer names. */
const SERIES_MAX = 100_000;

/** Names of labels, ascending. */
export function labelNames(engine: Engine, params: URLSearchParams): ViewerAnswer {
  const lookup = lookupOf(engine, params);
  return window(strings(engine, (store) => store.labelNames(lookup)), params);
}

/** Values of a label, ascending. */
export function labelValues(engine: Engine, name: string, params: URLSearchParams): ViewerAnswer {
  const lookup = lookupOf(engine, params);
  return window(strings(engine, (store) => store.labelValues(name, lookup)), params);
}

/** Series that any of the selectors selects. */
export async function series(engine: Engine, params: URLSearchParams, signal: AbortSignal): Promise<ViewerAnswer> {
  const { matcherSets, range } = lookupOf(engine, params);
  if (params.getAll('match[]').length === 0) throw wrong('match[]', 'no match[] parameter provided');
  const limit = Math.min(countOf(params, 'limit') || SERIES_MAX, SERIES_MAX);
  const found = new Map<string, object>();
  for (const matchers of matcherSets) {
    const wanted = { ...toSelection({}), matchers, range };
    const cursor = engine.call((store) => store.select(wanted)) as StoreExports.Cursor & Disposable;
    try {
      while (found.size <= limit) {
        const some = engine.call(() => cursor.next(PIECE_BYTES));
        if (some.length === 0) break;
        for (const { labels } of some) found.set(JSON.stringify(labels), fromLabels(labels));
        await nextTurn();
        signal.throwIfAborted();
      }
    } finally {
      if (!engine.hasEnded) engine.call(() => cursor[dispose]());
    }
  }
  const all = [...found.values()];
  return { data: JSON.stringify(all.slice(0, limit)), warnings: all.length > limit ? [TRUNCATED] : [] };
}

/** Names of `prometheus.MetricMetadata.MetricType`, by number. */
const TYPES = ['unknown', 'counter', 'gauge', 'histogram', 'gaugehistogram', 'summary', 'info', 'stateset'];

/** What senders said of metrics; only logs have it. */
export function metadata(engine: Engine, params: URLSearchParams): ViewerAnswer {
  const [metric, limit] = [params.get('metric') ?? '', countOf(params, 'limit') || Infinity];
  const families: [string, object[]][] = [];
  for (let first = metric; families.length < limit; ) {
    const some = engine.call((store) => store.metadata(first, PIECE_BYTES));
    const wanted = metric === '' ? some : some.filter(({ family }) => family === metric);
    for (const { family, metricType, help, unit } of wanted) {
      families.push([family, [{ type: TYPES[metricType] ?? 'unknown', help, unit }]]);
    }
    if (some.length === 0 || metric !== '') break;
    first = `${some.at(-1)!.family}\0`;
  }
  return { data: JSON.stringify(Object.fromEntries(families.slice(0, limit))) };
}

const LISTS = [
  ['seriesCountByMetricName', 'metrics-by-series'],
  ['labelValueCountByLabelName', 'names-by-values'],
  ['memoryInBytesByLabelName', 'names-by-value-bytes'],
  ['seriesCountByLabelValuePair', 'pairs-by-series'],
  ['seriesCountByLabelName', 'names-by-series'],
] as const;

/** What the series of the log are made of. */
export async function headStatus(engine: Engine, params: URLSearchParams, signal: AbortSignal): Promise<ViewerAnswer> {
  const figures = engine.call((store) => store.stats());
  const items = Math.min(countOf(params, 'limit') || 10, 10_000);
  const walk = engine.call((store) => store.cardinality(items)) as StoreExports.CardinalityWalk & Disposable;
  try {
    let pairs = engine.call(() => walk.walk());
    for (; pairs === undefined; pairs = engine.call(() => walk.walk())) {
      await nextTurn();
      signal.throwIfAborted();
    }
    const list = (of: StoreExports.CardinalityList) => {
      const all: { name: string; value: number }[] = [];
      for (;;) {
        const some = engine.call(() => walk.next(of, PIECE_BYTES));
        if (some.length === 0) return all;
        all.push(...some.map(({ name, number }) => ({ name, value: Number(number) })));
      }
    };
    const headStats = {
      numSeries: Number(figures.headSeries),
      numLabelPairs: Number(pairs),
      chunkCount: Number(figures.headChunks),
      minTime: Number(figures.headMinTimeMs),
      maxTime: Number(figures.headMaxTimeMs),
    };
    const lists = Object.fromEntries(LISTS.map(([field, of]) => [field, list(of)]));
    return { data: JSON.stringify({ headStats, ...lists }) };
  } finally {
    if (!engine.hasEnded) engine.call(() => walk[dispose]());
  }
}

function lookupOf(engine: Engine, params: URLSearchParams): StoreExports.Lookup {
  const selectors = params.getAll('match[]');
  const matcherSets = selectors.flatMap((selector) =>
    engine.callAny(
      ({ query }) => query.selectors(selector, PARSER_OPTIONS),
      (value) => toQueryError({ tag: 'parse', val: value } as QueryErrorValue, selector),
    ),
  );
  const [startMs, endMs] = [timeOf(params, 'start'), timeOf(params, 'end')];
  const { range } = toSelection({ ...(startMs !== undefined && { startMs }), ...(endMs !== undefined && { endMs }) });
  return { matcherSets: selectors.length === 0 ? [[]] : matcherSets, range, limit: 0n };
}

function strings(engine: Engine, ask: (store: typeof StoreExports) => StoreExports.Strings): string[] {
  const open = engine.call(ask) as StoreExports.Strings & Disposable;
  try {
    const all: string[] = [];
    for (;;) {
      const some = engine.call(() => open.next(PIECE_BYTES));
      if (some.length === 0) return all;
      all.push(...some);
    }
  } finally {
    if (!engine.hasEnded) engine.call(() => open[dispose]());
  }
}

/**
 * The part of a list that is asked for: of what has all searched words in it, in order and in any
 * case.
 */
function window(found: readonly string[], params: URLSearchParams): ViewerAnswer {
  const words = (params.get('search') ?? '').toLowerCase().split(/\s+/).filter((word) => word !== '');
  const all = words.length === 0 ? found : found.filter((text) => hasWords(text.toLowerCase(), words));
  const [offset, limit] = [countOf(params, 'offset'), countOf(params, 'limit') || Infinity];
  const part = all.slice(offset, offset + limit);
  return { data: JSON.stringify(part), total: all.length, warnings: offset + part.length < all.length ? [TRUNCATED] : [] };
}

function hasWords(text: string, words: readonly string[]): boolean {
  let from = 0;
  return words.every((word) => {
    const at = text.indexOf(word, from);
    from = at + word.length;
    return at >= 0;
  });
}

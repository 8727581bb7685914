/** Asks the questions of a panel. */

import { numberOf } from '../../source/exposition';
import type { QueryData } from '../../source/answers';
import type { ApiAnswer, Source } from '../../source/source';
import type { Grid } from '../../plot/columns';
import { stepMsOf, type Panel } from './panels';

/** Series that a graph asks for. */
export const GRAPH_SERIES_MAX = 1000;
/** Series that a table asks for. */
export const TABLE_SERIES_MAX = 10_000;

/** The answer to a query, with what it was asked for. */
export interface Result {
  data: QueryData;
  warnings: string[];
  infos: string[];
  grid: Grid;
  /** Whether series were left out. */
  isCut: boolean;
  /** Series that there are at the end of the range, if some were left out and it is known. */
  seriesInAll?: number;
  /** Milliseconds until the answer was there. */
  tookMs: number;
}

/** Evaluates at one time. */
export function runInstant(source: Source, panel: Panel, signal: AbortSignal): Promise<Result> {
  const end = endOf(source, panel);
  const params = new URLSearchParams({ query: panel.expr, time: `${end}`, limit: `${TABLE_SERIES_MAX}`, stats: 'true' });
  return resultOf(source, panel, 'api/v1/query', params, { start: end, end, step: 1 }, signal);
}

/** Evaluates over the panel's range. */
export function runRange(source: Source, panel: Panel, signal: AbortSignal): Promise<Result> {
  const end = endOf(source, panel);
  const grid = { start: end - panel.rangeMs / 1000, end, step: stepMsOf(panel) / 1000 };
  const params = new URLSearchParams({ query: panel.expr, start: `${grid.start}`, end: `${end}`, step: `${grid.step}`, limit: `${GRAPH_SERIES_MAX}`, stats: 'true' });
  return resultOf(source, panel, 'api/v1/query_range', params, grid, signal);
}

function endOf(source: Source, { endMs }: Panel): number {
  return Math.round((endMs ?? source.endMs ?? Date.now()) / 1000);
}

async function resultOf(source: Source, panel: Panel, path: string, params: URLSearchParams, grid: Grid, signal: AbortSignal): Promise<Result> {
  const begun = performance.now();
  const answer = await source.request(path, params, signal);
  const tookMs = performance.now() - begun;
  const { data, warnings, isCut } = cutOf(answer);
  const result: Result = { data, warnings, infos: answer.infos, grid, isCut, tookMs };
  const seriesInAll = isCut ? await countOf(source, panel.expr, grid.end, signal) : undefined;
  return seriesInAll === undefined ? result : { ...result, seriesInAll };
}

/** A warning that series were left out; the page says that in its own words. */
const CUT = /^results truncated due to limit/;

function cutOf(answer: ApiAnswer): { data: QueryData; warnings: string[]; isCut: boolean } {
  const warnings = answer.warnings.filter((text) => !CUT.test(text));
  return { data: answer.data as QueryData, warnings, isCut: warnings.length < answer.warnings.length };
}

/** How many series an expression has; nothing if that cannot be told. */
async function countOf(source: Source, expr: string, end: number, signal: AbortSignal): Promise<number | undefined> {
  const params = new URLSearchParams({ query: `count(\n${expr}\n)`, time: `${end}` });
  try {
    const data = (await source.request('api/v1/query', params, signal)).data as QueryData;
    const value = data.resultType === 'vector' ? data.result[0]?.value?.[1] : undefined;
    return value === undefined ? undefined : numberOf(value);
  } catch (error) {
    signal.throwIfAborted();
    return undefined;
  }
}

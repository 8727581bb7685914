/** Loads the lines of a chart. */

import { columnsOf, greatest, keyOf, timesOf, type Grid, type PlotData } from '../plot/columns';
import type { QueryData } from '../source/answers';
import type { Source } from '../source/source';
import { titleOf, type ChartSpec } from './spec';

/** Points of a chart. */
export const CHART_POINTS = 200;
/** Lines of each expression that are asked for; as many are drawn of all together. */
const LINES_MAX = 50;

/** The lines, and whether some were left out. */
export interface ChartData {
  data: PlotData;
  isCut: boolean;
}

/**
 * Steps of a range that ends here, at whole multiples of the step, so that points do not wander.
 */
export function chartGrid(rangeMs: number, endMs: number): Grid {
  const step = Math.max(1, Math.ceil(rangeMs / CHART_POINTS / 1000));
  const end = Math.floor(endMs / 1000 / step) * step;
  return { start: end - Math.floor(rangeMs / 1000 / step) * step, end, step };
}

/** Loads all expressions of a chart, one after the other. */
export async function loadChart(source: Source, spec: ChartSpec, grid: Grid, signal: AbortSignal): Promise<ChartData> {
  const data: PlotData = { times: timesOf(grid), lines: [] };
  let isCut = false;
  for (const { expr, title, isBelow = false } of spec.queries) {
    const params = new URLSearchParams({ query: expr, start: `${grid.start}`, end: `${grid.end}`, step: `${grid.step}`, limit: `${LINES_MAX}` });
    const answer = await source.request('api/v1/query_range', params, signal);
    const result = answer.data as QueryData;
    if (result.resultType !== 'matrix') continue;
    isCut ||= answer.warnings.length > 0 && result.result.length >= LINES_MAX;
    for (const line of columnsOf(greatest(result.result, LINES_MAX), grid).lines) {
      // Lines of two expressions may have the same labels.
      const named = title === undefined ? {} : { title: titleOf(title, line.labels), key: keyOf({ ...line.labels, '': title }) };
      data.lines.push({ ...line, ...named, ...(isBelow ? { isBelow } : {}), color: data.lines.length });
    }
  }
  isCut ||= data.lines.length > LINES_MAX;
  return { data: { ...data, lines: data.lines.slice(0, LINES_MAX) }, isCut };
}

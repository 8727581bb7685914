/** Loads the graph of a rule: what it compares, its threshold, and when its alerts were active. */

import { chartGrid } from '../../charts/load';
import { columnsOf, greatest, timesOf, type Grid, type Line, type PlotData } from '../../plot/columns';
import type { Span } from '../../plot/spans';
import { matcherOf, selectorOf } from '../../promql/selector';
import type { Threshold } from '../../promql/threshold';
import type { AlertingRule, QueryData, RangeSeries } from '../../source/answers';
import type { Source } from '../../source/source';

/** Lines that are drawn. */
export const LINES_MAX = 50;
/** The threshold's place in the palette, which no other line has. */
const LIMIT_COLOR = 7;

/** What a graph of a rule shows. */
export interface RuleGraphData {
  data: PlotData;
  spans: Span[];
  /** Whether only values beyond the threshold are drawn, because there are too many series. */
  isBeyondOnly: boolean;
  isCut: boolean;
}

/** When the alerts of a rule were active: 1 where there was such an alert, by state. */
export function alertsQuery({ name, labels = {} }: AlertingRule): string {
  // Labels with templates have other values in each alert.
  const plain = Object.entries(labels).filter(([label, value]) => label !== 'alertname' && !value.includes('{{'));
  const matchers = [matcherOf('alertname', name), ...plain.map(([label, value]) => matcherOf(label, value))];
  return `max by (alertstate) (${selectorOf('ALERTS', matchers)})`;
}

/** Loads it over a range that ends at a time. */
export async function loadRuleGraph(source: Source, rule: AlertingRule, threshold: Threshold, rangeMs: number, endMs: number, signal: AbortSignal): Promise<RuleGraphData> {
  const grid = chartGrid(rangeMs, endMs);
  const ask = async (query: string): Promise<RangeSeries[]> => {
    const params = new URLSearchParams({ query, start: `${grid.start}`, end: `${grid.end}`, step: `${grid.step}`, limit: `${LINES_MAX + 1}` });
    const data = (await source.request('api/v1/query_range', params, signal)).data as QueryData;
    return data.resultType === 'matrix' ? data.result : [];
  };
  const all = await ask(threshold.left);
  // Of many series, the ones that matter are those that the rule selects.
  const isBeyondOnly = all.length > LINES_MAX;
  const series = isBeyondOnly ? await ask(rule.query) : all;
  const states = await ask(alertsQuery(rule));
  return { data: withLimit(series, grid, threshold), spans: spansOf(states, grid), isBeyondOnly, isCut: series.length > LINES_MAX };
}

function withLimit(series: readonly RangeSeries[], grid: Grid, { op, text, limit }: Threshold): PlotData {
  const times = timesOf(grid);
  const lines = columnsOf(greatest(series, LINES_MAX), grid).lines.map((line, at): Line => ({ ...line, color: at < LIMIT_COLOR ? at : at + 1 }));
  if (!Number.isFinite(limit)) return { times, lines };
  const line: Line = { key: 'threshold', labels: {}, title: `threshold (${op} ${text})`, isLimit: true, color: LIMIT_COLOR, values: times.map(() => limit) };
  return { times, lines: [...lines, line] };
}

/**
 * Spans in which there was an alert. A sample stands for the step that it begins; what fires is not
 * shown as pending, too.
 */
export function spansOf(states: readonly RangeSeries[], { step }: Grid): Span[] {
  const timesIn = (state: string): number[] => states.filter(({ metric }) => metric['alertstate'] === state).flatMap(({ values = [] }) => values.map(([time]) => time));
  const firing = timesIn('firing');
  const isFiring = new Set(firing);
  const of = (times: readonly number[], level: Span['level']): Span[] => {
    const spans: Span[] = [];
    for (const time of times) {
      const last = spans.at(-1);
      if (last !== undefined && time <= last.end + step / 2) last.end = time + step;
      else spans.push({ start: time, end: time + step, level });
    }
    return spans;
  };
  return [...of(timesIn('pending').filter((time) => !isFiring.has(time)), 'warn'), ...of(firing, 'bad')];
}

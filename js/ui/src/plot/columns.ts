/**
 * Series of a range as columns on one grid of steps. Where a series has no sample there is a gap.
 */

import { numberOf } from '../source/exposition';
import type { Labels, RangeSeries } from '../source/answers';
import { seriesText } from '../promql/selector';

/** A line of a graph. */
export interface Line {
  /** What names the line in addresses: short, and the same as long as the labels are. */
  key: string;
  labels: Labels;
  /** Its name for people, if the labels are not to be shown. */
  title?: string;
  /** Whether its values are negated, so that people are shown them without sign. */
  isBelow?: boolean;
  /** Whether it is a threshold, which is drawn dashed. */
  isLimit?: boolean;
  /** Its place in the palette. */
  color: number;
  /** A value for each step; null is a gap. */
  values: (number | null)[];
}

/** A value of a line as people are shown it. */
export function shownValue({ isBelow }: Line, value: number | null | undefined): number | undefined {
  return value === null || value === undefined ? undefined : isBelow === true ? -value || 0 : value;
}

/** Lines over common times. */
export interface PlotData {
  /** Seconds since the epoch, ascending. */
  times: number[];
  lines: Line[];
}

/** The steps of a range: the last may lie before the end. Times are seconds. */
export interface Grid {
  start: number;
  end: number;
  step: number;
}

/** The times of a grid. */
export function timesOf({ start, end, step }: Grid): number[] {
  const count = Math.max(0, Math.floor((end - start) / step + 1e-6)) + 1;
  return Array.from({ length: count }, (_, i) => Math.round((start + i * step) * 1000) / 1000);
}

/** Puts series on a grid. Infinite values are gaps: there is no place for them. */
export function columnsOf(series: readonly RangeSeries[], grid: Grid): PlotData {
  const times = timesOf(grid);
  const lines = series.map(({ metric, values = [], histograms = [] }, color) => {
    const column = new Array<number | null>(times.length).fill(null);
    const put = (time: number, value: number): void => {
      const at = Math.round((time - grid.start) / grid.step);
      if (at >= 0 && at < column.length && Number.isFinite(value)) column[at] = value;
    };
    for (const [time, value] of values) put(time, numberOf(value));
    // Of a native histogram the graph has the count.
    for (const [time, histogram] of histograms) put(time, numberOf(histogram.count));
    return { key: keyOf(metric), labels: metric, color, values: column };
  });
  return { times, lines };
}

/** A short key of labels (FNV-1a, 32 bits). */
export function keyOf(labels: Labels): string {
  let hash = 0x811c9dc5;
  for (const c of seriesText(labels)) {
    hash = Math.imul(hash ^ c.codePointAt(0)!, 0x01000193);
  }
  return (hash >>> 0).toString(36);
}

/** At most so many series, those with the greatest values, in the order in which they came. */
export function greatest(series: readonly RangeSeries[], countMax: number): RangeSeries[] {
  if (series.length <= countMax) return [...series];
  const size = ({ values = [], histograms = [] }: RangeSeries): number => {
    let most = 0;
    for (const [, value] of values) most = Math.max(most, Math.abs(numberOf(value)) || 0);
    for (const [, { count }] of histograms) most = Math.max(most, numberOf(count) || 0);
    return most;
  };
  const sized = series.map((entry, index) => ({ entry, index, size: size(entry) }));
  sized.sort((a, b) => b.size - a.size || a.index - b.index);
  return sized.slice(0, countMax).sort((a, b) => a.index - b.index).map(({ entry }) => entry);
}

/** Figures of a line. */
export interface Summary {
  last: number | undefined;
  min: number | undefined;
  max: number | undefined;
  mean: number | undefined;
}

/** Summarizes what is there of a column. */
export function summaryOf(values: readonly (number | null)[]): Summary {
  let [count, sum, min, max] = [0, 0, Infinity, -Infinity];
  let last: number | undefined;
  for (const value of values) {
    if (value === null) continue;
    count += 1;
    sum += value;
    min = Math.min(min, value);
    max = Math.max(max, value);
    last = value;
  }
  return count === 0 ? { last, min: undefined, max: undefined, mean: undefined } : { last, min, max, mean: sum / count };
}

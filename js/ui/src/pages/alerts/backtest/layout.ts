/** Bars of a timeline: a row for each set of labels, by when its first alert was active. */

import { timeOf } from '../../../figures/alerts';
import type { BacktestAlert, Labels } from '../../../source/answers';

/** A time in which an alert was in one state, within the range. */
export interface Bar {
  state: 'pending' | 'firing';
  fromMs: number;
  toMs: number;
  /** Whether it is the state at the end of the range. */
  isOpen: boolean;
  /** Percent of the timeline's width. */
  left: number;
  width: number;
}

/** The bars of the alerts with the same labels. */
export interface TimelineRow {
  labels: Labels;
  bars: Bar[];
}

/**
 * The rows of a timeline from one time to another.
 *
 * @param rowsMax rows that are kept; `more` counts the others
 */
export function timelineOf(alerts: readonly BacktestAlert[], startMs: number, endMs: number, rowsMax: number): { rows: TimelineRow[]; more: number } {
  const byLabels = new Map<string, TimelineRow>();
  for (const alert of [...alerts].sort((a, b) => beginOf(a) - beginOf(b))) {
    const key = JSON.stringify(Object.entries(alert.labels).sort());
    const row = byLabels.get(key) ?? { labels: alert.labels, bars: [] };
    byLabels.set(key, row);
    row.bars.push(...barsOf(alert, startMs, endMs));
  }
  const rows = [...byLabels.values()];
  return { rows: rows.slice(0, rowsMax), more: Math.max(0, rows.length - rowsMax) };
}

function beginOf({ activeAt, firedAt }: BacktestAlert): number {
  return timeOf(activeAt) ?? timeOf(firedAt) ?? 0;
}

function barsOf(alert: BacktestAlert, startMs: number, endMs: number): Bar[] {
  const firedMs = timeOf(alert.firedAt) ?? startMs;
  const activeMs = timeOf(alert.activeAt) ?? firedMs;
  const resolvedMs = timeOf(alert.resolvedAt);
  const bar = (state: Bar['state'], beginMs: number, finishMs: number, isOpen: boolean): Bar => {
    const [fromMs, toMs] = [beginMs, finishMs].map((ms) => Math.min(endMs, Math.max(startMs, ms))) as [number, number];
    return { state, fromMs, toMs, isOpen, left: shareOf(fromMs - startMs), width: shareOf(toMs - fromMs) };
  };
  const shareOf = (ms: number): number => Math.round((ms / Math.max(1, endMs - startMs)) * 100_000) / 1000;
  const firing = bar('firing', firedMs, resolvedMs ?? endMs, resolvedMs === undefined);
  return activeMs < firedMs ? [bar('pending', activeMs, firedMs, false), firing] : [firing];
}

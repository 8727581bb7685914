/** What `/metrics` said at several times: how figures change while the page is open. */

import type { Metrics } from '../source/exposition';

/** What was said at a time, in milliseconds of the browser's clock. */
export interface Snapshot {
  atMs: number;
  metrics: Metrics;
}

/** Snapshots that are kept: ten minutes at one each 15 s. */
const SNAPSHOTS_MAX = 40;

/** Adds a snapshot at the end. Those from before a restart of the process are dropped. */
export function withSnapshot(snapshots: readonly Snapshot[], next: Snapshot): Snapshot[] {
  const started = startOf(next.metrics);
  const kept = snapshots.filter((snapshot) => startOf(snapshot.metrics) === started);
  return [...kept, next].slice(-SNAPSHOTS_MAX);
}

function startOf(metrics: Metrics): number | undefined {
  return metrics.value('process_start_time_seconds');
}

/**
 * How much a figure changes in a second, over all snapshots; nothing from less than two, or from
 * less than 5 s.
 */
export function changeOf(snapshots: readonly Snapshot[], figure: (metrics: Metrics) => number | undefined): number | undefined {
  const first = snapshots[0];
  const last = snapshots.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const [before, after] = [figure(first.metrics), figure(last.metrics)];
  const seconds = (last.atMs - first.atMs) / 1000;
  return before === undefined || after === undefined || seconds < 5 ? undefined : (after - before) / seconds;
}

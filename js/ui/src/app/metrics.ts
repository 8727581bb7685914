/** `/metrics` of the node for components, with what it said before. */

import { useEffect, useState } from 'preact/hooks';
import { withSnapshot, type Snapshot } from '../figures/snapshots';
import { Metrics } from '../source/exposition';
import { ApiError } from '../source/source';
import { useApp } from './context';
import { useLoad, type Loaded } from './load';

/** How often figures are asked for, in milliseconds: as often as a Prometheus would. */
export const FIGURES_EVERY_MS = 15_000;

/** Snapshots of `/metrics`, the newest last. */
export function useSnapshots(): Loaded<Snapshot[]> {
  const { source } = useApp();
  const [snapshots, setSnapshots] = useState<Snapshot[]>([]);
  const load = async (signal: AbortSignal): Promise<Snapshot> => {
    if (source.metrics === undefined) throw new ApiError('missing', 'this source has no /metrics');
    const text = await source.metrics(signal);
    return { atMs: Date.now(), metrics: new Metrics(text) };
  };
  const newest = useLoad('metrics', load, { everyMs: FIGURES_EVERY_MS });
  useEffect(() => {
    if (newest.value !== undefined) setSnapshots((before) => withSnapshot(before, newest.value!));
  }, [newest.value]);
  return { ...newest, value: snapshots.length === 0 ? undefined : snapshots };
}

/** Series and memory against their limits. */

import type { Labels } from '../source/answers';
import type { Metrics } from '../source/exposition';

/** Something that is used of something. */
export interface Use {
  used: number | undefined;
  limit: number | undefined;
}

/** What is used of what. */
export interface Limits {
  series: Use;
  /** Bytes of the process. */
  memory: Use;
  /** Bytes of the head. */
  head: Use;
}

/** The figures of now. */
export function limits(metrics: Metrics, flags: Labels | undefined): Limits {
  const seriesMax = Number(flags?.['max-series']);
  return {
    series: { used: metrics.value('prometheus_tsdb_head_series'), limit: seriesMax > 0 ? seriesMax : undefined },
    memory: { used: metrics.value('process_resident_memory_bytes'), limit: metrics.value('tidepool_memory_limit_bytes', { part: 'all' }) },
    head: { used: metrics.value('tidepool_head_memory_used_bytes'), limit: metrics.value('tidepool_memory_limit_bytes', { part: 'head' }) },
  };
}

/** The share that is used; nothing without a limit. */
export function shareOf({ used, limit }: Use): number | undefined {
  return used === undefined || limit === undefined || limit === 0 ? undefined : used / limit;
}

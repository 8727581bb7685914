/** What the node has recorded of itself, as the job `tidepool`. */

import { useApp } from '../../app/context';
import { useLoad } from '../../app/load';
import { matcherOf } from '../../promql/selector';
import { numberOf } from '../../source/exposition';
import type { QueryData } from '../../source/answers';

const EVERY_MS = 60_000;

/** Figures that need the past. */
export interface Own {
  /** Bytes written in the last day; nothing if the records do not go back that far. */
  writtenPerDay: number | undefined;
  /** Change of the lag in a second, by destination. */
  lagChange: ReadonlyMap<string, number>;
}

/**
 * The figures, asked for each minute. Without such records they are empty.
 *
 * @param instance the node's own: a centre has the records of others, too
 */
export function useOwn(instance: string | undefined): Own | undefined {
  const { source } = useApp();
  const of = `{job="tidepool",${matcherOf('instance', instance ?? '')}}`;
  const written = `tidepool_disk_written_bytes_total${of}`;
  const load = async (signal: AbortSignal): Promise<Own> => {
    const ask = async (query: string) => {
      const { data } = await source.request('api/v1/query', new URLSearchParams({ query, limit: '100' }), signal);
      const result = data as QueryData;
      return result.resultType === 'vector' ? result.result : [];
    };
    // Only if a day ago there was a sample: an increase over less is none of a day.
    const [daily] = await ask(`sum(increase(${written}[1d])) and on() count(${written} offset 1d)`);
    const lags = await ask(`deriv(tidepool_remote_storage_lag_seconds${of}[10m])`);
    return {
      writtenPerDay: daily?.value === undefined ? undefined : numberOf(daily.value[1]),
      lagChange: new Map(lags.flatMap(({ metric, value }) => (value === undefined ? [] : [[metric['remote_name'] ?? '', numberOf(value[1])] as const]))),
    };
  };
  return useLoad(instance === undefined ? undefined : `own ${instance}`, load, { everyMs: EVERY_MS }).value;
}

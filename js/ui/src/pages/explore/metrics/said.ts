/** Types, helps and numbers of series of the metrics on a page. */

import { useApp } from '../../../app/context';
import { useLoad } from '../../../app/load';
import { familiesOf, loadMetadata, Metadata } from '../../../editor/metadata';
import { quoted } from '../../../promql/selector';
import { numberOf } from '../../../source/exposition';
import type { FamilyMetadata, MetadataMap, QueryData } from '../../../source/answers';
import type { Source } from '../../../source/source';

/** Families that are asked for one by one, where there are too many to ask for all. */
const SINGLE_MAX = 50;
/** Seconds after which the count of series gives up: it is a help only. */
const COUNT_TIMEOUT = '5s';

/** What is said of each of these metrics. */
export function useSaid(names: readonly string[]): ReadonlyMap<string, FamilyMetadata> {
  const { source } = useApp();
  const all = useLoad('metadata', (signal) => loadMetadata(source, signal)).value;
  const missing = all === undefined || all.isWhole ? [] : names.filter((name) => all.of(name) === undefined);
  const key = missing.length === 0 ? undefined : missing.join(' ');
  const single = useLoad(key, (signal) => loadSingle(source, missing, signal)).value;
  const said = names.flatMap((name) => {
    const found = all?.of(name) ?? single?.of(name);
    return found === undefined ? [] : [[name, found] as const];
  });
  return new Map(said);
}

async function loadSingle(source: Source, names: readonly string[], signal: AbortSignal): Promise<Metadata> {
  const families = [...new Set(names.flatMap(familiesOf))].slice(0, SINGLE_MAX);
  const map: MetadataMap = {};
  for (const metric of families) {
    const { data } = await source.request('api/v1/metadata', new URLSearchParams({ metric }), signal);
    Object.assign(map, data);
  }
  return new Metadata(map);
}

/** How many series each of these metrics has now. */
export function useSeriesCounts(names: readonly string[]): ReadonlyMap<string, number> | undefined {
  const { source } = useApp();
  const key = names.length === 0 ? undefined : names.join(' ');
  return useLoad(key, async (signal) => {
    const pattern = names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|');
    const params = new URLSearchParams({ query: `count by (__name__) ({__name__=~${quoted(pattern)}})`, timeout: COUNT_TIMEOUT });
    if (source.endMs !== undefined) params.set('time', `${source.endMs / 1000}`);
    const data = (await source.request('api/v1/query', params, signal)).data as QueryData;
    const counts = data.resultType === 'vector' ? data.result : [];
    return new Map(counts.map(({ metric, value }) => [metric['__name__'] ?? '', numberOf(value?.[1] ?? '0')]));
  }).value;
}

/** The labels that there are, and their values. */

import { useMemo } from 'preact/hooks';
import { useAnswer } from '../../../app/load';
import { hashOf, queryHref, type Route } from '../../../app/route';
import { formatCount } from '../../../format/number';
import { matcherOf } from '../../../promql/selector';
import type { Ranked, TsdbStatus } from '../../../source/answers';
import { Await } from '../../../widgets/state';
import { newPanel, searchOf } from '../../query/panels';
import { listState, SearchRow } from '../../../widgets/search-row';
import { pageOf, useNames, useValues } from '../values';

const ROWS = 100;
/** Labels whose counts are asked for. */
const COUNTS_MAX = 10_000;

export function Labels({ route }: { route: Route }) {
  const label = route.params.get('label');
  return label === null ? <Names route={route} /> : <Values key={label} label={label} route={route} />;
}

function Names({ route }: { route: Route }) {
  const { search, offset } = listState(route);
  const window = useNames(search, offset);
  const status = useAnswer('api/v1/status/tsdb', new URLSearchParams({ limit: `${COUNTS_MAX}` })).value?.data as TsdbStatus | undefined;
  const counts = useMemo(() => ({ values: mapOf(status?.labelValueCountByLabelName), series: mapOf(status?.seriesCountByLabelName) }), [status]);
  return (
    <div class="card">
      <SearchRow route={route} what="labels" size={ROWS} total={window.value?.total ?? 0} isOpenEnd={window.value?.isOpenEnd ?? false} />
      <Await of={window}>
        {(window) => (
          <table class="list">
            <caption class="hidden">Labels</caption>
            <thead>
              <tr>
                <th scope="col">Label</th>
                <th scope="col" class="number">
                  Values
                </th>
                <th scope="col" class="number">
                  Series
                </th>
              </tr>
            </thead>
            <tbody>
              {pageOf(window, offset, ROWS).map((name) => (
                <tr key={name}>
                  <td>
                    <a class="mono" href={route.search + hashOf(['explore', 'labels'], { label: name })}>
                      {name}
                    </a>
                  </td>
                  <td class="number">{formatCount(counts.values.get(name))}</td>
                  <td class="number">{formatCount(counts.series.get(name))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Await>
      <p class="muted">Values and series are counted in the head: those of the last hours.</p>
    </div>
  );
}

function Values({ label, route }: { label: string; route: Route }) {
  const { search, offset } = listState(route);
  const window = useValues(label, search, offset);
  return (
    <>
      <p>
        <a href={route.search + hashOf(['explore', 'labels'])}>‹ All labels</a>
      </p>
      <div class="card">
        <h2>
          Values of <span class="mono">{label}</span>
        </h2>
        <SearchRow route={route} what="values" size={ROWS} total={window.value?.total ?? 0} isOpenEnd={window.value?.isOpenEnd ?? false} />
        <Await of={window}>
          {(window) => (
            <ul class="values-list">
              {pageOf(window, offset, ROWS).map((value) => (
                <li key={value}>
                  <a class="mono" href={queryHref(searchOf([{ ...newPanel(), expr: `{${matcherOf(label, value)}}` }]))}>
                    {value}
                  </a>
                </li>
              ))}
            </ul>
          )}
        </Await>
      </div>
    </>
  );
}

function mapOf(ranked: readonly Ranked[] = []): Map<string, number> {
  return new Map(ranked.map(({ name, value }) => [name, value]));
}

/** The metrics that there are. */

import { useApp } from '../../../app/context';
import { hashOf, type Route } from '../../../app/route';
import { formatCount } from '../../../format/number';
import { Await } from '../../../widgets/state';
import { listState, SearchRow } from '../../../widgets/search-row';
import { pageOf, useValues } from '../values';
import { Detail } from './detail';
import { useSaid, useSeriesCounts } from './said';

const ROWS = 50;

export function Metrics({ route }: { route: Route }) {
  const metric = route.params.get('metric');
  return metric === null ? <List route={route} /> : <Detail key={metric} metric={metric} route={route} />;
}

function List({ route }: { route: Route }) {
  const { search, offset } = listState(route);
  const window = useValues('__name__', search, offset);
  return (
    <div class="card">
      <SearchRow route={route} what="metrics" size={ROWS} total={window.value?.total ?? 0} isOpenEnd={window.value?.isOpenEnd ?? false} />
      <Await of={window}>{(window) => <Rows names={pageOf(window, offset, ROWS)} route={route} />}</Await>
    </div>
  );
}

function Rows({ names, route }: { names: string[]; route: Route }) {
  const { source } = useApp();
  const said = useSaid(names);
  const counts = useSeriesCounts(names);
  if (names.length === 0) return <p class="muted">There is no such metric.</p>;
  return (
    <table class="list">
      <caption class="hidden">Metrics</caption>
      <thead>
        <tr>
          <th scope="col">Metric</th>
          <th scope="col">Type</th>
          <th scope="col" class="wide">
            Unit
          </th>
          <th scope="col" class="number" title={source.kind === 'node' ? 'Series that have a sample now' : 'Series at the end of the data'}>
            Series
          </th>
          <th scope="col" class="wide">
            Help
          </th>
        </tr>
      </thead>
      <tbody>
        {names.map((name) => {
          const of = said.get(name);
          return (
            <tr key={name}>
              <td>
                <a class="mono" href={route.search + hashOf(['explore', 'metrics'], withMetric(route, name))}>
                  {name}
                </a>
              </td>
              <td>{of?.type ?? ''}</td>
              <td class="wide">{of?.unit ?? ''}</td>
              <td class="number">{counts === undefined ? '' : formatCount(counts.get(name) ?? 0)}</td>
              <td class="wide help">{of?.help ?? ''}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function withMetric(route: Route, name: string): URLSearchParams {
  const params = new URLSearchParams(route.params);
  params.set('metric', name);
  return params;
}

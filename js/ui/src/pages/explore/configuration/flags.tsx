/** All flags with their values. */

import { useAnswer } from '../../../app/load';
import type { Route } from '../../../app/route';
import { isFound } from '../../../promql/selector';
import type { Labels } from '../../../source/answers';
import { Await } from '../../../widgets/state';
import { listState, SearchRow } from '../../../widgets/search-row';

const ROWS = 1000;
const NO_PARAMS = new URLSearchParams();

export function Flags({ route }: { route: Route }) {
  const { search } = listState(route);
  const flags = useAnswer('api/v1/status/flags', NO_PARAMS);
  return (
    <div class="card">
      <SearchRow route={route} what="flags" size={ROWS} total={0} />
      <Await of={flags}>
        {({ data }) => (
          <table class="list">
            <caption class="hidden">Flags</caption>
            <thead>
              <tr>
                <th scope="col">Flag</th>
                <th scope="col">Value</th>
              </tr>
            </thead>
            <tbody>
              {Object.entries(data as Labels)
                .filter(([name, value]) => isFound(`${name} ${value}`, search))
                .slice(0, ROWS)
                .map(([name, value]) => (
                  <tr key={name}>
                    <th scope="row" class="mono">
                      --{name}
                    </th>
                    <td class="mono">{value}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        )}
      </Await>
    </div>
  );
}

/** What the series of the head are made of: where a limit of series or memory is spent. */

import { useState } from 'preact/hooks';
import { useApp } from '../../../app/context';
import { useAnswer } from '../../../app/load';
import { hashOf } from '../../../app/route';
import { formatCount, formatNumber, type Unit } from '../../../format/number';
import { formatTime } from '../../../format/time';
import type { Ranked, TsdbStatus } from '../../../source/answers';
import { Facts } from '../../../widgets/facts';
import { Await } from '../../../widgets/state';

const LIMITS = [10, 50, 250];

export function Cardinality() {
  const { zone } = useApp();
  const [limit, setLimit] = useState(LIMITS[0]!);
  const status = useAnswer('api/v1/status/tsdb', new URLSearchParams({ limit: `${limit}` }));
  return (
    <Await of={status}>
      {({ data }) => {
        const { headStats, ...lists } = data as TsdbStatus;
        const all = headStats.numSeries;
        return (
          <>
            <div class="card">
              <Facts
                rows={[
                  ['Series in the head', formatCount(all)],
                  ['Pairs of labels', formatCount(headStats.numLabelPairs)],
                  ['Chunks', formatCount(headStats.chunkCount)],
                  ['Oldest sample', headStats.minTime > headStats.maxTime ? undefined : formatTime(headStats.minTime, zone)],
                  ['Newest sample', headStats.minTime > headStats.maxTime ? undefined : formatTime(headStats.maxTime, zone)],
                ]}
              />
              <label>
                Entries of a list{' '}
                <select value={limit} onChange={(event) => setLimit(Number(event.currentTarget.value))}>
                  {LIMITS.map((count) => (
                    <option value={count}>{count}</option>
                  ))}
                </select>
              </label>
            </div>
            <div class="cards two">
              <RankedList title="Metrics by series" list={lists.seriesCountByMetricName} all={all} href={(metric) => hashOf(['explore', 'metrics'], { metric })} />
              <RankedList title="Labels by values" list={lists.labelValueCountByLabelName} href={(label) => hashOf(['explore', 'labels'], { label })} />
              <RankedList title="Labels by series" list={lists.seriesCountByLabelName} all={all} href={(label) => hashOf(['explore', 'labels'], { label })} />
              <RankedList title="Pairs by series" list={lists.seriesCountByLabelValuePair} all={all} />
              <RankedList title="Labels by memory of their values" list={lists.memoryInBytesByLabelName} unit="bytes" href={(label) => hashOf(['explore', 'labels'], { label })} />
            </div>
          </>
        );
      }}
    </Await>
  );
}

/** @param all what all entries together have, for their shares */
function RankedList({ title, list, all, unit, href }: { title: string; list: readonly Ranked[] | undefined; all?: number; unit?: Unit; href?: (name: string) => string }) {
  if (list === undefined || list.length === 0) return null;
  const most = all ?? list[0]!.value;
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <table class="list ranked">
        <caption class="hidden">{title}</caption>
        <tbody>
          {list.map(({ name, value }) => (
            <tr>
              <th scope="row">{href === undefined ? <span class="mono">{name}</span> : <a class="mono" href={href(name)}>{name}</a>}</th>
              <td class="number">{unit === undefined ? formatCount(value) : formatNumber(value, unit)}</td>
              <td class="bar-cell">
                <i class="bar" style={{ width: `${most === 0 ? 0 : Math.min(100, (100 * value) / most)}%` }} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

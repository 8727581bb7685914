/** One metric: what it is, how it runs, and its labels. */

import { useApp } from '../../../app/context';
import { useAnswer } from '../../../app/load';
import { hashOf, queryHref, type Route } from '../../../app/route';
import { Chart } from '../../../charts/chart';
import { formatCount } from '../../../format/number';
import { selectorOf } from '../../../promql/selector';
import type { Labels } from '../../../source/answers';
import { Await } from '../../../widgets/state';
import { Facts } from '../../../widgets/facts';
import { newPanel, searchOf } from '../../query/panels';
import { previewOf } from './preview';
import { useSaid, useSeriesCounts } from './said';

/** Series that are looked at for labels. */
const SERIES_MAX = 1000;
/** Values of a label that are shown. */
const VALUES_MAX = 8;
const HOUR_MS = 3_600_000;

export function Detail({ metric, route }: { metric: string; route: Route }) {
  const { source } = useApp();
  const said = useSaid([metric]).get(metric);
  const count = useSeriesCounts([metric])?.get(metric);
  const endMs = source.endMs ?? Date.now();
  // Rounded, so that it stays the same while the page is open.
  const start = Math.floor((endMs - HOUR_MS) / HOUR_MS) * 3600;
  const series = useAnswer('api/v1/series', new URLSearchParams({ 'match[]': selectorOf(metric), limit: `${SERIES_MAX}`, start: `${start}` }));
  const back = new URLSearchParams(route.params);
  back.delete('metric');
  const spec = previewOf(metric, said);
  return (
    <>
      <p>
        <a href={route.search + hashOf(['explore', 'metrics'], back)}>‹ All metrics</a>
      </p>
      <div class="card">
        <h2 class="mono">{metric}</h2>
        {said?.help !== undefined && said.help !== '' && <p>{said.help}</p>}
        <Facts
          rows={[
            ['Type', said?.type],
            ['Unit', said?.unit === '' ? undefined : said?.unit],
            ['Series now', count === undefined ? undefined : formatCount(count)],
            [
              'Query',
              <a class="mono" href={queryHref(searchOf([{ ...newPanel(), expr: selectorOf(metric), tab: 'graph' }]))}>
                {selectorOf(metric)}
              </a>,
            ],
          ]}
        />
      </div>
      <Chart spec={spec} rangeMs={HOUR_MS} syncKey="preview" />
      <div class="card">
        <h2>Labels</h2>
        <Await of={series}>
          {({ data, warnings }) => <LabelTable metric={metric} series={data as Labels[]} isCut={warnings.length > 0} />}
        </Await>
      </div>
    </>
  );
}

function LabelTable({ metric, series, isCut }: { metric: string; series: readonly Labels[]; isCut: boolean }) {
  const values = new Map<string, Map<string, number>>();
  for (const labels of series) {
    for (const [name, value] of Object.entries(labels)) {
      if (name === '__name__') continue;
      const of = values.get(name) ?? new Map<string, number>();
      values.set(name, of.set(value, (of.get(value) ?? 0) + 1));
    }
  }
  if (values.size === 0) return <p class="muted">Its series have no labels.</p>;
  return (
    <>
      {isCut && <p class="notice warn">Only the first {formatCount(series.length)} series were looked at.</p>}
      <table class="list">
        <caption class="hidden">Labels of {metric}</caption>
        <thead>
          <tr>
            <th scope="col">Label</th>
            <th scope="col" class="number">
              Values
            </th>
            <th scope="col">Most frequent</th>
          </tr>
        </thead>
        <tbody>
          {[...values].map(([name, counts]) => (
            <tr>
              <td class="label">
                <a class="mono" href={hashOf(['explore', 'labels'], { label: name })}>
                  {name}
                </a>
              </td>
              <td class="number">{formatCount(counts.size)}</td>
              <td>
                <span class="boxes">
                  {[...counts]
                    .sort((a, b) => b[1] - a[1])
                    .slice(0, VALUES_MAX)
                    .map(([value, count]) => (
                      <span class="box mono">
                        {value} <span class="muted">{formatCount(count)}</span>
                      </span>
                    ))}
                  {counts.size > VALUES_MAX && <span class="muted">…</span>}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

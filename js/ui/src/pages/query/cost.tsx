/** What a query has cost: time by phase, and samples. */

import { formatCount, formatNumber } from '../../format/number';
import type { QueryStats } from '../../source/answers';

const PHASES: [string, string][] = [
  ['execQueueTime', 'in the queue'],
  ['queryPreparationTime', 'preparation'],
  ['innerEvalTime', 'evaluation'],
  ['resultSortTime', 'sorting'],
];

/** A line under a result. */
export function CostLine({ stats, tookMs, series, isCut, step }: { stats: QueryStats | undefined; tookMs: number; series: number; isCut: boolean; step?: string }) {
  const read = stats?.samples?.samplesRead ?? stats?.samples?.totalQueryableSamples;
  const total = stats?.timings?.['execTotalTime'];
  return (
    <p class="muted cost">
      {formatCount(series)}
      {isCut ? '+' : ''} series · {total === undefined ? '' : `${formatNumber(total, 'seconds', 2)} in the source, `}
      {formatNumber(tookMs / 1000, 'seconds', 2)} until here
      {read !== undefined && ` · ${formatCount(read)} samples read`}
      {step !== undefined && ` · a point each ${step}`}
    </p>
  );
}

/** All of it. */
export function CostTable({ stats }: { stats: QueryStats }) {
  const { timings = {}, samples } = stats;
  const known = PHASES.filter(([name]) => timings[name] !== undefined);
  const total = known.reduce((sum, [name]) => sum + timings[name]!, 0);
  const rows: [string, number | undefined][] = [
    ['samples read', samples?.samplesRead],
    ['samples evaluated', samples?.totalQueryableSamples],
    ['most samples held at a time', samples?.peakSamples],
  ];
  return (
    <table class="facts">
      <caption class="hidden">Cost of the query</caption>
      <tbody>
        {known.map(([name, title]) => (
          <tr>
            <th scope="row">{title}</th>
            <td class="number">{formatNumber(timings[name], 'seconds')}</td>
            <td class="bar-cell">
              <i class="bar" style={{ width: `${total === 0 ? 0 : (100 * timings[name]!) / total}%` }} />
            </td>
          </tr>
        ))}
        {rows.map(
          ([title, count]) =>
            count !== undefined && (
              <tr>
                <th scope="row">{title}</th>
                <td class="number">{formatCount(count)}</td>
                <td />
              </tr>
            ),
        )}
      </tbody>
    </table>
  );
}

/** The groups of rules whose evaluation takes the most of their interval. */

import { useNow } from '../../app/clock';
import { lateSeconds, shareOfInterval, timeOf } from '../../figures/alerts';
import { formatNumber } from '../../format/number';
import { formatAgo } from '../../format/time';
import { printDuration } from '../../promql/duration';
import type { RuleGroup } from '../../source/answers';

const ROWS = 10;
/** The share of its interval from which on a group is near to missing evaluations. */
const SHARE_WARN = 0.5;

/** @param aheadMs what the node's clock is ahead of the browser's */
export function SlowestGroups({ groups, aheadMs }: { groups: readonly RuleGroup[]; aheadMs: number }) {
  const now = useNow(5000) + aheadMs;
  const late = (group: RuleGroup): boolean => lateSeconds(group, now) !== undefined;
  const sorted = [...groups].sort((a, b) => Number(late(b)) - Number(late(a)) || shareOfInterval(b) - shareOfInterval(a));
  return (
    <section class="card" aria-label="Slowest groups">
      <h2>Slowest groups</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Groups by the share of their interval">
        <table>
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col" class="number">
                Evaluation
              </th>
              <th scope="col" class="number">
                Interval
              </th>
              <th scope="col" class="number">
                Share
              </th>
              <th scope="col">Evaluated</th>
              <th scope="col" class="wide">
                File
              </th>
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, ROWS).map((group) => {
              const last = timeOf(group.lastEvaluation);
              return (
                <tr key={`${group.file} ${group.name}`}>
                  <th scope="row">{group.name}</th>
                  <td class="number">{last === undefined ? '–' : formatNumber(group.evaluationTime, 'seconds', 3)}</td>
                  <td class="number">{printDuration(group.interval * 1000)}</td>
                  <td class={`number${shareOfInterval(group) >= SHARE_WARN ? ' warn-text' : ''}`}>{last === undefined ? '–' : formatNumber(shareOfInterval(group), 'ratio', 2)}</td>
                  <td class={late(group) ? 'warn-text' : ''}>{last === undefined ? 'not evaluated yet' : `${formatAgo(last, Math.max(now, last))}${late(group) ? ', late' : ''}`}</td>
                  <td class="wide">{group.file}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** What rules would have done: the verdict, a table for each group, and the alerts that fired. */

import { useApp } from '../../../app/context';
import { backtestLevel, backtestText, backtestVerdict, circularText, seriesText } from '../../../figures/backtest';
import { formatCount } from '../../../format/number';
import { formatTime, zoneName } from '../../../format/time';
import { printDuration } from '../../../promql/duration';
import type { BacktestAlertingRule, BacktestGroup, BacktestRule } from '../../../source/answers';
import { Remarks } from '../../../widgets/state';
import { FiredRule } from './fired';
import type { Answered } from './run';
import { TimelineKeys } from './timeline';

export function Result({ answered: { data, warnings, infos } }: { answered: Answered }) {
  const { zone } = useApp();
  const [startMs, endMs] = [data.start * 1000, data.end * 1000];
  const { level, text } = backtestVerdict(data);
  const circular = circularText(data);
  return (
    <>
      <section class={`verdict ${level}`} aria-label="What would have fired">
        <h2>
          <i class={`dot ${level}`} aria-hidden="true" />
          {text}
        </h2>
        <p class="muted">
          From {formatTime(startMs, zone)} to {formatTime(endMs, zone)}, {zoneName(zone)}. No alert is active at the start.
        </p>
      </section>
      <Remarks warnings={circular === undefined ? warnings : [circular, ...warnings]} infos={infos} />
      {data.groups.map((group) => (
        <Group group={group} startMs={startMs} endMs={endMs} />
      ))}
      <p class="card">{seriesText(data)}</p>
    </>
  );
}

function Group({ group, startMs, endMs }: { group: BacktestGroup; startMs: number; endMs: number }) {
  const { name, interval, rules } = group;
  const fired = rules.filter((rule): rule is BacktestAlertingRule => rule.type === 'alerting' && rule.alerts.length > 0);
  return (
    <section class="card" aria-label={`Group ${name}`}>
      <h2>
        {name} <small class="muted">evaluated every {printDuration(interval * 1000)}</small>
      </h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Rules of ${name}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Rule</th>
              <th scope="col">Result</th>
              <th scope="col" class="number wide">
                Evaluations
              </th>
              <th scope="col" class="number">
                Failed
              </th>
            </tr>
          </thead>
          <tbody>
            {rules.map((rule) => (
              <RuleRow rule={rule} />
            ))}
          </tbody>
        </table>
      </div>
      {fired.length > 0 && (
        <>
          <TimelineKeys />
          <ul class="targets">
            {fired.map((rule) => (
              <FiredRule rule={rule} startMs={startMs} endMs={endMs} />
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function RuleRow({ rule }: { rule: BacktestRule }) {
  const level = backtestLevel(rule);
  const { failures, lastError = '' } = rule;
  return (
    <tr>
      <th scope="row">
        <i class={`dot ${level}`} aria-hidden="true" />
        {rule.name}
      </th>
      <td>
        <span class={level === 'bad' ? 'bad-text' : undefined}>{backtestText(rule)}</span>
        {lastError !== '' && <p class="bad-text">The last error: {lastError}</p>}
      </td>
      <td class="number wide">{formatCount(rule.evaluations)}</td>
      <td class={`number${failures > 0 ? ' warn-text' : ''}`}>{formatCount(failures)}</td>
    </tr>
  );
}

/** The alerts of a rule that would have fired. */

import { useState } from 'preact/hooks';
import { useApp } from '../../../app/context';
import { queryHref } from '../../../app/route';
import { Highlight } from '../../../editor/highlight';
import { timeOf, waitsText } from '../../../figures/alerts';
import { backtestText } from '../../../figures/backtest';
import { formatCount, formatDuration, formatNumber } from '../../../format/number';
import { formatTime } from '../../../format/time';
import type { BacktestAlert, BacktestAlertingRule } from '../../../source/answers';
import { numberOf } from '../../../source/exposition';
import { LabelBoxes } from '../../../widgets/series';
import { searchOf } from '../../query/panels';
import { panelAround } from './range';
import { Timeline } from './timeline';

/** Alerts that are shown at once. */
const ALERTS_MAX = 10;

export function FiredRule({ rule, startMs, endMs }: { rule: BacktestAlertingRule; startMs: number; endMs: number }) {
  const [isAll, setAll] = useState(false);
  const { alerts, omitted, name } = rule;
  const rest = isAll ? 0 : alerts.length - ALERTS_MAX;
  return (
    <li class="target rule">
      <div class="target-head">
        <h3>
          <i class="dot bad" aria-hidden="true" />
          <span class="bad-text">{backtestText(rule)}</span> {name}
        </h3>
        <span class="muted">{waitsText(rule)}</span>
      </div>
      <p>
        <Highlight text={rule.query} />
      </p>
      <Timeline rule={rule} startMs={startMs} endMs={endMs} />
      <div class="scroll" tabIndex={0} role="region" aria-label={`Alerts of ${name}`}>
        <table class="fired">
          <thead>
            <tr>
              <th scope="col">Labels</th>
              <th scope="col">Active at</th>
              <th scope="col">Fired at</th>
              <th scope="col">Resolved at</th>
              <th scope="col" class="number">
                Value
              </th>
              <th scope="col">
                <span class="hidden">Link</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {alerts.slice(0, isAll ? undefined : ALERTS_MAX).map((alert) => (
              <AlertRow rule={rule} alert={alert} endMs={endMs} />
            ))}
          </tbody>
        </table>
      </div>
      {rest > 0 && (
        <button type="button" onClick={() => setAll(true)}>
          Show {formatCount(rest)} more
        </button>
      )}
      {omitted > 0 && <p class="muted">{formatCount(omitted)} more fired that the node does not list.</p>}
    </li>
  );
}

function AlertRow({ rule, alert, endMs }: { rule: BacktestAlertingRule; alert: BacktestAlert; endMs: number }) {
  const { zone } = useApp();
  const { labels, annotations, activeAt, firedAt, resolvedAt, value } = alert;
  const [firedMs, resolvedMs] = [timeOf(firedAt), timeOf(resolvedAt)];
  const shown = (ms: number | undefined): string => (ms === undefined ? 'unknown' : formatTime(ms, zone));
  return (
    <tr>
      <td class="label">
        <LabelBoxes labels={labels} />
        {Object.entries(annotations).map(([name, text]) => (
          <p class="muted">
            {name}: {text}
          </p>
        ))}
      </td>
      <td class="time">{shown(timeOf(activeAt))}</td>
      <td class="time">{shown(firedMs)}</td>
      <td class="time">
        {resolvedMs === undefined ? <span class="bad-text">still firing at the end</span> : shown(resolvedMs)}
        {firedMs !== undefined && <p class="muted">for {formatDuration(((resolvedMs ?? endMs) - firedMs) / 1000)}</p>}
      </td>
      <td class="number">{formatNumber(numberOf(value), 'none', 4)}</td>
      <td>
        <a href={queryHref(searchOf([panelAround(rule.query, alert, endMs)]))} aria-label={`${rule.name}, fired at ${shown(firedMs)}: open in Query`}>
          Query
        </a>
      </td>
    </tr>
  );
}

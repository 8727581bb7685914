/** A rule with its alerts. */

import { useMemo, useState } from 'preact/hooks';
import { useNow } from '../../app/clock';
import { useApp } from '../../app/context';
import { go, hashOf, queryHref } from '../../app/route';
import { Highlight } from '../../editor/highlight';
import { STATE_LEVELS, timeOf, waitsText } from '../../figures/alerts';
import type { Silencer } from '../../figures/silences';
import { formatCount, formatNumber } from '../../format/number';
import { formatAgo, formatTime, zoneName } from '../../format/time';
import { matchersOf, printMatchers } from '../../promql/matchers';
import { thresholdOf, type Threshold } from '../../promql/threshold';
import type { Alert, AlertingRule, Labels, Rule, RuleGroup, Silence } from '../../source/answers';
import { numberOf } from '../../source/exposition';
import { Facts } from '../../widgets/facts';
import { LabelBoxes } from '../../widgets/series';
import { newPanel, searchOf } from '../query/panels';
import { keepDraft } from './backtest/draft';
import { ruleFileOf } from './backtest/rule-file';
import { RuleGraph } from './graph';
import type { PlacedRule } from './select';

/** Alerts of a rule that are shown at once. */
const ALERTS_MAX = 10;

/** What is known of silences. */
export interface Silencing {
  /** Whether the node has them. */
  isThere: boolean;
  /** Nothing if they are not known. */
  silencer: Silencer | undefined;
}

export function RuleItem({ placed, silencing }: { placed: PlacedRule; silencing: Silencing }) {
  const { rule, group, state } = placed;
  const [isGraph, setGraph] = useState(false);
  const threshold = useMemo(() => (rule.type === 'alerting' ? thresholdOf(rule.query) : undefined), [rule.type, rule.query]);
  const level = STATE_LEVELS[state];
  const waits = rule.type === 'alerting' ? waitsText(rule) : '';
  const panel = { ...newPanel(), expr: rule.query, tab: 'graph' as const };
  return (
    <li class="target rule">
      <div class="target-head">
        <h3>
          <i class={`dot ${level}`} aria-hidden="true" />
          <span class={`${level}-text`}>{rule.type === 'recording' && state === 'inactive' ? 'recording' : state}</span> {rule.name}
        </h3>
        <Evaluated rule={rule} />
      </div>
      {rule.health === 'err' && <p class="bad-text">{errorText(rule)}</p>}
      {rule.health !== 'err' && state === 'unknown' && <p class="muted">It was not evaluated yet: whether it would fire is unknown.</p>}
      <p class="row">
        <Highlight text={rule.query} />
        <a href={queryHref(searchOf([panel]))} aria-label={`${rule.name}: open in Query`}>
          Query
        </a>
        {rule.type === 'alerting' && threshold !== undefined && (
          <button type="button" class="quiet" aria-expanded={isGraph} aria-label={`${rule.name}: graph`} onClick={() => setGraph(!isGraph)}>
            Graph
          </button>
        )}
        <BacktestButton label={`${rule.name}: backtest`} group={group} rules={[rule]}>
          Backtest
        </BacktestButton>
      </p>
      {isGraph && rule.type === 'alerting' && threshold !== undefined && <RuleGraph rule={rule} threshold={threshold} />}
      {Object.keys(rule.labels ?? {}).length > 0 && <LabelBoxes labels={rule.labels!} />}
      <p class="muted">
        {waits !== '' && `${waits} · `}group {group.name} of {group.file}
        <BacktestButton label={`${rule.name}: backtest the group`} group={group} rules={group.rules}>
          Backtest the group
        </BacktestButton>
      </p>
      {rule.type === 'alerting' && <RuleAlerts rule={rule} threshold={threshold} silencing={silencing} />}
    </li>
  );
}

/** Leads to the view Backtest, with these rules in it. */
function BacktestButton({ label, group, rules, children }: { label: string; group: RuleGroup; rules: readonly Rule[]; children: string }) {
  const open = (): void => {
    keepDraft(ruleFileOf(group, rules));
    go(hashOf(['alerts', 'backtest']));
  };
  return (
    <button type="button" class="quiet" aria-label={label} onClick={open}>
      {children}
    </button>
  );
}

function Evaluated({ rule }: { rule: Rule }) {
  const now = useNow(5000);
  const last = timeOf(rule.lastEvaluation);
  return <span class="muted">{last === undefined ? 'not evaluated yet' : `evaluated ${formatAgo(last, Math.max(now, last))}, took ${formatNumber(rule.evaluationTime, 'seconds', 2)}`}</span>;
}

function errorText(rule: Rule): string {
  const before = rule.type === 'alerting' && rule.state !== 'inactive' && rule.state !== 'unknown' ? ' What it shows is from before.' : '';
  const text = rule.lastError ?? '';
  return `The last evaluation failed${text === '' ? '' : `: ${text}`}.${before}`;
}

function RuleAlerts({ rule, threshold, silencing }: { rule: AlertingRule; threshold: Threshold | undefined; silencing: Silencing }) {
  const [isAll, setAll] = useState(false);
  const alerts = rule.alerts ?? [];
  if (alerts.length === 0) return rule.annotations === undefined ? null : <Annotations annotations={rule.annotations} />;
  // Firing ones first, the longest first.
  const sorted = [...alerts].sort((a, b) => a.state.localeCompare(b.state) || (a.activeAt ?? '').localeCompare(b.activeAt ?? ''));
  const rest = isAll ? 0 : alerts.length - ALERTS_MAX;
  return (
    <>
      <ul class="alerts" aria-label={`Alerts of ${rule.name}`}>
        {sorted.slice(0, isAll ? undefined : ALERTS_MAX).map((alert) => (
          <AlertItem key={JSON.stringify(alert.labels)} alert={alert} threshold={threshold} silencing={silencing} />
        ))}
      </ul>
      {rest > 0 && (
        <button type="button" onClick={() => setAll(true)}>
          Show {formatCount(rest)} more
        </button>
      )}
    </>
  );
}

function AlertItem({ alert, threshold, silencing: { isThere, silencer } }: { alert: Alert; threshold: Threshold | undefined; silencing: Silencing }) {
  const level = alert.state === 'firing' ? 'bad' : 'warn';
  const value = formatNumber(numberOf(alert.value), 'none', 4);
  const silence = useMemo(() => silencer?.(alert.labels), [silencer, alert]);
  return (
    <li>
      <div class="row">
        <span class={`${level}-text`}>{alert.state}</span>
        {silence !== undefined && <span class="muted">{silence === 'unknown' ? 'silenced or not: unknown' : 'silenced'}</span>}
        <LabelBoxes labels={alert.labels} />
        {isThere && alert.state === 'firing' && <SilenceButton labels={alert.labels} />}
      </div>
      <Facts
        rows={[
          [alert.state === 'firing' ? 'Active since' : 'Pending since', <Since text={alert.activeAt} />],
          ['Kept firing since', alert.keepFiringSince === undefined ? undefined : <Since text={alert.keepFiringSince} />],
          ['Silenced until', silence !== undefined && silence !== 'unknown' && <Until silence={silence} />],
          ['Value', threshold === undefined ? value : `${value}; the threshold is ${threshold.op} ${threshold.text}`],
        ]}
      />
      <Annotations annotations={alert.annotations} />
    </li>
  );
}

/** Leads to the form of silences, with the alert's labels in it. */
function SilenceButton({ labels }: { labels: Labels }) {
  const matchers = printMatchers(matchersOf(labels));
  return (
    <button type="button" class="quiet" aria-label={`Silence ${matchers}`} onClick={() => go(hashOf(['alerts', 'silences'], { matchers }))}>
      Silence
    </button>
  );
}

function Until({ silence: { endsAt, createdBy, comment } }: { silence: Silence }) {
  const { zone } = useApp();
  const ms = timeOf(endsAt);
  return (
    <>
      {ms === undefined ? 'unknown' : formatTime(ms, zone)}{' '}
      <span class="muted">
        {zoneName(zone)}, {createdBy}: {comment}
      </span>
    </>
  );
}

function Since({ text }: { text: string | undefined }) {
  const { zone } = useApp();
  const now = useNow(5000);
  const ms = timeOf(text);
  if (ms === undefined) return <>unknown</>;
  return (
    <>
      {formatTime(ms, zone)} <span class="muted">{zoneName(zone)}, {formatAgo(ms, Math.max(now, ms))}</span>
    </>
  );
}

function Annotations({ annotations }: { annotations: Labels }) {
  const rows = Object.entries(annotations);
  return rows.length === 0 ? null : <Facts rows={rows} />;
}

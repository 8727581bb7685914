/** The graph of a rule: its values beside the threshold, and when it was firing. */

import { useMemo, useState } from 'preact/hooks';
import { useApp } from '../../app/context';
import { useLoad } from '../../app/load';
import { timeOf } from '../../figures/alerts';
import { formatCount, formatDuration, formatNumber, unitOf, type Unit } from '../../format/number';
import { formatTime, zoneName } from '../../format/time';
import { colorOf } from '../../plot/palette';
import { Plot } from '../../plot/plot';
import { summaryOf } from '../../plot/columns';
import type { Span } from '../../plot/spans';
import { Values } from '../../plot/values';
import { printDuration } from '../../promql/duration';
import { differing } from '../../promql/selector';
import type { Threshold } from '../../promql/threshold';
import type { AlertingRule } from '../../source/answers';
import { SeriesName } from '../../widgets/series';
import { Await } from '../../widgets/state';
import { LINES_MAX, loadRuleGraph, type RuleGraphData } from './load';

const HOUR_MS = 3_600_000;
const RANGES_MS = [HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS];
const EVERY_MS = 60_000;
/** Lines and spans that are named. */
const NAMED_MAX = 10;

export function RuleGraph({ rule, threshold }: { rule: AlertingRule; threshold: Threshold }) {
  const { source } = useApp();
  const [rangeMs, setRangeMs] = useState(() => rangeFor(rule, Date.now()));
  const key = JSON.stringify([rule.name, rule.query, rule.labels ?? {}, rangeMs]);
  const loaded = useLoad(key, (signal) => loadRuleGraph(source, rule, threshold, rangeMs, Date.now(), signal), { everyMs: EVERY_MS, keeps: true });
  return (
    <div aria-busy={loaded.isLoading}>
      <span class="group" role="group" aria-label={`Range of ${rule.name}`}>
        {RANGES_MS.map((range) => (
          <button type="button" aria-pressed={rangeMs === range} onClick={() => setRangeMs(range)}>
            {printDuration(range)}
          </button>
        ))}
      </span>
      <Await of={loaded}>{(graph) => <Shown rule={rule} threshold={threshold} graph={graph} />}</Await>
    </div>
  );
}

/** The shortest range that has the beginning of all active alerts. */
export function rangeFor({ alerts }: AlertingRule, nowMs: number): number {
  const begun = Math.min(nowMs, ...(alerts ?? []).map(({ activeAt }) => timeOf(activeAt) ?? nowMs));
  return RANGES_MS.find((range) => range >= 1.2 * (nowMs - begun)) ?? RANGES_MS.at(-1)!;
}

function Shown({ rule, threshold, graph }: { rule: AlertingRule; threshold: Threshold; graph: RuleGraphData }) {
  const { data, spans, isBeyondOnly, isCut } = graph;
  const lines = data.lines.filter(({ isLimit }) => isLimit !== true);
  const names = useMemo(() => differing(lines.map(({ labels }) => labels)), [data]);
  const unit = unitFor(threshold.left);
  return (
    <>
      {isBeyondOnly && <p class="muted">There are more than {formatCount(LINES_MAX)} series: only values for which the comparison holds are drawn{isCut && ', and not all of them'}.</p>}
      {lines.length === 0 ? (
        <p class="muted">{isBeyondOnly ? 'The comparison held at no time of this range.' : 'What is compared has no samples in this range.'}</p>
      ) : (
        <>
          <Plot label={`${threshold.left} with the threshold ${threshold.text}: ${lines.length} lines`} data={data} unit={unit} height={180} syncKey="alerts" spans={spans} />
          <ul class="keys" aria-label={`Lines of ${rule.name}`}>
            {lines.slice(0, NAMED_MAX).map((line, at) => (
              <li key={line.key}>
                <i class="swatch" style={{ background: colorOf(line.color) }} />
                <SeriesName labels={names[at]!} /> <b>{formatNumber(summaryOf(line.values).last, unit)}</b>
              </li>
            ))}
            {lines.length > NAMED_MAX && <li>and {formatCount(lines.length - NAMED_MAX)} more</li>}
          </ul>
          <Values data={data} unit={unit} caption={rule.name} />
        </>
      )}
      <Times name={rule.name} spans={spans} endSeconds={data.times.at(-1)!} />
    </>
  );
}

/** The times in which alerts of the rule were active, as text. */
function Times({ name, spans, endSeconds }: { name: string; spans: readonly Span[]; endSeconds: number }) {
  const { zone } = useApp();
  // The newest first.
  const firing = spans.filter(({ level }) => level === 'bad').reverse();
  if (firing.length === 0) return <p class="muted">No sample of ALERTS says that it was firing in this range.</p>;
  return (
    <ul class="plain" aria-label={`Times of ${name}`}>
      {firing.slice(0, NAMED_MAX).map(({ start, end }) => (
        <li key={start}>
          <i class="swatch span" aria-hidden="true" />
          firing from {formatTime(start * 1000, zone)} {end > endSeconds ? 'until now' : `to ${formatTime(end * 1000, zone)}`}{' '}
          <span class="muted">
            {zoneName(zone)}, {formatDuration(end - start)}
          </span>
        </li>
      ))}
      {firing.length > NAMED_MAX && <li class="muted">and {formatCount(firing.length - NAMED_MAX)} times before</li>}
    </ul>
  );
}

/** The unit of a plain selector. */
function unitFor(expr: string): Unit {
  return unitOf(/^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(/^[\w:]+(\{.*\})?$/s.test(expr) ? expr : '')?.[0] ?? '');
}

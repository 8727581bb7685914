/** When alerts of a rule were pending and firing: a thin row for each set of labels. */

import { useMemo } from 'preact/hooks';
import { useApp } from '../../../app/context';
import { formatCount, formatDuration } from '../../../format/number';
import { formatTime } from '../../../format/time';
import { differing, matcherOf } from '../../../promql/selector';
import type { BacktestAlertingRule } from '../../../source/answers';
import { timelineOf, type Bar, type TimelineRow } from './layout';

const ROWS_MAX = 50;
/** Pixels of a row, as the style sheet has it, and of its bars, which differ without colours. */
const ROW_PX = 14;
const BAR_PX = { pending: 4, firing: 10 };

export function Timeline({ rule, startMs, endMs }: { rule: BacktestAlertingRule; startMs: number; endMs: number }) {
  const { zone } = useApp();
  const { rows, more } = useMemo(() => timelineOf(rule.alerts, startMs, endMs, ROWS_MAX), [rule, startMs, endMs]);
  const names = useMemo(() => namesOf(rows), [rows]);
  const height = rows.length * ROW_PX;
  return (
    <>
      <div class="timeline">
        <ul class="names" aria-hidden="true">
          {names.map((name) => (
            <li title={name}>{name}</li>
          ))}
        </ul>
        <svg width="100%" height={height} role="img" aria-label={`When alerts of ${rule.name} were pending and firing; the table below has the times`}>
          {rows.map(({ bars }, row) => (
            <>
              <line x1="0" x2="100%" y1={(row + 0.5) * ROW_PX} y2={(row + 0.5) * ROW_PX} />
              {bars.map((bar) => (
                <rect class={bar.state} x={`${bar.left}%`} width={`${bar.width}%`} y={row * ROW_PX + (ROW_PX - BAR_PX[bar.state]) / 2} height={BAR_PX[bar.state]}>
                  <title>{`${names[row]} ${titleOf(bar, (ms) => formatTime(ms, zone))}`.trim()}</title>
                </rect>
              ))}
            </>
          ))}
        </svg>
        <p class="times muted">
          <span>{formatTime(startMs, zone)}</span>
          <span>{formatTime(endMs, zone)}</span>
        </p>
      </div>
      {more > 0 && <p class="muted">and {formatCount(more)} more</p>}
    </>
  );
}

/** What the bars mean. */
export function TimelineKeys() {
  return (
    <ul class="keys timeline-keys" aria-label="Bars of the timelines">
      <li>
        <i class="swatch pending" aria-hidden="true" />
        pending
      </li>
      <li>
        <i class="swatch firing" aria-hidden="true" />
        firing
      </li>
    </ul>
  );
}

/** What tells the rows apart; all labels of a single one. */
function namesOf(rows: readonly TimelineRow[]): string[] {
  // All alerts of a rule have its name.
  const labels = differing(rows.map(({ labels: { alertname: _, ...others } }) => others));
  return labels.map((of) => Object.entries(of).map(([name, value]) => matcherOf(name, value)).join(', '));
}

function titleOf({ state, fromMs, toMs, isOpen }: Bar, formatted: (ms: number) => string): string {
  return `${state} from ${formatted(fromMs)} to ${isOpen ? 'the end' : formatted(toMs)}, ${formatDuration((toMs - fromMs) / 1000)}`;
}

/** The range of a backtest in an address, and ranges around alerts. */

import { timeOf } from '../../../figures/alerts';
import { formatTime, parseTime } from '../../../format/time';
import { parseDuration, printDuration } from '../../../promql/duration';
import type { BacktestAlert } from '../../../source/answers';
import { nextRange, type TimeRange } from '../../../widgets/range';
import { newPanel, withRange, type Panel } from '../../query/panels';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** The last day, if the address has no other range. */
export function rangeOf(params: URLSearchParams): TimeRange {
  const endMs = parseTime(params.get('end') ?? '', 'utc');
  return { rangeMs: parseDuration(params.get('range') ?? '') ?? DAY_MS, ...(endMs === undefined ? {} : { endMs }) };
}

/** What an address has of a range; empty texts are left out. */
export function paramsOf({ rangeMs, endMs }: TimeRange): { range: string; end: string } {
  return { range: rangeMs === DAY_MS ? '' : printDuration(rangeMs), end: endMs === undefined ? '' : formatTime(endMs, 'utc') };
}

export function isSameRange(a: TimeRange, b: TimeRange): boolean {
  return a.rangeMs === b.rangeMs && a.endMs === b.endMs;
}

/**
 * A graph of an expression around an alert: all of the time in which it was active, and at least as
 * much around it.
 *
 * @param endMs when it was seen last, if it was not resolved
 */
export function panelAround(expr: string, alert: BacktestAlert, endMs: number): Panel {
  const fromMs = timeOf(alert.activeAt) ?? timeOf(alert.firedAt) ?? endMs;
  const toMs = timeOf(alert.resolvedAt) ?? Math.max(endMs, fromMs);
  const wantedMs = Math.max(HOUR_MS, 2 * (toMs - fromMs));
  const rangeMs = Math.max(wantedMs, nextRange(wantedMs - 1, 1));
  const middleMs = (fromMs + toMs) / 2;
  return withRange({ ...newPanel(), expr, tab: 'graph' }, { rangeMs, endMs: Math.ceil((middleMs + rangeMs / 2) / 1000) * 1000 });
}

/** Graphs around alerts of a backtest. */

import { timeOf } from '../../../figures/alerts';
import type { BacktestAlert } from '../../../source/answers';
import { nextRange } from '../../../widgets/range';
import { newPanel, withRange, type Panel } from '../../query/panels';

const HOUR_MS = 3_600_000;

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

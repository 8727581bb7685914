/** What a backtest says: how often rules would have fired, and which failed. */

import { formatCount } from '../format/number';
import type { BacktestAlertingRule, BacktestData, BacktestRule } from '../source/answers';
import { counted, isHarmless, names } from './alerts';
import type { Level } from './checks';

/** Names that a text has. */
const NAMES_MAX = 50;

/** How a rule did. */
export function backtestLevel(rule: BacktestRule): Level {
  if (rule.type === 'alerting' && rule.fired > 0) return 'bad';
  if (rule.failures > 0 || (rule.type === 'alerting' && rule.pending > 0)) return 'warn';
  return rule.evaluations > 0 ? 'good' : 'unknown';
}

/** The same as text. */
export function backtestText(rule: BacktestRule): string {
  if (rule.type === 'recording') return `${counted(rule.samples, 'sample', 'samples')} of ${counted(rule.series, 'series', 'series')}`;
  const { fired, pending } = rule;
  const times = fired === 0 ? 'never fired' : fired === 1 ? 'fired once' : `fired ${formatCount(fired)} times`;
  return pending === 0 ? times : `${times}; ${counted(pending, 'alert was', 'alerts were')} only pending`;
}

/** One sentence over all. */
export function backtestVerdict({ groups }: BacktestData): { level: Level; text: string } {
  const rules = groups.flatMap((group) => group.rules);
  const alerting = rules.filter((rule): rule is BacktestAlertingRule => rule.type === 'alerting');
  if (rules.length === 0) return { level: 'unknown', text: 'The file has no rules.' };
  const [fired, pending] = [sumOf(alerting, ({ fired }) => fired), sumOf(alerting, ({ pending }) => pending)];
  const failing = rules.filter(({ failures }) => failures > 0).length;
  const parts: string[] = [];
  if (fired > 0) parts.push(`${counted(fired, 'alert', 'alerts')} would have fired: ${names(alerting.filter((rule) => rule.fired > 0).map(({ name }) => name))}`);
  if (pending > 0) parts.push(`${counted(pending, 'alert', 'alerts')} would only have been pending`);
  if (failing > 0) parts.push(`${counted(failing, 'rule has', 'rules have')} failed evaluations`);
  if (parts.length > 0) {
    const isHarmful = alerting.some(({ alerts, omitted }) => omitted > 0 || !alerts.every(isHarmless));
    return { level: isHarmful ? 'bad' : 'warn', text: `${parts.join('; ')}.` };
  }
  if (rules.every(({ evaluations }) => evaluations === 0)) return { level: 'unknown', text: 'The range is too short for an evaluation.' };
  if (alerting.length > 0) return { level: 'good', text: 'No alert would have fired.' };
  return { level: 'unknown', text: `The file has no alerting rules; ${counted(rules.length, 'recording rule was', 'recording rules were')} evaluated.` };
}

/** Which series the rules have read. */
export function seriesText({ series: { stored, computed, any } }: BacktestData): string {
  const others = any ? [`${stored.length === 0 ? 'series' : 'others'} that no name selects`] : [];
  return `Stored series read: ${listOf(stored, others)}; computed series: ${listOf(computed)}.`;
}

/** Which rules have not found what they read; nothing if there are none. */
export function circularText({ series: { circular = [] } }: BacktestData): string | undefined {
  return circular.length === 0 ? undefined : `These rules read what is computed after them, and find nothing of it: ${listOf(circular)}.`;
}

function listOf(all: readonly string[], others: readonly string[] = []): string {
  const more = all.length - NAMES_MAX;
  const parts = [all.slice(0, NAMES_MAX).join(', '), more > 0 ? `${formatCount(more)} more` : '', ...others].filter((text) => text !== '');
  return parts.length === 0 ? 'none' : parts.join(' and ');
}

function sumOf<T>(all: readonly T[], numberOf: (one: T) => number): number {
  return all.reduce((sum, one) => sum + numberOf(one), 0);
}

/** What rules and alerts say: which fire, which fail, and of which nothing is known. */

import { formatCount, formatDuration } from '../format/number';
import { printDuration } from '../promql/duration';
import type { Alert, AlertingRule, Rule, RuleGroup } from '../source/answers';
import type { Level } from './checks';

/**
 * How a rule is shown. `failing` and `unknown` are rules that have no active alert as far as is
 * known: they are not inactive.
 */
export type RuleState = 'firing' | 'failing' | 'pending' | 'unknown' | 'inactive';

/** The worst first. */
export const RULE_STATES: readonly RuleState[] = ['firing', 'failing', 'pending', 'unknown', 'inactive'];

export const STATE_LEVELS: Record<RuleState, Level> = { firing: 'bad', failing: 'warn', pending: 'warn', unknown: 'unknown', inactive: 'good' };

/** Alerts of these severities are meant to fire, such as one that shows that alerts arrive. */
const HARMLESS = new Set(['none', 'info']);
/** Alerts that a headline names. */
const NAMED_MAX = 3;
/** Intervals without an evaluation after which a group is late, and seconds beside them. */
const LATE_INTERVALS = 2;
const LATE_SECONDS = 30;

/** The state that a rule is shown with. A recording rule that works is `inactive`. */
export function ruleState(rule: Rule): RuleState {
  const state = rule.type === 'alerting' ? rule.state : 'inactive';
  if (state === 'firing' || state === 'pending') return state;
  if (rule.health === 'err') return 'failing';
  return rule.health === 'ok' && state === 'inactive' ? 'inactive' : 'unknown';
}

/** Whether an alert is meant to fire. */
export function isHarmless({ labels }: Pick<Alert, 'labels'>): boolean {
  return HARMLESS.has(labels['severity'] ?? '');
}

/** A time of an answer in milliseconds; nothing for none. */
export function timeOf(text: string | undefined): number | undefined {
  const ms = Date.parse(text ?? '');
  return ms > 0 ? ms : undefined;
}

/** Seconds since the last evaluation of a group, if it should have been evaluated since. */
export function lateSeconds({ interval, lastEvaluation }: RuleGroup, nowMs: number): number | undefined {
  const last = timeOf(lastEvaluation);
  if (last === undefined) return undefined;
  const seconds = (nowMs - last) / 1000;
  return seconds > LATE_INTERVALS * interval + LATE_SECONDS ? seconds : undefined;
}

/** The share of its interval that a group's evaluation takes. */
export function shareOfInterval({ evaluationTime, interval }: RuleGroup): number {
  return interval > 0 ? evaluationTime / interval : 0;
}

/** How long alerts of a rule are pending, and how long they fire at least. Seconds. */
export function waitsText({ duration, keepFiringFor }: Pick<AlertingRule, 'duration' | 'keepFiringFor'>): string {
  const texts = [duration > 0 && `fires after ${printDuration(duration * 1000)}`, keepFiringFor > 0 && `keeps firing for ${printDuration(keepFiringFor * 1000)}`];
  return texts.filter((text) => text !== false).join(', ');
}

/** What is known of all rules. */
export interface AlertsState {
  alerting: number;
  recording: number;
  firing: readonly Alert[];
  pending: number;
  /** Rules whose last evaluation failed. */
  failing: number;
  /** Rules that were not evaluated yet. */
  unknown: number;
  /** Groups that are late, and seconds since the longest of them was evaluated. */
  late: number;
  longestSeconds: number;
  isClockDoubted: boolean;
}

/**
 * Counts.
 *
 * @param nowMs the time by the node's clock
 */
export function alertsState(groups: readonly RuleGroup[], alerts: readonly Alert[], nowMs: number, isClockDoubted: boolean): AlertsState {
  const rules = groups.flatMap((group) => group.rules);
  const late = groups.map((group) => lateSeconds(group, nowMs)).filter((seconds) => seconds !== undefined);
  const isUnknown = (rule: Rule): boolean => rule.health !== 'err' && (rule.health !== 'ok' || (rule.type === 'alerting' && rule.state === 'unknown'));
  return {
    alerting: rules.filter((rule) => rule.type === 'alerting').length,
    recording: rules.filter((rule) => rule.type === 'recording').length,
    firing: alerts.filter(({ state }) => state === 'firing'),
    pending: alerts.filter(({ state }) => state === 'pending').length,
    failing: rules.filter(({ health }) => health === 'err').length,
    unknown: rules.filter(isUnknown).length,
    late: late.length,
    longestSeconds: Math.max(0, ...late),
    isClockDoubted,
  };
}

/** All alerts of the rules. */
export function alertsOf(groups: readonly RuleGroup[]): Alert[] {
  return groups.flatMap(({ rules }) => rules.filter((rule): rule is AlertingRule => rule.type === 'alerting').flatMap(({ alerts }) => alerts ?? []));
}

/**
 * One sentence over all.
 *
 * @param state nothing if it is not known
 */
export function alertsVerdict(state: AlertsState | undefined): { level: Level; text: string } {
  if (state === undefined) return { level: 'unknown', text: 'Whether alerts are firing is unknown.' };
  const { alerting, recording, firing, pending, failing, unknown, late, longestSeconds, isClockDoubted } = state;
  const parts: string[] = [];
  if (firing.length > 0) parts.push(`${counted(firing.length, 'alert is', 'alerts are')} firing: ${names(firing.map(({ labels }) => labels['alertname'] ?? ''))}`);
  if (pending > 0) parts.push(`${counted(pending, 'alert is', 'alerts are')} pending`);
  if (failing > 0) parts.push(`${counted(failing, 'rule fails', 'rules fail')}`);
  if (unknown > 0) parts.push(`${counted(unknown, 'rule was', 'rules were')} not evaluated yet`);
  if (late > 0) parts.push(`${counted(late, 'group was', 'groups were')} not evaluated for ${formatDuration(longestSeconds)}`);
  if (isClockDoubted) parts.push('the node’s clock is doubted');
  if (parts.length === 0) {
    if (alerting > 0) return { level: 'good', text: `No alert is firing; ${counted(alerting, 'alerting rule is', 'alerting rules are')} evaluated.` };
    const rest = recording === 0 ? 'rules' : `alerting rules; ${counted(recording, 'recording rule is', 'recording rules are')} evaluated`;
    return { level: 'unknown', text: `This node has no ${rest}.` };
  }
  const isHarmful = !firing.every(isHarmless);
  const isKnownWrong = firing.length > 0 || pending > 0 || failing > 0 || isClockDoubted;
  const text = parts.join('; ');
  return { level: isHarmful ? 'bad' : isKnownWrong ? 'warn' : 'unknown', text: `${text[0]!.toUpperCase()}${text.slice(1)}.` };
}

/** A count with its word. */
export function counted(count: number, one: string, many: string): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Some of the names, each once. */
export function names(given: readonly string[]): string {
  const all = [...new Set(given)].sort();
  const more = all.length - NAMED_MAX;
  return all.slice(0, NAMED_MAX).join(', ') + (more > 0 ? ` and ${formatCount(more)} more` : '');
}

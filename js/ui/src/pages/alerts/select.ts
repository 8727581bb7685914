/** Which rules the view shows, and in which order. */

import { ruleState, RULE_STATES, type RuleState } from '../../figures/alerts';
import { isFound, seriesText } from '../../promql/selector';
import type { Rule, RuleGroup } from '../../source/answers';

/** A rule with where it stands. */
export interface PlacedRule {
  rule: Rule;
  group: RuleGroup;
  state: RuleState;
}

/** What a person chooses rules by; `recording` are rules of that type. */
export type StateChoice = '' | RuleState | 'recording';

/** All rules, the worst first. */
export function placedRules(groups: readonly RuleGroup[]): PlacedRule[] {
  const all = groups.flatMap((group) => group.rules.map((rule) => ({ rule, group, state: ruleState(rule) })));
  return RULE_STATES.flatMap((state) => all.filter((it) => it.state === state));
}

/**
 * The rules that are chosen. Recording rules that work are shown only where they are asked for.
 *
 * @param search words, or an expression that is part of a rule's
 */
export function chosenRules(rules: readonly PlacedRule[], search: string, choice: StateChoice): PlacedRule[] {
  return rules.filter(({ rule, group, state }) => isChosen(rule, state, choice) && (search.trim() === '' || hasText(rule, group, search)));
}

function isChosen(rule: Rule, state: RuleState, choice: StateChoice): boolean {
  if (choice === 'recording') return rule.type === 'recording';
  // A rule that fires may fail as well: what it fires is from before.
  if (choice === 'failing') return rule.health === 'err';
  if (choice === '') return rule.type === 'alerting' || state !== 'inactive';
  return state === choice && (rule.type === 'alerting' || state !== 'inactive');
}

function hasText(rule: Rule, group: RuleGroup, search: string): boolean {
  const alerts = rule.type === 'alerting' ? (rule.alerts ?? []) : [];
  const annotations = rule.type === 'alerting' ? Object.values(rule.annotations ?? {}) : [];
  const texts = [rule.name, rule.query, seriesText(rule.labels ?? {}), ...annotations, group.name, group.file, ...alerts.map(({ labels }) => seriesText(labels))];
  // Nodes print expressions with other spaces than people.
  return texts.some((text) => isFound(text, search)) || squeezed(rule.query).includes(squeezed(search));
}

function squeezed(text: string): string {
  return text.replace(/\s+/g, '').toLowerCase();
}

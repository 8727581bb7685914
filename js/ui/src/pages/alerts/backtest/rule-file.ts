/**
 * The rule file of what `/api/v1/rules` says: YAML, in block style. Source of the keys: Prometheus'
 * documentation of recording and alerting rules; of scalars: YAML 1.2.2, chapters 5 to 8.
 */

import { printDuration } from '../../../promql/duration';
import type { Labels, Rule, RuleGroup } from '../../../source/answers';

/** The file with some rules of a group. */
export function ruleFileOf({ name, interval, limit }: RuleGroup, rules: readonly Rule[]): string {
  const head = [`  - name: ${value(name, 4)}`, `    interval: ${printDuration(interval * 1000)}`, ...(limit > 0 ? [`    limit: ${limit}`] : [])];
  return `${['groups:', ...head, '    rules:', ...rules.flatMap(linesOf)].join('\n')}\n`;
}

/** Spaces before the keys of a rule, and before those of its labels. */
const RULE_INDENT = 8;
const LABELS_INDENT = 10;

function linesOf(rule: Rule): string[] {
  const isAlerting = rule.type === 'alerting';
  const entries = [`${isAlerting ? 'alert' : 'record'}: ${value(rule.name, RULE_INDENT)}`, `expr: ${value(rule.query, RULE_INDENT)}`];
  if (isAlerting && rule.duration > 0) entries.push(`for: ${printDuration(rule.duration * 1000)}`);
  if (isAlerting && rule.keepFiringFor > 0) entries.push(`keep_firing_for: ${printDuration(rule.keepFiringFor * 1000)}`);
  entries.push(...mapOf('labels', rule.labels));
  if (isAlerting) entries.push(...mapOf('annotations', rule.annotations));
  return entries.map((entry, at) => `${at === 0 ? '      - ' : ' '.repeat(RULE_INDENT)}${entry}`);
}

function mapOf(key: string, values: Labels = {}): string[] {
  const entries = Object.entries(values);
  if (entries.length === 0) return [];
  const indent = ' '.repeat(LABELS_INDENT);
  return [[`${key}:`, ...entries.map(([name, text]) => `${indent}${scalar(name)}: ${value(text, LABELS_INDENT)}`)].join('\n')];
}

/** What needs no quotes: it is no number, no sign of YAML, no key and no comment. */
const PLAIN = /^[A-Za-z_(](?!.*(?:: |:$| #| $))[ -~]*$/;
/** Words that YAML takes for something else, in any case. */
const WORDS = new Set(['null', 'true', 'false', 'yes', 'no', 'on', 'off', 'y', 'n']);
/** Characters that a file may not have, that begin a line, or that move the text around them. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

/** A text on one line. */
export function scalar(text: string): string {
  if (PLAIN.test(text) && !WORDS.has(text.toLowerCase())) return text;
  const isQuotedTwice = UNSEEN.test(text) || (text.includes("'") && !text.includes('"'));
  if (!isQuotedTwice) return `'${text.replaceAll("'", "''")}'`;
  // What JSON escapes is escaped in the same way in YAML.
  return JSON.stringify(text).replace(new RegExp(UNSEEN, 'g'), (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * A text behind its key; several lines stand as they are below it, where they can.
 *
 * @param indent spaces before the key
 */
export function value(text: string, indent: number): string {
  const lines = text.split('\n');
  const isEnded = lines.at(-1) === '';
  const body = isEnded ? lines.slice(0, -1) : lines;
  // The first line says how far all are indented; empty ones at the end would be dropped.
  const isBlock = lines.length > 1 && /^\S/.test(body[0]!) && body.at(-1) !== '' && lines.every((line) => !UNSEEN.test(line));
  if (!isBlock) return scalar(text);
  return [isEnded ? '|' : '|-', ...body.map((line) => (line === '' ? '' : ' '.repeat(indent + 2) + line))].join('\n');
}

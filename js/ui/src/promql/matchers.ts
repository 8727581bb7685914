/**
 * Matchers of labels as people write them, such as `severity="page", instance=~"edge-.*"`.
 *
 * Source: prometheus/alertmanager, `matcher/parse`. Values may do without quotes, as there.
 */

import type { Labels, Matcher } from '../source/answers';
import { labelName, quoted } from './selector';

const SPACE = /\s*/y;
const SEPARATOR = /[\s,]*/y;
const QUOTED = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`/y;
const BARE_NAME = /[^\s,=!~"'`{}]+/y;
const BARE_VALUE = /[^\s,"'`{}]+/y;
const OPERATOR = /=~|!~|!=|=/y;
/** In quotes, any other backslash stands for itself: so `"10\.0"` is what it looks like. */
const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t', '\\': '\\', '"': '"', "'": "'" };

/** Characters before which Go takes a backslash and browsers do not. */
const NO_SYNTAX = /[ !"#%&',:;<=>@_`~-]/;

/** What a text says, or what is wrong with it. */
export type ParsedMatchers = { matchers: Matcher[]; mistake?: never } | { matchers?: never; mistake: string };

/** Reads matchers with or without braces around them. No text has none. */
export function parseMatchers(text: string): ParsedMatchers {
  const inside = /^\s*\{(.*)\}\s*$/s.exec(text)?.[1] ?? text;
  const matchers: Matcher[] = [];
  let at = 0;
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(inside)?.[0];
    at += found?.length ?? 0;
    return found;
  };
  const missing = (what: string): ParsedMatchers => {
    const rest = inside.slice(at).split(/\s/, 1)[0]!;
    return { mistake: `${what} is missing ${rest === '' ? 'at the end' : `before ${rest}`}` };
  };
  for (;;) {
    take(SEPARATOR);
    if (at === inside.length) return { matchers };
    const name = unquoted(take(QUOTED)) ?? take(BARE_NAME);
    if (name === undefined) return missing('the name of a label');
    take(SPACE);
    const operator = take(OPERATOR);
    if (operator === undefined) return missing(`=, !=, =~ or !~ behind ${name}`);
    take(SPACE);
    const value = unquoted(take(QUOTED)) ?? take(BARE_VALUE);
    if (value === undefined) return missing(`a value of ${name}, or its closing quote,`);
    matchers.push({ name, value, isRegex: operator.endsWith('~'), isEqual: operator.startsWith('=') });
  }
}

/** Matchers of exactly these labels. */
export function matchersOf(labels: Labels): Matcher[] {
  return Object.entries(labels).map(([name, value]) => ({ name, value, isRegex: false, isEqual: true }));
}

/** Matchers as text, that {@link parseMatchers} reads. */
export function printMatchers(matchers: readonly Matcher[]): string {
  return matchers.map(printMatcher).join(', ');
}

/** One of them. */
export function printMatcher({ name, value, isRegex, isEqual = true }: Matcher): string {
  return `${labelName(name)}${isEqual ? '=' : '!'}${isRegex ? '~' : isEqual ? '' : '='}${quoted(value)}`;
}

/**
 * Tells whether labels match. Nothing if that is not known: the expression is one that browsers
 * read otherwise than the node.
 */
export function testOf({ name, value, isRegex, isEqual = true }: Matcher): (labels: Labels) => boolean | undefined {
  const expression = isRegex ? anchored(value) : undefined;
  if (isRegex && expression === undefined) return () => undefined;
  return (labels) => {
    // A label that is absent has an empty value.
    const found = labels[name] ?? '';
    return (expression?.test(found) ?? found === value) === isEqual;
  };
}

/**
 * An expression of Go for a whole value. Its dot matches each character, as in PromQL.
 *
 * Browsers refuse, as wrong escapes and groups, nearly all that they would read otherwise.
 */
export function anchored(pattern: string): RegExp | undefined {
  const [, flags = '', rest = ''] = /^(?:\(\?([is]+)\))?(.*)$/s.exec(pattern)!;
  // Classes such as [[:alpha:]], and spaces, are of other characters in browsers.
  if (/\[:|\\s/i.test(rest)) return undefined;
  const translated = rest.replace(/\\(.)|\(\?P</gs, (all, letter?: string) => (letter === undefined ? '(?<' : NO_SYNTAX.test(letter) ? literal(letter) : all));
  try {
    return new RegExp(`^(?:${translated})$`, flags.includes('i') ? 'isu' : 'su');
  } catch {
    return undefined;
  }
}

/** A character without its backslash; in a class, a dash needs one. */
function literal(letter: string): string {
  return letter === '-' ? '\\x2d' : letter;
}

function unquoted(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const inside = text.slice(1, -1);
  return text.startsWith('`') ? inside : inside.replace(/\\(.)/gs, (all, letter: string) => ESCAPES[letter] ?? all);
}

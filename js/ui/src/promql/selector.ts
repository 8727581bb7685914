/** Selectors and names as PromQL writes them. */

import type { Labels } from '../source/answers';

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** A text in double quotes. */
export function quoted(text: string): string {
  const escaped = text.replace(/[\\"\n\r\t]/g, (c) => ({ '\\': '\\\\', '"': '\\"', '\n': '\\n', '\r': '\\r', '\t': '\\t' })[c]!);
  return `"${escaped}"`;
}

/** A label's name, in quotes if it needs them. */
export function labelName(name: string): string {
  return LABEL_NAME.test(name) ? name : quoted(name);
}

/** A selector of a metric by its name, with further matchers such as `a="b"`. */
export function selectorOf(name: string, matchers: readonly string[] = []): string {
  const isPlain = METRIC_NAME.test(name);
  const inside = isPlain ? matchers : [quoted(name), ...matchers];
  const braces = inside.length === 0 ? '' : `{${inside.join(', ')}}`;
  return isPlain ? name + braces : braces;
}

/** A label with its value, as a matcher. */
export function matcherOf(name: string, value: string): string {
  return `${labelName(name)}=${quoted(value)}`;
}

/** The selector of exactly these labels, as people write a series. */
export function seriesText(labels: Labels): string {
  const { __name__: name, ...rest } = labels;
  const matchers = Object.entries(rest).map(([label, value]) => matcherOf(label, value));
  if (name !== undefined) return selectorOf(name, matchers);
  return `{${matchers.join(', ')}}`;
}

/** Whether a text has all words of a search in it, in order, in any case. */
export function isFound(text: string, search: string): boolean {
  const lower = text.toLowerCase();
  let from = 0;
  for (const word of search.trim().toLowerCase().split(/\s+/)) {
    const at = lower.indexOf(word, from);
    if (at < 0) return false;
    from = at + word.length;
  }
  return true;
}

/** What tells several series apart: their labels without those that all of them have alike. */
export function differing(all: readonly Labels[]): Labels[] {
  const [first, ...others] = all;
  if (first === undefined || others.length === 0) return [...all];
  const common = new Set(Object.keys(first).filter((name) => others.every((labels) => labels[name] === first[name])));
  return all.map((labels) => Object.fromEntries(Object.entries(labels).filter(([name]) => !common.has(name))));
}

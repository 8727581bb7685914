/** Where in an expression the cursor stands, and so what can be completed there. */

import { tokenize, GROUPING_WORDS, type Token } from './tokens';

/** What can stand at the cursor. `from` to `to` is what a completion replaces. */
export type Place = { from: number; to: number; typed: string } & (
  | { kind: 'expression' }
  | { kind: 'duration' }
  | { kind: 'label-name'; metric: string | undefined; matchers: string[] }
  | { kind: 'label-value'; label: string; metric: string | undefined; matchers: string[] }
  | { kind: 'grouping'; metrics: string[] }
);

/** The place of the cursor; nothing in comments, numbers, and texts that are no label values. */
export function placeOf(text: string, cursor: number): Place | undefined {
  const tokens = tokenize(text).filter((token) => token.kind !== 'space');
  const last = tokens.findLastIndex((token) => token.start < cursor);
  const at = tokens[last];
  const isInside = at !== undefined && cursor <= at.end;
  if (isInside && at.kind === 'comment') return undefined;
  const isWord = isInside && ['metric', 'function', 'aggregation', 'keyword', 'label'].includes(at.kind);
  // A word operator is one only once it is followed by something.
  const isWordOperator = isInside && at.kind === 'operator' && /^[a-z]/i.test(text.slice(at.start, at.end));
  const isQuoted = isInside && /^["'`]/.test(text.slice(at.start, at.end));
  const isClosed = isQuoted && at.kind !== 'error' && cursor === at.end && at.end - at.start > 1;
  if (isClosed) return undefined;
  const from = isQuoted ? at.start + 1 : isWord || isWordOperator ? at.start : cursor;
  const before = tokens.slice(0, isWord || isWordOperator || isQuoted ? last : last + 1);
  const typed = text.slice(from, cursor);
  const to = isWord ? at.end : isQuoted && at.kind !== 'error' ? at.end - 1 : cursor;
  const inside = innermost(text, before);
  const range = { from, to, typed };
  switch (inside?.open) {
    case '{':
      return inBraces(text, before, inside.index, tokens, last, range, isQuoted);
    case 'labels':
      return isQuoted ? undefined : { kind: 'grouping', metrics: metricsOf(text, tokens), ...range };
    case '[': {
      const start = isInside && ['duration', 'number'].includes(at.kind) ? at.start : cursor;
      return { kind: 'duration', from: start, to: cursor, typed: text.slice(start, cursor) };
    }
    default: {
      if (isQuoted) return undefined;
      if (isInside && ['number', 'duration'].includes(at.kind)) return undefined;
      const previous = before.at(-1);
      if (previous !== undefined && text.slice(previous.start, previous.end).toLowerCase() === 'offset') {
        return { kind: 'duration', ...range };
      }
      return { kind: 'expression', ...range };
    }
  }
}

/** The names of metrics in an expression, each once. */
export function metricsOf(text: string, tokens: readonly Token[] = tokenize(text)): string[] {
  const names = tokens.filter((token) => token.kind === 'metric').map((token) => text.slice(token.start, token.end));
  return [...new Set(names)];
}

/** The innermost bracket that is open behind these tokens. */
function innermost(text: string, tokens: readonly Token[]): { open: string; index: number } | undefined {
  const open: { open: string; index: number }[] = [];
  tokens.forEach((token, index) => {
    if (token.kind !== 'punctuation') return;
    const sign = text[token.start]!;
    if ('({['.includes(sign)) {
      const previous = tokens[index - 1];
      const word = previous === undefined ? '' : text.slice(previous.start, previous.end).toLowerCase();
      open.push({ open: sign === '(' && GROUPING_WORDS.has(word) ? 'labels' : sign, index });
    } else if (')}]'.includes(sign)) {
      open.pop();
    }
  });
  return open.at(-1);
}

function inBraces(
  text: string,
  before: readonly Token[],
  brace: number,
  tokens: readonly Token[],
  last: number,
  range: { from: number; to: number; typed: string },
  isQuoted: boolean,
): Place | undefined {
  const named = before[brace - 1];
  const metric = named?.kind === 'metric' ? text.slice(named.start, named.end) : undefined;
  const matchers = matchersOf(text, tokens, brace, last);
  const textOf = (token: Token | undefined): string => (token === undefined ? '' : text.slice(token.start, token.end));
  const [label, operator] = before.slice(-2);
  if (isQuoted) {
    if (operator?.kind !== 'operator' || (label?.kind !== 'label' && label?.kind !== 'string')) return undefined;
    const name = textOf(label);
    const unquoted = label.kind === 'string' ? name.slice(1, -1) : name;
    return { kind: 'label-value', label: unquoted, metric, matchers, ...range };
  }
  const previous = textOf(before.at(-1));
  if (previous !== '{' && previous !== ',') return undefined;
  return { kind: 'label-name', metric, matchers, ...range };
}

/** The whole matchers between a brace and its end, but for the one that the cursor is in. */
function matchersOf(text: string, tokens: readonly Token[], brace: number, cursorAt: number): string[] {
  const matchers: string[] = [];
  for (let i = brace + 1; i + 2 < tokens.length; i += 1) {
    const [name, operator, value] = [tokens[i]!, tokens[i + 1]!, tokens[i + 2]!];
    if (text[name.start] === '}') break;
    const isMatcher = name.kind === 'label' && operator.kind === 'operator' && value.kind === 'string';
    if (isMatcher && !(cursorAt >= i && cursorAt <= i + 2)) matchers.push(text.slice(name.start, value.end));
  }
  return matchers;
}

/** The threshold in an expression such as `X > 5`: what is compared, how, and with what. */

import { parseDuration } from './duration';
import { tokenize, type Token } from './tokens';

export type Comparison = '>' | '>=' | '<' | '<=' | '==' | '!=';

/** A comparison with a number. */
export interface Threshold {
  /** The expression that is compared. */
  left: string;
  op: Comparison;
  /** The number, as it stands there and as a value. */
  text: string;
  limit: number;
}

const MIRRORED: Record<Comparison, Comparison> = { '>': '<', '>=': '<=', '<': '>', '<=': '>=', '==': '==', '!=': '!=' };
const SETS = new Set(['and', 'or', 'unless']);

/**
 * Nothing if the expression has no comparison with a number at its top, or more than one: then no
 * one line says when it holds.
 */
export function thresholdOf(expr: string): Threshold | undefined {
  const tokens = unwrapped(tokenize(expr).filter(({ kind }) => kind !== 'space' && kind !== 'comment'), expr);
  const top = topLevel(tokens, expr);
  const comparisons = top.filter((at) => isComparison(textOf(expr, tokens[at]!)));
  const [at] = comparisons;
  if (at === undefined || comparisons.length > 1 || top.some((place) => SETS.has(textOf(expr, tokens[place]!).toLowerCase()))) return undefined;
  const op = textOf(expr, tokens[at]!) as Comparison;
  const [left, right] = [tokens.slice(0, at), tokens.slice(at + 1)];
  const [leftLimit, rightLimit] = [numberIn(left, expr), numberIn(right, expr)];
  // A comparison of two numbers selects no series.
  if ((leftLimit === undefined) === (rightLimit === undefined)) return undefined;
  return rightLimit !== undefined
    ? { left: slice(left, expr), op, text: slice(right, expr), limit: rightLimit }
    : { left: slice(right, expr), op: MIRRORED[op], text: slice(left, expr), limit: leftLimit! };
}

function textOf(expr: string, { start, end }: Token): string {
  return expr.slice(start, end);
}

function slice(tokens: readonly Token[], expr: string): string {
  return expr.slice(tokens[0]!.start, tokens.at(-1)!.end);
}

function isComparison(text: string): boolean {
  return Object.hasOwn(MIRRORED, text);
}

/** Places of the operators that stand in no brackets. */
function topLevel(tokens: readonly Token[], expr: string): number[] {
  let depth = 0;
  const places: number[] = [];
  tokens.forEach((token, at) => {
    const text = textOf(expr, token);
    if (token.kind === 'punctuation') depth += '([{'.includes(text) ? 1 : ')]}'.includes(text) ? -1 : 0;
    else if (token.kind === 'operator' && depth === 0) places.push(at);
  });
  return places;
}

/** Without parentheses around the whole. */
function unwrapped(tokens: readonly Token[], expr: string): readonly Token[] {
  let depth = 0;
  if (tokens.length === 0 || textOf(expr, tokens[0]!) !== '(') return tokens;
  for (const [at, token] of tokens.entries()) {
    if (token.kind !== 'punctuation') continue;
    const text = textOf(expr, token);
    depth += '([{'.includes(text) ? 1 : ')]}'.includes(text) ? -1 : 0;
    if (depth === 0) return at === tokens.length - 1 ? unwrapped(tokens.slice(1, -1), expr) : tokens;
  }
  return tokens;
}

/** A number with an optional sign, or a product of such; nothing for anything else. */
function numberIn(tokens: readonly Token[], expr: string): number | undefined {
  let value: number | undefined;
  let [sign, op] = [1, ''];
  for (const token of unwrapped(tokens, expr)) {
    const text = textOf(expr, token);
    if (token.kind === 'operator') {
      if ((text === '-' || text === '+') && (value === undefined || op !== '')) {
        if (text === '-') sign = -sign;
      } else if ((text === '*' || text === '/') && value !== undefined && op === '') op = text;
      else return undefined;
      continue;
    }
    const number = numberOf(token, text);
    if (number === undefined || (value !== undefined && op === '')) return undefined;
    value = value === undefined ? sign * number : op === '*' ? value * sign * number : value / (sign * number);
    [sign, op] = [1, ''];
  }
  return op === '' ? value : undefined;
}

function numberOf({ kind }: Token, text: string): number | undefined {
  if (kind === 'duration') {
    const ms = parseDuration(text);
    return ms === undefined ? undefined : ms / 1000;
  }
  if (kind !== 'number' || /^nan$/i.test(text)) return undefined;
  return /^inf$/i.test(text) ? Infinity : Number(text.replaceAll('_', ''));
}

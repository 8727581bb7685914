/**
 * The tokens of a PromQL expression, for colours and completion. Every text has tokens: what PromQL
 * does not know is a token of the kind `error`, and the parser in the node judges the rest.
 *
 * Source: lexical rules of Prometheus' `promql/parser/lex.go`.
 */

import { AGGREGATIONS, FUNCTIONS } from './functions';

/** What a token is. */
export type TokenKind =
  | 'space'
  | 'comment'
  | 'number'
  | 'duration'
  | 'string'
  | 'metric'
  | 'function'
  | 'aggregation'
  | 'keyword'
  | 'label'
  | 'operator'
  | 'punctuation'
  | 'error';

/** A piece of the text: from `start` up to before `end`, in UTF-16 units. */
export interface Token {
  kind: TokenKind;
  start: number;
  end: number;
}

/** Words that are operators between two operands. */
const WORD_OPERATORS = new Set(['and', 'or', 'unless', 'atan2']);
/** Words that a list of labels in parentheses follows. */
export const GROUPING_WORDS: ReadonlySet<string> = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right']);
const KEYWORDS = new Set([...GROUPING_WORDS, 'offset', 'bool', 'anchored', 'smoothed', 'fill', 'fill_left', 'fill_right']);
const NUMBER_WORDS = new Set(['inf', 'nan']);

const SPACE = /\s+/y;
const COMMENT = /#[^\n]*/y;
const DURATION = /(?:\d+(?:ms|[smhdwy]))+(?![\w.])/y;
const NUMBER = /0[xX][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?/y;
const NAME = /[a-zA-Z_:][a-zA-Z0-9_:]*/y;
const LABEL_NAME = /[a-zA-Z_][a-zA-Z0-9_]*/y;
const QUOTED = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`/y;
const OPEN_QUOTED = /"(?:[^"\\\n]|\\.)*\\?|'(?:[^'\\\n]|\\.)*\\?|`[^`]*/y;
const OPERATOR = /=~|!~|==|!=|>=|<=|<\/|>\/|[-+*/%^=<>@]/y;
const PUNCTUATION = /[(){}[\],:]/y;

/** Cuts a text into tokens that follow one another without a gap. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  const places = new Places();
  let at = 0;
  while (at < text.length) {
    const kind = kindAt(text, at, places);
    const end = kind.end;
    tokens.push({ kind: kind.kind, start: at, end });
    places.follow(kind.kind, text.slice(at, end));
    at = end;
  }
  return tokens;
}

/** In what the next token stands. */
class Places {
  /** The opening brackets that are not closed: `{`, `[`, `(`, and `l` for a list of labels. */
  readonly open: string[] = [];
  #mayBeLabels = false;

  get inBraces(): boolean {
    return this.open.at(-1) === '{';
  }

  get inLabels(): boolean {
    return this.open.at(-1) === 'l';
  }

  get inRange(): boolean {
    return this.open.at(-1) === '[';
  }

  follow(kind: TokenKind, text: string): void {
    if (kind === 'space' || kind === 'comment') return;
    if (kind === 'punctuation') {
      if (text === '(') this.open.push(this.#mayBeLabels ? 'l' : '(');
      else if (text === '{' || text === '[') this.open.push(text);
      else if (')}]'.includes(text)) this.open.pop();
    }
    this.#mayBeLabels = kind === 'keyword' && GROUPING_WORDS.has(text.toLowerCase());
  }
}

function kindAt(text: string, at: number, places: Places): { kind: TokenKind; end: number } {
  const end = (pattern: RegExp): number | undefined => {
    pattern.lastIndex = at;
    return pattern.test(text) ? pattern.lastIndex : undefined;
  };
  let to: number | undefined;
  if ((to = end(SPACE)) !== undefined) return { kind: 'space', end: to };
  if ((to = end(COMMENT)) !== undefined) return { kind: 'comment', end: to };
  if ((to = end(QUOTED)) !== undefined) return { kind: places.inLabels ? 'label' : 'string', end: to };
  if ((to = end(OPEN_QUOTED)) !== undefined) return { kind: 'error', end: to };
  if (places.inBraces || places.inLabels) {
    if ((to = end(LABEL_NAME)) !== undefined) return { kind: 'label', end: to };
  } else {
    if ((to = end(DURATION)) !== undefined) return { kind: 'duration', end: to };
    if ((to = end(NUMBER)) !== undefined) return { kind: 'number', end: to };
    // In a range, a colon stands before the step.
    if (places.inRange && text[at] === ':') return { kind: 'punctuation', end: at + 1 };
    if ((to = end(NAME)) !== undefined) return { kind: wordKind(text, at, to), end: to };
  }
  if ((to = end(OPERATOR)) !== undefined) return { kind: 'operator', end: to };
  if ((to = end(PUNCTUATION)) !== undefined) return { kind: 'punctuation', end: to };
  // A character outside the first plane has two units.
  return { kind: 'error', end: at + (text.codePointAt(at)! > 0xffff ? 2 : 1) };
}

function wordKind(text: string, start: number, end: number): TokenKind {
  const word = text.slice(start, end);
  const lower = word.toLowerCase();
  if (WORD_OPERATORS.has(lower)) return 'operator';
  if (NUMBER_WORDS.has(lower)) return 'number';
  const next = /\S/.exec(text.slice(end))?.[0];
  if (AGGREGATIONS.has(lower) && (next === '(' || /^\s*(by|without)\b/i.test(text.slice(end)))) return 'aggregation';
  if (KEYWORDS.has(lower)) return 'keyword';
  if (FUNCTIONS.has(word) && next === '(') return 'function';
  return 'metric';
}

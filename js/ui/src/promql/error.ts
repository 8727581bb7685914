/** Where a parser's error says that an expression is wrong. */

/** A place in an expression, in UTF-16 units, and what is wrong there. */
export interface Misplaced {
  start: number;
  end: number;
  text: string;
}

const POSITION = /(?:^|\s)(\d+):(\d+): parse error: ([\s\S]*)$/;

/**
 * The place that a message such as `1:5: parse error: …` names. Columns count bytes of UTF-8 from
 * 1. The mark covers the word at the place, or the last character before the end.
 */
export function misplacedOf(message: string, expression: string): Misplaced | undefined {
  const parts = POSITION.exec(message);
  if (parts === null) return undefined;
  const lines = expression.split('\n');
  const line = Math.min(Number(parts[1]), lines.length) - 1;
  const before = lines.slice(0, line).reduce((sum, text) => sum + text.length + 1, 0);
  const start = Math.min(before + unitsOf(lines[line]!, Number(parts[2]) - 1), expression.length);
  const word = /^[\w:.]+|^\S/.exec(expression.slice(start))?.[0] ?? '';
  const text = parts[3]!;
  if (word !== '') return { start, end: start + word.length, text };
  return { start: Math.max(0, expression.trimEnd().length - 1), end: expression.trimEnd().length, text };
}

/** UTF-16 units of the first so many bytes of UTF-8. */
function unitsOf(text: string, bytes: number): number {
  let units = 0;
  let seen = 0;
  for (const c of text) {
    if (seen >= bytes) break;
    const code = c.codePointAt(0)!;
    seen += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    units += c.length;
  }
  return units;
}

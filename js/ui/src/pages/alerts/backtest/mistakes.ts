/** What a node says of mistakes in a rule file: a line for each, such as `rules:7:5: KEY: WHAT`. */

/** A line of it. */
export interface Mistake {
  /** The place as it stands there, and what follows. */
  place: string;
  text: string;
  /** From 1 on; nothing for a line without a place. */
  at?: { line: number; column: number };
}

const LINE = /^rules:(\d+):(\d+)(?=:)/;

/** Reads all lines. */
export function mistakesOf(message: string): Mistake[] {
  return message.split('\n').map((text) => {
    const found = LINE.exec(text);
    if (found === null) return { place: '', text };
    const [place, line, column] = found;
    return { place, text: text.slice(place.length), at: { line: Number(line), column: Number(column) } };
  });
}

/** The index of a place in a text. Columns count characters, which may be of two units. */
export function indexOf(text: string, { line, column }: { line: number; column: number }): number {
  const lines = text.split('\n');
  const before = lines.slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, 0);
  const inLine = [...(lines[line - 1] ?? '')].slice(0, column - 1).join('').length;
  return Math.min(text.length, before + inLine);
}

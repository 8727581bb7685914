/** An expression in coloured pieces, for the copy that lies under the text field. */

import { tokenize, type TokenKind } from '../promql/tokens';

/** A piece of the text. */
export interface Piece {
  kind: TokenKind;
  text: string;
  start: number;
  /** Whether it belongs to what is marked as wrong. */
  isWrong: boolean;
}

/** Cuts a text at its tokens, at the ends of what is wrong, and at a place of interest. */
export function piecesOf(text: string, wrong?: { start: number; end: number }, anchor?: number): Piece[] {
  const cuts = [wrong?.start, wrong?.end, anchor].filter((cut) => cut !== undefined);
  return tokenize(text).flatMap(({ kind, start, end }) => {
    const inside = [...new Set(cuts.filter((cut) => cut > start && cut < end))].sort((a, b) => a - b);
    const places = [start, ...inside, end];
    return places.slice(0, -1).map((from, i) => ({
      kind,
      text: text.slice(from, places[i + 1]),
      start: from,
      isWrong: wrong !== undefined && from >= wrong.start && from < wrong.end,
    }));
  });
}

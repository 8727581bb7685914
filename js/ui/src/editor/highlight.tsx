/** An expression in colours. */

import { piecesOf } from './pieces';

/** The expression alone, to be read. */
export function Highlight({ text }: { text: string }) {
  return (
    <code class="promql">
      {piecesOf(text).map((piece) => (
        <span class={`t-${piece.kind}`}>{piece.text}</span>
      ))}
    </code>
  );
}

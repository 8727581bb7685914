/** Moves through a list by pages. */

import { formatCount } from '../format/number';

/** Buttons, and which part is shown. Nothing for a list of one page. */
export function Pager(props: { what: string; offset: number; size: number; total: number; isOpenEnd?: boolean; onMove: (offset: number) => void }) {
  const { what, offset, size, total, onMove } = props;
  if (total <= size) return null;
  const end = Math.min(total, offset + size);
  const more = props.isOpenEnd ? '+' : '';
  return (
    <div class="pager" role="group" aria-label={`Pages of ${what}`}>
      <button type="button" disabled={offset === 0} aria-label={`Previous ${what}`} onClick={() => onMove(Math.max(0, offset - size))}>
        ‹
      </button>
      <span aria-live="polite">
        {formatCount(offset + 1)}–{formatCount(end)} of {formatCount(total)}
        {more} {what}
      </span>
      <button type="button" disabled={end >= total} aria-label={`Next ${what}`} onClick={() => onMove(offset + size)}>
        ›
      </button>
    </div>
  );
}

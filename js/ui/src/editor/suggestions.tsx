/** The list of completions under the place that they complete. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Completion, Offer } from './completions';

export function Suggestions(props: {
  id: string;
  offer: Offer;
  chosen: number | undefined;
  copy: { current: HTMLPreElement | null };
  onTake: (completion: Completion) => void;
}) {
  const { id, offer, chosen, copy, onTake } = props;
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    const text = copy.current;
    if (element === null || text === null) return;
    // At the end of the text there is no piece to stand under.
    const mark = text.querySelector<HTMLElement>(`[data-start="${offer.place.from}"]`);
    const last = text.lastElementChild as HTMLElement | null;
    const left = mark?.offsetLeft ?? (last === null ? 0 : last.offsetLeft + last.offsetWidth);
    const top = mark === null ? text.offsetHeight : mark.offsetTop + mark.offsetHeight;
    element.style.left = `${Math.max(0, Math.min(left, text.offsetWidth - element.offsetWidth))}px`;
    element.style.top = `${top + 2}px`;
  }, [offer]);
  useLayoutEffect(() => {
    box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  const shown = offer.completions[chosen ?? 0];
  return (
    <div ref={box} class="suggestions">
      <ul id={id} role="listbox" aria-label="Completions">
        {offer.completions.map((completion, index) => (
          <li
            key={`${completion.kind} ${completion.name}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onPointerDown={(event) => {
              // The field keeps the focus.
              event.preventDefault();
              onTake(completion);
            }}
          >
            <span class={`kind k-${completion.kind}`} aria-hidden="true">
              {completion.kind[0]}
            </span>
            <span class="name">{completion.name === '' ? '""' : completion.name}</span>
            {completion.kind === 'metric' && completion.detail !== undefined && <span class="detail">{completion.detail}</span>}
          </li>
        ))}
      </ul>
      {shown?.help !== undefined && (
        <p class="help">
          {shown.kind !== 'metric' && <code>{shown.detail}</code>} {shown.help}
        </p>
      )}
      <p class="keys" aria-hidden="true">
        Tab completes · ↑↓ choose · Esc closes · Enter runs
      </p>
      <p class="hidden" role="status">
        {offer.completions.length} completions
      </p>
    </div>
  );
}

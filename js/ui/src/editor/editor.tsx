/**
 * A field for an expression: a text field whose letters are not seen, over a coloured copy of them.
 * Enter runs, Shift and Enter begin a line, Tab takes the completion, Ctrl and the space bar ask
 * for one.
 */

import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Misplaced } from '../promql/error';
import { isAbort } from '../source/source';
import type { Completer, Completion, Offer } from './completions';
import { piecesOf } from './pieces';
import { Suggestions } from './suggestions';

/** Time after a key until completions are asked for, in milliseconds. */
const WAIT_MS = 120;

export interface EditorProps {
  label: string;
  value: string;
  completer: Completer;
  /** What is wrong with the value. */
  wrong?: Misplaced | undefined;
  onInput: (value: string) => void;
  onRun: () => void;
  /** Asks for an older (1) or newer (-1) expression. */
  onRecall: (by: number) => void;
}

export function Editor(props: EditorProps) {
  const { label, value, completer, wrong, onInput, onRun, onRecall } = props;
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const copy = useRef<HTMLPreElement>(null);
  const [offer, setOffer] = useState<Offer>();
  const [chosen, setChosen] = useState<number>();
  const asked = useRef<AbortController | undefined>(undefined);

  const close = (): void => {
    asked.current?.abort();
    setOffer(undefined);
    setChosen(undefined);
  };
  const ask = (waitMs: number): void => {
    asked.current?.abort();
    const controller = new AbortController();
    asked.current = controller;
    const { signal } = controller;
    setTimeout(() => {
      const element = field.current;
      if (signal.aborted || element === null) return;
      completer.at(element.value, element.selectionStart, signal).then(
        (found) => {
          if (signal.aborted) return;
          setOffer(found);
          setChosen(undefined);
        },
        (error: unknown) => {
          if (!isAbort(error)) close();
        },
      );
    }, waitMs);
  };
  useEffect(() => () => asked.current?.abort(), []);

  const take = (completion: Completion): void => {
    const element = field.current;
    if (element === null || offer === undefined) return;
    element.focus();
    element.setSelectionRange(offer.place.from, offer.place.to);
    // Keeps what undo knows; the replacement is for browsers without it.
    if (!document.execCommand('insertText', false, completion.text)) {
      element.setRangeText(completion.text, offer.place.from, offer.place.to, 'end');
      onInput(element.value);
    }
    const cursor = offer.place.from + completion.text.length - completion.back;
    element.setSelectionRange(cursor, cursor);
    close();
    if (completion.kind === 'label' && completion.back > 0) ask(0);
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    const count = offer?.completions.length ?? 0;
    const isOpen = count > 0;
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    if (event.key === 'Enter' && (isPlain || event.ctrlKey || event.metaKey) && !event.isComposing) {
      event.preventDefault();
      if (isOpen && chosen !== undefined && isPlain) take(offer!.completions[chosen]!);
      else {
        close();
        onRun();
      }
    } else if (event.key === 'Escape' && isOpen) {
      event.preventDefault();
      close();
    } else if (event.key === 'Tab' && isOpen && isPlain) {
      event.preventDefault();
      take(offer!.completions[chosen ?? 0]!);
    } else if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      ask(0);
    } else if (event.altKey && (event.key === 'ArrowUp' || event.key === 'ArrowDown')) {
      event.preventDefault();
      close();
      onRecall(event.key === 'ArrowUp' ? 1 : -1);
    } else if (isOpen && isPlain && (event.key === 'ArrowUp' || event.key === 'ArrowDown')) {
      event.preventDefault();
      const by = event.key === 'ArrowDown' ? 1 : -1;
      setChosen(chosen === undefined ? (by > 0 ? 0 : count - 1) : (chosen + by + count) % count);
    }
  };

  // The field is as high as the copy of its text.
  useLayoutEffect(() => {
    if (field.current !== null && copy.current !== null) field.current.style.height = `${copy.current.offsetHeight}px`;
  });

  const listId = `${id}-list`;
  const wrongId = `${id}-wrong`;
  const anchor = offer?.place.from;
  return (
    <div class="editor">
      <div class="editor-field">
        <pre ref={copy} class="promql" aria-hidden="true">
          {piecesOf(value, wrong, anchor).map((piece) => (
            <span data-start={piece.start} class={`t-${piece.kind}${piece.isWrong ? ' wrong' : ''}`}>
              {piece.text}
            </span>
          ))}
          {'\u200b'}
        </pre>
        <textarea
          ref={field}
          class="promql"
          aria-label={label}
          aria-autocomplete="list"
          aria-controls={offer === undefined ? undefined : listId}
          aria-activedescendant={chosen === undefined ? undefined : `${listId}-${chosen}`}
          aria-invalid={wrong !== undefined}
          aria-describedby={wrong === undefined ? undefined : wrongId}
          autocapitalize="off"
          autocomplete="off"
          autocorrect="off"
          spellcheck={false}
          rows={1}
          placeholder="An expression in PromQL"
          value={value}
          onInput={(event) => {
            onInput(event.currentTarget.value);
            ask(WAIT_MS);
          }}
          onKeyDown={onKeyDown}
          onClick={close}
          onBlur={(event) => {
            const to = event.relatedTarget;
            if (!(to instanceof Node) || event.currentTarget.closest('.editor')?.contains(to) !== true) close();
          }}
        />
        {offer !== undefined && <Suggestions id={listId} offer={offer} chosen={chosen} copy={copy} onTake={take} />}
      </div>
      {wrong !== undefined && <Wrong id={wrongId} wrong={wrong} copy={copy} />}
    </div>
  );
}

/** What is wrong, under the place. */
function Wrong({ id, wrong, copy }: { id: string; wrong: Misplaced; copy: { current: HTMLPreElement | null } }) {
  const element = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => {
    const mark = copy.current?.querySelector<HTMLElement>('.wrong');
    if (element.current === null || mark === null || mark === undefined) return;
    const free = element.current.parentElement!.clientWidth - element.current.offsetWidth;
    element.current.style.marginLeft = `${Math.max(0, Math.min(mark.offsetLeft, free))}px`;
  });
  return (
    <p ref={element} id={id} class="wrong-text" role="status">
      {wrong.text}
    </p>
  );
}

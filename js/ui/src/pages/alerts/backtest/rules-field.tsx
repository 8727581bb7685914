/** The field for a rule file, with its mistakes beside it. */

import { useId, useMemo, useRef } from 'preact/hooks';
import { indexOf, mistakesOf, type Mistake } from './mistakes';

/** Lines of the field: those of the text, within these bounds. */
const ROWS_MIN = 10;
const ROWS_MAX = 24;
const EXAMPLE = `groups:
  - name: node
    rules:
      - alert: HighLoad
        expr: node_load15 > 4
        for: 5m
`;

/** @param message what the node says of mistakes in the text */
export function RulesField(props: { value: string; message: string | undefined; onInput: (text: string) => void; onRun: () => void }) {
  const { value, message, onInput, onRun } = props;
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const lines = value.split('\n').length;
  const show = ({ line, column }: { line: number; column: number }): void => {
    const element = field.current!;
    const start = indexOf(element.value, { line, column });
    const end = element.value.indexOf('\n', start);
    element.focus();
    element.setSelectionRange(start, end < 0 ? element.value.length : end);
    element.scrollTop = (element.scrollHeight * (line - 1)) / lines - element.clientHeight / 2;
  };
  return (
    <div class={`rule-file${message === undefined ? '' : ' is-wrong'}`}>
      <div>
        <label for={id}>Rules, as in a rule file</label>
        <textarea
          ref={field}
          id={id}
          class="mono"
          wrap="off"
          rows={Math.min(ROWS_MAX, Math.max(ROWS_MIN, lines + 1))}
          aria-invalid={message !== undefined}
          aria-describedby={`${id}-keys${message === undefined ? '' : ` ${id}-mistakes`}`}
          autocapitalize="off"
          autocomplete="off"
          autocorrect="off"
          spellcheck={false}
          placeholder={EXAMPLE}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            onRun();
          }}
        />
        <p id={`${id}-keys`} class="muted">
          Ctrl and Enter runs them. Nothing is stored, and no alert is sent.
        </p>
      </div>
      {message !== undefined && <Mistakes id={`${id}-mistakes`} message={message} onShow={show} />}
    </div>
  );
}

function Mistakes({ id, message, onShow }: { id: string; message: string; onShow: (at: { line: number; column: number }) => void }) {
  const mistakes = useMemo(() => mistakesOf(message), [message]);
  return (
    <pre id={id} class="notice bad" role="alert">
      {mistakes.map((mistake, i) => (
        <>
          {i > 0 && '\n'}
          <Place mistake={mistake} onShow={onShow} />
          {mistake.text}
        </>
      ))}
    </pre>
  );
}

/** Leads to the place in the text. */
function Place({ mistake: { place, at }, onShow }: { mistake: Mistake; onShow: (at: { line: number; column: number }) => void }) {
  if (at === undefined) return null;
  return (
    <button type="button" class="place" onClick={() => onShow(at)}>
      {place}
    </button>
  );
}

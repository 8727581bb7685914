/** Asks for the token that the node wants. */

import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Purpose, TokenKeeper } from '../source/token';

const TITLES: Record<Purpose, string> = { read: 'This node asks for a token', admin: 'This change needs a token of administrators' };

/** A dialog while a request waits for a token. */
export function Login({ tokens }: { tokens: TokenKeeper }) {
  const [isAsking, setAsking] = useState(tokens.isAsking);
  const [text, setText] = useState('');
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => tokens.listen(() => setAsking(tokens.isAsking)), [tokens]);
  useEffect(() => {
    if (isAsking && dialog.current?.open === false) dialog.current.showModal();
  }, [isAsking]);
  if (!isAsking) return null;
  const wasRefused = tokens.token !== undefined;
  return (
    <dialog ref={dialog} class="login" aria-labelledby={id} onCancel={() => tokens.give(undefined)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const token = text.trim();
          if (token === '') return;
          setText('');
          tokens.give(token);
        }}
      >
        <h2 id={id}>{TITLES[tokens.purpose]}</h2>
        <p>{wasRefused ? 'The token was refused. ' : ''}It is a line “bearer TOKEN” of the file of --{tokens.purpose}-credentials-file. This tab keeps it until it is closed.</p>
        <label>
          Token
          <input type="password" autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} autofocus />
        </label>
        <div class="row end">
          <button type="button" onClick={() => tokens.give(undefined)}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Continue
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** Asks for the token that the node wants. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { TokenKeeper } from '../source/token';

/** A dialog while a request waits for a token. */
export function Login({ tokens }: { tokens: TokenKeeper }) {
  const [isAsking, setAsking] = useState(tokens.isAsking);
  const [text, setText] = useState('');
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => tokens.listen(() => setAsking(tokens.isAsking)), [tokens]);
  useEffect(() => {
    if (isAsking && dialog.current?.open === false) dialog.current.showModal();
  }, [isAsking]);
  if (!isAsking) return null;
  const wasRefused = tokens.token !== undefined;
  return (
    <dialog ref={dialog} class="login" aria-labelledby="login-title" onCancel={() => tokens.give(undefined)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const token = text.trim();
          if (token === '') return;
          setText('');
          tokens.give(token);
        }}
      >
        <h2 id="login-title">This node asks for a token</h2>
        <p>{wasRefused ? 'The token was refused. ' : ''}It is a line “bearer TOKEN” of the file of --read-credentials-file. This tab keeps it until it is closed.</p>
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

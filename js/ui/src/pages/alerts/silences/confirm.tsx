/** Asks whether a silence is to end now. */

import { useEffect, useRef } from 'preact/hooks';
import { printMatchers } from '../../../promql/matchers';
import type { Silence } from '../../../source/answers';

/** @param onClose called in any case, after `onConfirm` */
export function ConfirmExpiry({ silence, onConfirm, onClose }: { silence: Silence; onConfirm: () => void; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  // A dialog that is closed gives the focus back.
  const close = (): void => dialog.current?.close();
  return (
    <dialog ref={dialog} aria-labelledby="expire-title" aria-describedby="expire-text" onClose={onClose}>
      <h2 id="expire-title">Expire this silence?</h2>
      <p id="expire-text">
        <span class="mono">{printMatchers(silence.matchers)}</span>: alerts that it matches are told to receivers again.
      </p>
      <div class="row end">
        <button type="button" onClick={close} autofocus>
          Keep it
        </button>
        <button
          type="button"
          class="primary"
          onClick={() => {
            onConfirm();
            close();
          }}
        >
          Expire it
        </button>
      </div>
    </dialog>
  );
}

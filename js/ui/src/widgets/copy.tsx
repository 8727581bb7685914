/**
 * A text to be copied. Over plain HTTP a page has no clipboard: the text stands selected in a
 * field, and the browser's own command copies it where there is one.
 */

import { useEffect, useRef, useState } from 'preact/hooks';

export function Copy({ what, text }: { what: string; text: () => string }) {
  const [shown, setShown] = useState<string>();
  const [isCopied, setCopied] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (shown === undefined || field.current === null) return;
    field.current.focus();
    field.current.select();
    setCopied(document.execCommand('copy'));
  }, [shown]);
  return (
    <>
      <button type="button" class="quiet" aria-expanded={shown !== undefined} onClick={() => setShown(shown === undefined ? text() : undefined)}>
        Copy {what}
      </button>
      {shown !== undefined && (
        <span class="copy-box">
          <textarea ref={field} readOnly rows={2} aria-label={`Text of ${what}`} value={shown} />
          <span role="status">{isCopied ? 'Copied.' : 'Selected: copy it with Ctrl and C.'}</span>
        </span>
      )}
    </>
  );
}

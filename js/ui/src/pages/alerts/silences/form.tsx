/** The form that adds a silence. */

import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useNow } from '../../../app/clock';
import { useApp } from '../../../app/context';
import { readSetting, writeSetting } from '../../../app/settings';
import { formatAgo, formatTime, zoneName } from '../../../format/time';
import { Failure } from '../../../widgets/state';
import { endOf, silenceOf, type Draft } from './draft';
import { useChange } from './load';

const ENDS = '2h';
/** Where the browser keeps the name that was given last. */
const AUTHOR = 'silences.author';

/**
 * @param aheadMs what the node's clock is ahead of the browser's
 * @param onAdded called with when the added silence ends
 */
export function SilenceForm({ matchers, aheadMs, onAdded, onCancel }: { matchers: string; aheadMs: number; onAdded: (endsAt: string) => void; onCancel: () => void }) {
  const { zone } = useApp();
  const now = useNow(5000) + aheadMs;
  const [draft, setDraft] = useState<Draft>(() => ({ matchers, ends: ENDS, author: readSetting(AUTHOR) ?? '', comment: '' }));
  // Mistakes are shown from the first try on.
  const [tries, setTries] = useState(0);
  const form = useRef<HTMLFormElement>(null);
  const change = useChange();
  const { mistakes = {} } = tries === 0 ? {} : silenceOf(draft, now, zone);
  const endMs = endOf(draft.ends, now, zone);
  const set = (part: Partial<Draft>): void => setDraft({ ...draft, ...part });

  useEffect(() => form.current?.querySelector<HTMLElement>('textarea, input')?.focus(), []);
  useEffect(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(), [tries]);

  const submit = (event: Event): void => {
    event.preventDefault();
    if (change.isRunning) return;
    setTries(tries + 1);
    const { silence } = silenceOf(draft, Date.now() + aheadMs, zone);
    if (silence === undefined) return;
    writeSetting(AUTHOR, silence.createdBy);
    change.add(silence, () => onAdded(silence.endsAt));
  };
  return (
    <form ref={form} class="silence-form" noValidate aria-label="New silence" onSubmit={submit}>
      <Part label={'Matchers, as severity="page", instance=~"edge-.*"'} mistake={mistakes.matchers}>
        {(marks) => <textarea {...marks} class="mono" rows={2} autocapitalize="off" autocomplete="off" spellcheck={false} value={draft.matchers} onInput={(event) => set({ matchers: event.currentTarget.value })} />}
      </Part>
      <Part
        label={`Ends after, as 2h, or at, as 2026-01-31 13:05 in ${zone === 'utc' ? 'UTC' : 'local time'}`}
        mistake={mistakes.ends}
        hint={endMs === undefined ? undefined : `${formatTime(endMs, zone)} ${zoneName(zone)}, ${formatAgo(endMs, now)}`}
      >
        {(marks) => <input {...marks} type="text" autocomplete="off" value={draft.ends} onInput={(event) => set({ ends: event.currentTarget.value })} />}
      </Part>
      <Part label="Author" mistake={mistakes.author}>
        {(marks) => <input {...marks} type="text" autocomplete="name" value={draft.author} onInput={(event) => set({ author: event.currentTarget.value })} />}
      </Part>
      <Part label="Comment" mistake={mistakes.comment}>
        {(marks) => <input {...marks} type="text" autocomplete="off" value={draft.comment} onInput={(event) => set({ comment: event.currentTarget.value })} />}
      </Part>
      {change.error !== undefined && <Failure error={change.error} what="The silence was not added" />}
      <div class="row">
        <button type="submit" class="primary" disabled={change.isRunning}>
          Add the silence
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <span class="muted" role="status">
          {change.isRunning && 'Adding…'}
        </span>
      </div>
    </form>
  );
}

/** What a field needs to be known by its label, and by what is wrong with it. */
interface Marks {
  id: string;
  'aria-invalid': boolean;
  'aria-describedby': string | undefined;
}

function Part(props: { label: string; mistake: string | undefined; hint?: string | undefined; children: (marks: Marks) => ComponentChildren }) {
  const id = useId();
  const { label, mistake, hint } = props;
  const said = mistake ?? hint;
  return (
    <div>
      <label for={id}>{label}</label>
      {props.children({ id, 'aria-invalid': mistake !== undefined, 'aria-describedby': said === undefined ? undefined : `${id}-said` })}
      {said !== undefined && (
        <p id={`${id}-said`} class={mistake === undefined ? 'muted' : 'bad-text'}>
          {said}
        </p>
      )}
    </div>
  );
}

/** Silences: which alerts are not told to receivers, until when, and why. */

import { useRef, useState } from 'preact/hooks';
import { useApp } from '../../../app/context';
import { setParams, type Route } from '../../../app/route';
import { timeOf } from '../../../figures/alerts';
import { silencesByState } from '../../../figures/silences';
import { formatCount } from '../../../format/number';
import { formatTime, zoneName } from '../../../format/time';
import type { Silence } from '../../../source/answers';
import { Await, Failure } from '../../../widgets/state';
import { useNodeInfo } from '../../home/clock';
import { Sections } from '../sections';
import { ConfirmExpiry } from './confirm';
import { SilenceForm } from './form';
import { SilenceList } from './list';
import { expiryError, useChange, useSilences } from './load';

const TITLES = { active: 'Active', pending: 'Pending', unknown: 'Of an unknown state' };

export function Silences({ route }: { route: Route }) {
  const { zone } = useApp();
  const silences = useSilences({ isActiveOnly: false });
  const aheadMs = (useNodeInfo().value?.clockAheadSeconds ?? 0) * 1000;
  const change = useChange();
  // An alert's button leads here with its labels.
  const given = route.params.get('matchers') ?? undefined;
  const [isWriting, setWriting] = useState(false);
  const [asked, setAsked] = useState<Silence>();
  const [said, setSaid] = useState('');
  const status = useRef<HTMLParagraphElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const isOpen = isWriting || given !== undefined;

  const close = (): void => {
    setWriting(false);
    setParams(route, { matchers: '' });
  };
  // What had the focus goes away.
  const tell = (text: string): void => {
    setSaid(text);
    status.current?.focus();
    silences.reload();
  };
  return (
    <>
      <h1 class="hidden">Silences</h1>
      <Sections route={route} shown="silences" />
      <section class="card" aria-label="Silences">
        <div class="row">
          <button ref={button} type="button" class="primary" aria-expanded={isOpen} onClick={() => (isOpen ? close() : setWriting(true))}>
            New silence
          </button>
          <p ref={status} role="status" tabIndex={-1}>
            {said}
          </p>
        </div>
        {isOpen && (
          <SilenceForm
            key={given ?? ''}
            matchers={given ?? ''}
            aheadMs={aheadMs}
            onCancel={() => {
              close();
              button.current?.focus();
            }}
            onAdded={(endsAt) => {
              close();
              tell(`The silence was added. It ends ${formatTime(timeOf(endsAt)!, zone)}, ${zoneName(zone)}.`);
            }}
          />
        )}
        {change.error !== undefined && <Failure error={expiryError(change.error)} what="The silence was not expired" />}
        <Await of={silences} what="Silences">
          {(all) => <Listed silences={all} aheadMs={aheadMs} isBusy={change.isRunning} onExpire={setAsked} />}
        </Await>
      </section>
      {asked !== undefined && (
        <ConfirmExpiry
          silence={asked}
          onConfirm={() => {
            setSaid('');
            change.expire(asked.id, () => tell('The silence was expired.'));
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

function Listed({ silences, aheadMs, isBusy, onExpire }: { silences: readonly Silence[]; aheadMs: number; isBusy: boolean; onExpire: (silence: Silence) => void }) {
  const byState = silencesByState(silences);
  return (
    <>
      {(['active', 'pending', 'unknown'] as const).map(
        (state) =>
          (state === 'active' || byState[state].length > 0) && (
            <section aria-label={`${TITLES[state]} silences`}>
              <h2>
                {TITLES[state]} ({formatCount(byState[state].length)})
              </h2>
              {byState[state].length === 0 ? <p class="muted">No silence is active.</p> : <SilenceList state={state} silences={byState[state]} aheadMs={aheadMs} isBusy={isBusy} onExpire={onExpire} />}
            </section>
          ),
      )}
      {byState.expired.length > 0 && (
        <details>
          <summary>Expired ({formatCount(byState.expired.length)})</summary>
          <SilenceList state="expired" silences={byState.expired} aheadMs={aheadMs} isBusy={isBusy} onExpire={onExpire} />
        </details>
      )}
    </>
  );
}

/** Silences of a state, by pages. */

import { useState } from 'preact/hooks';
import { useNow } from '../../../app/clock';
import { useApp } from '../../../app/context';
import { timeOf } from '../../../figures/alerts';
import type { SilenceState } from '../../../figures/silences';
import { formatAgo, formatTime } from '../../../format/time';
import { printMatcher, printMatchers } from '../../../promql/matchers';
import type { Silence } from '../../../source/answers';
import { Facts } from '../../../widgets/facts';
import { Pager } from '../../../widgets/pager';

const ROWS = 25;

interface Props {
  state: SilenceState;
  silences: readonly Silence[];
  aheadMs: number;
  /** Whether something is being changed. */
  isBusy: boolean;
  onExpire: (silence: Silence) => void;
}

export function SilenceList({ state, silences, aheadMs, isBusy, onExpire }: Props) {
  const [wanted, setOffset] = useState(0);
  // The list may have become shorter.
  const offset = wanted < silences.length ? wanted : 0;
  return (
    <>
      <Pager what={`${state} silences`} offset={offset} size={ROWS} total={silences.length} onMove={setOffset} />
      <ul class="targets">
        {silences.slice(offset, offset + ROWS).map((silence) => (
          <SilenceItem key={silence.id} state={state} silence={silence} aheadMs={aheadMs} isBusy={isBusy} onExpire={onExpire} />
        ))}
      </ul>
    </>
  );
}

function SilenceItem({ state, silence, aheadMs, isBusy, onExpire }: Omit<Props, 'silences'> & { silence: Silence }) {
  const { matchers, comment, createdBy, startsAt, endsAt } = silence;
  return (
    <li class="target">
      <div class="target-head">
        <span class="boxes">
          {matchers.map((matcher) => (
            <span class="box">{printMatcher(matcher)}</span>
          ))}
        </span>
        {state !== 'expired' && (
          <button type="button" disabled={isBusy} aria-label={`Expire ${printMatchers(matchers)}`} onClick={() => onExpire(silence)}>
            Expire
          </button>
        )}
      </div>
      <Facts
        rows={[
          ['Comment', comment],
          ['Author', createdBy],
          [state === 'pending' ? 'Starts' : 'Started', <Time text={startsAt} aheadMs={aheadMs} />],
          [state === 'expired' ? 'Ended' : 'Ends', <Time text={endsAt} aheadMs={aheadMs} />],
        ]}
      />
    </li>
  );
}

function Time({ text, aheadMs }: { text: string; aheadMs: number }) {
  const { zone } = useApp();
  const now = useNow(5000) + aheadMs;
  const ms = timeOf(text);
  if (ms === undefined) return <>unknown</>;
  return (
    <>
      {formatTime(ms, zone)} <span class="muted">{formatAgo(ms, now)}</span>
    </>
  );
}

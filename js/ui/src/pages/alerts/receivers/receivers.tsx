/** What is told of alerts, and whether that arrives. */

import { useNow } from '../../../app/clock';
import { useApp } from '../../../app/context';
import { useAnswer } from '../../../app/load';
import type { Route } from '../../../app/route';
import { timeOf } from '../../../figures/alerts';
import { receiverState, receiversVerdict } from '../../../figures/receivers';
import { formatCount } from '../../../format/number';
import { formatAgo, formatTime } from '../../../format/time';
import { isFound } from '../../../promql/selector';
import type { Receiver, Receivers as ReceiversData } from '../../../source/answers';
import { Facts } from '../../../widgets/facts';
import { listState, SearchRow } from '../../../widgets/search-row';
import { Await, Remarks } from '../../../widgets/state';
import { useNodeInfo } from '../../home/clock';
import { Sections } from '../sections';

const EVERY_MS = 15_000;
const ROWS = 25;
const NO_PARAMS = new URLSearchParams();

export function Receivers({ route }: { route: Route }) {
  const answer = useAnswer('api/v1/alerts/receivers', NO_PARAMS, { everyMs: EVERY_MS });
  const now = useNow(5000) + (useNodeInfo().value?.clockAheadSeconds ?? 0) * 1000;
  const all = (answer.value?.data as ReceiversData | undefined)?.receivers;
  // What was known before the request failed may not be so any more.
  const { level, text } = receiversVerdict(answer.error === undefined ? all : undefined, now);
  return (
    <>
      <Sections route={route} shown="receivers" />
      {(all !== undefined || answer.error !== undefined) && (
        <section class={`verdict ${level}`} aria-label="State of the receivers">
          <h1>
            <i class={`dot ${level}`} aria-hidden="true" />
            {text}
          </h1>
        </section>
      )}
      <Await of={answer} what="Receivers">
        {({ warnings, infos }) => (
          <>
            <Remarks warnings={warnings} infos={infos} />
            {all !== undefined && all.length > 0 && (
              <div class={answer.error === undefined ? 'node' : 'node old'}>
                <List receivers={all} route={route} now={now} />
              </div>
            )}
          </>
        )}
      </Await>
    </>
  );
}

function List({ receivers, route, now }: { receivers: readonly Receiver[]; route: Route; now: number }) {
  const { search, offset } = listState(route);
  const found = receivers.filter(({ name, kind }) => isFound(`${name} ${kind}`, search));
  const shown = found.slice(offset, offset + ROWS);
  return (
    <section class="card" aria-label="Receivers">
      <h2 class="hidden">Receivers</h2>
      <SearchRow route={route} what="receivers" size={ROWS} total={found.length} />
      {shown.length === 0 ? (
        <p class="muted">There is no such receiver.</p>
      ) : (
        <ul class="targets">
          {shown.map((receiver) => (
            <ReceiverItem key={`${receiver.kind} ${receiver.name}`} receiver={receiver} now={now} />
          ))}
        </ul>
      )}
    </section>
  );
}

function ReceiverItem({ receiver, now }: { receiver: Receiver; now: number }) {
  const { level, text } = receiverState(receiver, now);
  const { name, kind, undelivered, undeliveredSince, failingSince, lastError, lastSuccess, sent, failed, dropped, silenced } = receiver;
  const hasSuccess = timeOf(lastSuccess) !== undefined;
  return (
    <li class="target rule">
      <div class="target-head">
        <h3>
          <i class={`dot ${level}`} aria-hidden="true" />
          <span class={level === 'unknown' ? 'muted' : `${level}-text`}>{text}</span> {name}
        </h3>
        <span class="muted">{kind}</span>
      </div>
      <Facts
        rows={[
          ['Undelivered', undelivered >= 0 ? (undelivered === 0 ? 'none' : formatCount(undelivered)) : 'unknown'],
          ['The oldest of them', undelivered > 0 && <Since text={undeliveredSince} now={now} />],
          ['Fails since', failingSince !== undefined && <Since text={failingSince} now={now} />],
          ['Last error', lastError !== undefined && lastError !== '' && lastError],
          ['Last success', hasSuccess ? <Since text={lastSuccess} now={now} /> : 'none yet: whether it works is not known'],
          ['Sent', countText(sent)],
          ['Failed', countText(failed)],
          ['Dropped', <span class={dropped > 0 ? 'warn-text' : undefined}>{countText(dropped)}</span>],
          ['Silenced', countText(silenced)],
        ]}
      />
    </li>
  );
}

function countText(count: number | undefined): string {
  return count === undefined ? 'unknown' : formatCount(count);
}

function Since({ text, now }: { text: string | undefined; now: number }) {
  const { zone } = useApp();
  const ms = timeOf(text);
  if (ms === undefined) return <>unknown</>;
  return (
    <>
      {formatTime(ms, zone)} <span class="muted">{formatAgo(ms, Math.max(now, ms))}</span>
    </>
  );
}

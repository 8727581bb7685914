/** When alerts began to fire and when they ended, as far back as the node has kept it. */

import { useId, useState } from 'preact/hooks';
import { useApp } from '../../../app/context';
import { useLoad } from '../../../app/load';
import { setParams, type Route } from '../../../app/route';
import { timeOf } from '../../../figures/alerts';
import { formatTime, zoneName } from '../../../format/time';
import { parseMatchers, printMatchers } from '../../../promql/matchers';
import type { AlertHistory, Matcher } from '../../../source/answers';
import { Field } from '../../../widgets/field';
import { EndControl, RangeControl, type TimeRange } from '../../../widgets/range';
import { Await, Remarks } from '../../../widgets/state';
import { useNodeInfo } from '../../home/clock';
import { DAY_MS, paramsOf, rangeOf } from '../range';
import { Sections } from '../sections';
import { loadHistory, type Place } from './load';
import { EventTable } from './table';

const EVERY_MS = 15_000;
const USUAL_MS = 7 * DAY_MS;

export function History({ route }: { route: Route }) {
  const range = rangeOf(route.params, USUAL_MS);
  const text = route.params.get('match') ?? '';
  const { matchers, mistake } = parseMatchers(text);
  const mistakeId = useId();
  const move = (changed: TimeRange): void => setParams(route, paramsOf(changed, USUAL_MS));
  return (
    <>
      <h1 class="hidden">History of alerts</h1>
      <Sections route={route} shown="history" />
      <section class="card" aria-label="Events of alerts">
        <div class="row">
          <Field
            label={'Matchers, as severity="page"'}
            value={text}
            width="w-long"
            placeholder={'All alerts; or severity="page"'}
            mistakeId={mistake === undefined ? undefined : mistakeId}
            onText={(match) => {
              setParams(route, { match: match.trim() });
              return true;
            }}
          />
          <RangeControl range={range} onChange={move} />
          <EndControl range={range} onChange={move} label="End" />
        </div>
        {mistake !== undefined && (
          <p id={mistakeId} class="bad-text" role="alert">
            Nothing is shown: {mistake}.
          </p>
        )}
        {matchers !== undefined && <Events key={JSON.stringify([matchers, range])} matchers={matchers} range={range} />}
      </section>
    </>
  );
}

/** The events of a filter and a range, by pages. */
function Events({ matchers, range }: { matchers: readonly Matcher[]; range: TimeRange }) {
  const { source } = useApp();
  const aheadMs = (useNodeInfo().value?.clockAheadSeconds ?? 0) * 1000;
  // Where the pages behind the first one begin, the shown one last.
  const [places, setPlaces] = useState<readonly Place[]>([]);
  const place = places.at(-1);
  const match = matchers.length === 0 ? undefined : `{${printMatchers(matchers)}}`;
  const loaded = useLoad(JSON.stringify(place ?? 'newest'), (signal) => loadHistory(source, { match, range, nowMs: Date.now() + aheadMs, place }, signal), {
    // Older pages do not change.
    everyMs: place === undefined ? EVERY_MS : undefined,
    keeps: true,
  });
  return (
    <div aria-busy={loaded.isLoading && loaded.value?.place !== place}>
      <Await of={loaded} what="Events">
        {({ history, warnings, infos, next }) => (
          <>
            <Remarks warnings={warnings} infos={infos} />
            <p class="muted">
              <Kept history={history} />
            </p>
            {history.events.length === 0 ? <p>{emptyText(history, places.length > 0)}</p> : <EventTable events={history.events} />}
            {(places.length > 0 || next !== undefined) && (
              <Pages page={places.length} onNewer={() => setPlaces(places.slice(0, -1))} onOlder={next === undefined ? undefined : () => setPlaces([...places, next])} />
            )}
          </>
        )}
      </Await>
      {loaded.error !== undefined && loaded.value === undefined && places.length > 0 && <Pages page={places.length} onNewer={() => setPlaces(places.slice(0, -1))} onOlder={undefined} />}
    </div>
  );
}

/** Since when there are events at all. */
function Kept({ history: { oldestTime } }: { history: AlertHistory }) {
  const { zone } = useApp();
  const oldestMs = timeOf(oldestTime);
  if (oldestMs === undefined) return <>The node has kept no event yet.</>;
  return (
    <>
      Events are kept since {formatTime(oldestMs, zone)}, {zoneName(zone)}. What was before is not known.
    </>
  );
}

function emptyText({ oldestTime }: AlertHistory, isOlder: boolean): string {
  if (timeOf(oldestTime) === undefined) return 'Whether alerts were firing is not known.';
  return isOlder ? 'There are no older events.' : 'No event of this range is kept that matches.';
}

function Pages({ page, onNewer, onOlder }: { page: number; onNewer: () => void; onOlder: (() => void) | undefined }) {
  return (
    <div class="pager" role="group" aria-label="Pages of events">
      <button type="button" disabled={page === 0} onClick={onNewer}>
        ‹ Newer
      </button>
      <span aria-live="polite">Page {page + 1}</span>
      <button type="button" disabled={onOlder === undefined} onClick={() => onOlder?.()}>
        Older ›
      </button>
    </div>
  );
}

/** What is scraped, and how the last scrapes went. */

import { useMemo } from 'preact/hooks';
import { useNow } from '../../../app/clock';
import { useAnswer } from '../../../app/load';
import { setParams, type Route } from '../../../app/route';
import { formatCount, formatNumber } from '../../../format/number';
import { formatAgo } from '../../../format/time';
import { isFound } from '../../../promql/selector';
import type { Target, Targets as TargetsData } from '../../../source/answers';
import { LabelBoxes } from '../../../widgets/series';
import { Await } from '../../../widgets/state';
import { listState, SearchRow } from '../../../widgets/search-row';
import { RelabelSteps } from './relabel';
import { chosenTargets, textOf } from './select';

const ROWS = 50;
const EVERY_MS = 15_000;
const STATES = ['active', 'dropped'];
const HEALTHS = ['', 'up', 'down', 'unknown'];

export function Targets({ route }: { route: Route }) {
  const pools = (useAnswer('api/v1/scrape_pools', NO_PARAMS).value?.data as { scrapePools: string[] } | undefined)?.scrapePools ?? [];
  const state = route.params.get('state') ?? 'active';
  const choose = (name: string) => (event: Event) => setParams(route, { [name]: (event.currentTarget as HTMLSelectElement).value, offset: '' });
  return (
    <div class="card">
      <div class="row">
        <select aria-label="Job" value={route.params.get('pool') ?? ''} onChange={choose('pool')}>
          <option value="">All jobs</option>
          {pools.map((pool) => (
            <option value={pool}>{pool}</option>
          ))}
        </select>
        <select aria-label="State" value={state} onChange={choose('state')}>
          {STATES.map((state) => (
            <option value={state}>{state === 'active' ? 'Scraped' : 'Dropped'}</option>
          ))}
        </select>
        {state === 'active' && (
          <select aria-label="Health" value={route.params.get('health') ?? ''} onChange={choose('health')}>
            {HEALTHS.map((health) => (
              <option value={health}>{health === '' ? 'Any health' : health}</option>
            ))}
          </select>
        )}
      </div>
      {state === 'dropped' ? <Dropped route={route} /> : <Active route={route} />}
    </div>
  );
}

const NO_PARAMS = new URLSearchParams();

function paramsOf(route: Route, state: string): URLSearchParams {
  const { search, offset } = listState(route);
  const params = new URLSearchParams({ state, limit: `${ROWS}`, offset: `${offset}` });
  const pool = route.params.get('pool') ?? '';
  const health = route.params.get('health') ?? '';
  if (pool !== '') params.set('scrapePool', pool);
  if (health !== '' && state === 'active') params.set('health', health);
  if (search.trim() !== '') params.set('search', search);
  return params;
}

function Active({ route }: { route: Route }) {
  const { search, offset } = listState(route);
  const health = route.params.get('health') ?? '';
  const answer = useAnswer('api/v1/targets', paramsOf(route, 'active'), { everyMs: EVERY_MS, keeps: true });
  const { shown, total } = useMemo(() => {
    const all = (answer.value?.data as TargetsData | undefined)?.activeTargets ?? [];
    // A source that pages says how many there are.
    if (answer.value?.total !== undefined) return { shown: all, total: answer.value.total };
    const chosen = chosenTargets(all, { search, health });
    return { shown: chosen.slice(offset, offset + ROWS), total: chosen.length };
  }, [answer.value, search, health, offset]);
  return (
    <>
      <SearchRow route={route} what="targets" size={ROWS} total={total} />
      <Await of={answer}>
        {() =>
          shown.length === 0 ? (
            <p class="muted">There is no such target. A section scrape_configs in the file of --config names what is scraped.</p>
          ) : (
            <ul class="targets">
              {shown.map((target) => (
                <TargetRow key={`${target.scrapePool} ${target.scrapeUrl} ${textOf(target.labels)}`} target={target} />
              ))}
            </ul>
          )
        }
      </Await>
    </>
  );
}

function TargetRow({ target }: { target: Target }) {
  const now = useNow(5000);
  const last = Date.parse(target.lastScrape);
  const level = target.health === 'up' ? 'good' : target.health === 'down' ? 'bad' : 'warn';
  return (
    <li class={`target ${level}`}>
      <div class="target-head">
        <span>
          <i class={`dot ${level}`} aria-hidden="true" />
          <span class={`${level}-text`}>{target.health}</span> <b>{target.scrapePool}</b> <span class="mono">{target.scrapeUrl}</span>
        </span>
        <span class="muted">
          {last > 0 ? `${formatAgo(last, Math.max(now, last))}, took ${formatNumber(target.lastScrapeDuration, 'seconds', 2)}` : 'not scraped yet'} · each{' '}
          {target.scrapeInterval}, at most {target.scrapeTimeout}
        </span>
      </div>
      {target.lastError !== '' && <p class="bad-text">{target.lastError}</p>}
      <LabelBoxes labels={target.labels} />
      <RelabelSteps pool={target.scrapePool} discovered={target.discoveredLabels} />
    </li>
  );
}

function Dropped({ route }: { route: Route }) {
  const { search, offset } = listState(route);
  const answer = useAnswer('api/v1/targets', paramsOf(route, 'dropped'));
  const data = answer.value?.data as TargetsData | undefined;
  const all = data?.droppedTargets ?? [];
  const isPaged = answer.value?.total !== undefined;
  const found = isPaged ? all : all.filter((target) => isFound(textOf(target.discoveredLabels), search));
  const shown = isPaged ? found : found.slice(offset, offset + ROWS);
  const counted = Object.values(data?.droppedTargetCounts ?? {}).reduce((sum, count) => sum + count, 0);
  return (
    <>
      <SearchRow route={route} what="targets" size={ROWS} total={answer.value?.total ?? found.length} />
      <Await of={answer}>
        {() => (
          <>
            {counted > all.length && !isPaged && <p class="muted">{formatCount(counted)} targets were dropped; not all are kept.</p>}
            {shown.length === 0 && <p class="muted">Relabeling drops no target.</p>}
            <ul class="targets">
              {shown.map((target) => (
                <li class="target">
                  <b>{target.scrapePool}</b> <LabelBoxes labels={target.discoveredLabels} />
                  <RelabelSteps pool={target.scrapePool} discovered={target.discoveredLabels} />
                </li>
              ))}
            </ul>
          </>
        )}
      </Await>
    </>
  );
}

/** Alerts and rules: what fires and since when, what fails, and what takes long. */

import { useMemo } from 'preact/hooks';
import { useNow } from '../../app/clock';
import { useAnswer } from '../../app/load';
import { setParams, type Route } from '../../app/route';
import { alertsOf, alertsState, alertsVerdict, RULE_STATES } from '../../figures/alerts';
import { silencerOf } from '../../figures/silences';
import { formatCount } from '../../format/number';
import { formatAgo } from '../../format/time';
import type { RuleGroup, Rules } from '../../source/answers';
import { isMissing } from '../../source/source';
import { listState, SearchRow } from '../../widgets/search-row';
import { Await, Remarks } from '../../widgets/state';
import { useNodeInfo } from '../home/clock';
import { SlowestGroups } from './groups';
import { RuleItem, type Silencing } from './rule';
import { Sections } from './sections';
import { chosenRules, placedRules, type PlacedRule, type StateChoice } from './select';
import { useSilences } from './silences/load';

const EVERY_MS = 15_000;
const ROWS = 25;
const NO_PARAMS = new URLSearchParams();
const CHOICES: readonly StateChoice[] = ['', ...RULE_STATES, 'recording'];

export function Alerts({ route }: { route: Route }) {
  const answer = useAnswer('api/v1/rules', NO_PARAMS, { everyMs: EVERY_MS, keeps: true });
  const aheadMs = (useNodeInfo().value?.clockAheadSeconds ?? 0) * 1000;
  const now = useNow(5000);
  const groups = useMemo(() => (answer.value?.data as Rules | undefined)?.groups ?? [], [answer.value]);
  const silences = useSilences({ isActiveOnly: true });
  const { value: active } = silences;
  const silencer = useMemo(() => (active === undefined ? undefined : silencerOf(active)), [active]);
  // Older nodes have none.
  const hasSilences = silences.error === undefined ? active !== undefined : !isMissing(silences.error);
  const isDoubted = answer.value?.isClockDoubted === true;
  // What was known before the request failed may not be so any more.
  const state = answer.value === undefined || answer.error !== undefined ? undefined : alertsState(groups, alertsOf(groups), now + aheadMs, isDoubted);
  const { level, text } = alertsVerdict(state);
  return (
    <>
      <Sections route={route} shown="rules" />
      {(state !== undefined || answer.error !== undefined) && (
        <section class={`verdict ${level}`} aria-label="State of the alerts">
          <h1>
            <i class={`dot ${level}`} aria-hidden="true" />
            {text}
          </h1>
          {answer.error !== undefined && answer.atMs !== undefined && <p class="muted">What follows is from the last answer, {formatAgo(answer.atMs, Math.max(now, answer.atMs))}.</p>}
        </section>
      )}
      {isDoubted && (
        <p class="notice warn" role="status">
          The node doubts its clock. Until it is right, alerts do not begin or end by time, and the times below may be wrong.
        </p>
      )}
      {hasSilences && silences.error !== undefined && (
        <p class="notice warn" role="status">
          Which alerts are silenced is unknown: {silences.error.message}
        </p>
      )}
      <Await of={answer} what="Rules">
        {({ warnings, infos }) => (
          <>
            <Remarks warnings={warnings} infos={infos} />
            {groups.length === 0 ? (
              <p class="card">A section rule_files in the file of --config names files with groups of rules.</p>
            ) : (
              <>
                <RuleList groups={groups} route={route} silencing={{ isThere: hasSilences, silencer: silences.error === undefined ? silencer : undefined }} />
                <SlowestGroups groups={groups} aheadMs={aheadMs} />
              </>
            )}
          </>
        )}
      </Await>
    </>
  );
}

function RuleList({ groups, route, silencing }: { groups: readonly RuleGroup[]; route: Route; silencing: Silencing }) {
  const { search, offset } = listState(route);
  const choice = CHOICES.find((name) => name === route.params.get('state')) ?? '';
  const all = useMemo(() => placedRules(groups), [groups]);
  const chosen = useMemo(() => chosenRules(all, search, choice), [all, search, choice]);
  const shown = chosen.slice(offset, offset + ROWS);
  return (
    <section class="card" aria-label="Rules">
      <h2 class="hidden">Rules</h2>
      <div class="row">
        <select aria-label="State" value={choice} onChange={(event) => setParams(route, { state: event.currentTarget.value, offset: '' })}>
          {CHOICES.map((name) => (
            <option value={name}>
              {name === '' ? 'Any state' : name === 'recording' ? 'recording rules' : name} ({formatCount(chosenRules(all, '', name).length)})
            </option>
          ))}
        </select>
      </div>
      <SearchRow route={route} what="rules" size={ROWS} total={chosen.length} />
      {shown.length === 0 ? (
        <p class="muted">There is no such rule.</p>
      ) : (
        <ul class="targets">
          {shown.map((placed) => (
            <RuleItem key={keyOf(placed)} placed={placed} silencing={silencing} />
          ))}
        </ul>
      )}
    </section>
  );
}

// Rules of a group may differ in their labels only.
function keyOf({ group, rule }: PlacedRule): string {
  return JSON.stringify([group.file, group.name, rule.name, rule.query, rule.labels]);
}

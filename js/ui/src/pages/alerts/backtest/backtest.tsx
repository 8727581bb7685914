/** What rules of a rule file would have fired over a range of stored samples. */

import { useRef, useState } from 'preact/hooks';
import { useNow } from '../../../app/clock';
import { useApp } from '../../../app/context';
import { setParams, type Route } from '../../../app/route';
import { formatDuration, formatNumber } from '../../../format/number';
import { ApiError } from '../../../source/source';
import { EndControl, RangeControl } from '../../../widgets/range';
import { Failure } from '../../../widgets/state';
import { isSameRange, paramsOf, rangeOf } from '../range';
import { Sections } from '../sections';
import { keepDraft, readDraft } from './draft';
import { Result } from './result';
import { RulesField } from './rules-field';
import { useBacktest, type RunState } from './run';

export function Backtest({ route }: { route: Route }) {
  const { source } = useApp();
  const [rules, setRules] = useState(readDraft);
  const range = rangeOf(route.params);
  const { run, cancel, ...state } = useBacktest();
  const { answered, error } = state;
  const isRunning = state.runningSinceMs !== undefined;
  const runButton = useRef<HTMLButtonElement>(null);
  const isEmpty = rules.trim() === '';
  const isWrong = error instanceof ApiError && error.errorType === 'bad_data';

  const execute = (): void => {
    if (isEmpty) return;
    const end = Math.round((range.endMs ?? source.endMs ?? Date.now()) / 1000);
    run({ rules, range, start: end - range.rangeMs / 1000, end });
  };
  return (
    <>
      <h1 class="hidden">Backtest</h1>
      {source.kind === 'node' && <Sections route={route} shown="backtest" />}
      <section class="card" aria-label="Rules and range">
        <RulesField
          value={rules}
          message={isWrong ? error.message : undefined}
          onInput={(text) => {
            setRules(text);
            keepDraft(text);
          }}
          onRun={execute}
        />
        <div class="row controls">
          <RangeControl range={range} onChange={(changed) => setParams(route, paramsOf(changed))} />
          <EndControl range={range} onChange={(changed) => setParams(route, paramsOf(changed))} label="End" />
          <button ref={runButton} type="button" class="primary" disabled={isEmpty} onClick={execute}>
            Run
          </button>
          {isRunning && (
            <button
              type="button"
              onClick={() => {
                cancel();
                // The button that has the focus goes away.
                runButton.current?.focus();
              }}
            >
              Cancel
            </button>
          )}
          <Progress state={state} />
        </div>
        {error !== undefined && !isWrong && <Failure error={error} />}
      </section>
      {answered !== undefined && (
        <div class="node" aria-busy={isRunning}>
          {!isRunning && (answered.asked.rules !== rules || !isSameRange(answered.asked.range, range)) && (
            <p class="notice">The rules or the range were changed since: what follows is of those before.</p>
          )}
          <Result answered={answered} />
        </div>
      )}
    </>
  );
}

function Progress({ state: { runningSinceMs, isCancelled, answered } }: { state: RunState }) {
  return (
    <span class="muted" role="status">
      {runningSinceMs !== undefined ? (
        <>
          Evaluating the rules… <Elapsed sinceMs={runningSinceMs} />
        </>
      ) : isCancelled === true ? (
        'Cancelled.'
      ) : (
        answered !== undefined && `Evaluated in ${formatNumber(answered.tookMs / 1000, 'seconds', 2)}.`
      )}
    </span>
  );
}

/** Seconds that pass, which are not read out. */
function Elapsed({ sinceMs }: { sinceMs: number }) {
  const now = useNow(1000);
  return <span aria-hidden="true">{formatDuration(Math.max(0, Math.round((now - sinceMs) / 1000)))}</span>;
}

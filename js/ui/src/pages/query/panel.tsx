/** A panel: the expression, and its result as a table, a graph or an explanation. */

import { useEffect, useId, useState } from 'preact/hooks';
import { useApp } from '../../app/context';
import { useLoad, useSettled } from '../../app/load';
import { hashOf } from '../../app/route';
import { Editor } from '../../editor/editor';
import type { Completer } from '../../editor/completions';
import { misplacedOf } from '../../promql/error';
import { ApiError } from '../../source/source';
import { Copy } from '../../widgets/copy';
import { ExplainView } from './explain-view';
import { GraphView } from './graph-view';
import { readHistory, remember } from './history';
import { HistoryList } from './history-list';
import type { Panel, Tab } from './panels';
import { TableView } from './table-view';

/** Time after a key until an expression is checked, in milliseconds. */
const CHECK_AFTER_MS = 500;
const TABS: [Tab, string][] = [
  ['table', 'Table'],
  ['graph', 'Graph'],
  ['explain', 'Explain'],
];

export interface PanelProps {
  number: number;
  panel: Panel;
  completer: Completer;
  onChange: (panel: Panel, options?: { replace?: boolean }) => void;
  onRemove: (() => void) | undefined;
}

export function QueryPanel({ number, panel, completer, onChange, onRemove }: PanelProps) {
  const { source } = useApp();
  const id = useId();
  const [draft, setDraft] = useState(panel.expr);
  // Grows with each run, so that the same expression is asked for again.
  const [run, setRun] = useState(0);
  const [recalled, setRecalled] = useState(-1);
  const [isHistoryOpen, setHistoryOpen] = useState(false);
  useEffect(() => setDraft(panel.expr), [panel.expr]);
  const wrong = useWrong(draft);

  const execute = (expr: string): void => {
    setDraft(expr);
    setRun((count) => count + 1);
    setRecalled(-1);
    setHistoryOpen(false);
    remember(expr);
    if (expr !== panel.expr) onChange({ ...panel, expr, hidden: [] });
  };
  const recall = (by: number): void => {
    const history = readHistory();
    const next = Math.max(-1, Math.min(history.length - 1, recalled + by));
    setRecalled(next);
    setDraft(next < 0 ? panel.expr : history[next]!);
  };
  const View = panel.tab === 'table' ? TableView : panel.tab === 'graph' ? GraphView : ExplainView;
  return (
    <section class="card panel" aria-label={`Panel ${number}`}>
      <div class="row query-row">
        <Editor label={`Expression of panel ${number}`} value={draft} completer={completer} wrong={wrong} onInput={setDraft} onRun={() => execute(draft)} onRecall={recall} />
        <button type="button" class="primary" onClick={() => execute(draft)}>
          Run
        </button>
      </div>
      <div class="row tabs-row">
        <div class="tabs" role="tablist" aria-label={`Result of panel ${number}`}>
          {TABS.map(([tab, title]) => (
            <button
              type="button"
              role="tab"
              id={`${id}-${tab}`}
              aria-selected={panel.tab === tab}
              aria-controls={`${id}-result`}
              tabIndex={panel.tab === tab ? 0 : -1}
              onClick={() => onChange({ ...panel, tab })}
              onKeyDown={(event) => {
                const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
                if (by === 0) return;
                const [next] = TABS[(TABS.findIndex(([name]) => name === tab) + by + TABS.length) % TABS.length]!;
                onChange({ ...panel, tab: next }, { replace: true });
                document.getElementById(`${id}-${next}`)?.focus();
              }}
            >
              {title}
            </button>
          ))}
        </div>
        <div class="row end">
          <button type="button" class="quiet" aria-expanded={isHistoryOpen} onClick={() => setHistoryOpen(!isHistoryOpen)}>
            History
          </button>
          {source.kind === 'node' && panel.expr.trim() !== '' && (
            <a href={hashOf(['alerts'], { search: panel.expr })} aria-label={`Rules with the expression of panel ${number}`}>
              Rules
            </a>
          )}
          <Copy what="the link" text={() => location.href} />
          {onRemove !== undefined && (
            <button type="button" class="quiet" onClick={onRemove} aria-label={`Remove panel ${number}`}>
              Remove
            </button>
          )}
        </div>
      </div>
      {isHistoryOpen && <HistoryList onTake={execute} />}
      <div id={`${id}-result`} role="tabpanel" aria-labelledby={`${id}-${panel.tab}`}>
        {panel.expr.trim() === '' ? (
          <p class="muted">Nothing was asked yet. Write an expression and press Enter; “/” leads to the field.</p>
        ) : (
          <View panel={panel} run={run} onChange={onChange} />
        )}
      </div>
    </section>
  );
}

/** What the source's parser says of an expression, once it is not being written any more. */
function useWrong(draft: string) {
  const { source } = useApp();
  const settled = useSettled(draft, CHECK_AFTER_MS);
  const key = settled.trim() === '' ? undefined : settled;
  const { error } = useLoad(key, (signal) => source.request('api/v1/parse_query', new URLSearchParams({ query: settled }), signal));
  if (settled !== draft || !(error instanceof ApiError) || error.errorType !== 'bad_data') return undefined;
  return misplacedOf(error.message, draft);
}

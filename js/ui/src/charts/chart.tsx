/** A chart of expressions over a range, with its legend and values. */

import { useMemo, useState } from 'preact/hooks';
import { useApp } from '../app/context';
import { useLoad } from '../app/load';
import { queryHref } from '../app/route';
import { formatNumber } from '../format/number';
import { newPanel, searchOf } from '../pages/query/panels';
import { shownValue, summaryOf } from '../plot/columns';
import { differing } from '../promql/selector';
import { colorOf } from '../plot/palette';
import { Plot } from '../plot/plot';
import { Values } from '../plot/values';
import { SeriesName } from '../widgets/series';
import { Failure } from '../widgets/state';
import { chartGrid, loadChart } from './load';
import type { ChartSpec } from './spec';

export interface ChartProps {
  spec: ChartSpec;
  rangeMs: number;
  /** The end; nothing is now. */
  endMs?: number | undefined;
  everyMs?: number;
  syncKey: string;
  onZoom?: (start: number, end: number) => void;
}

export function Chart({ spec, rangeMs, endMs, everyMs, syncKey, onZoom }: ChartProps) {
  const { source } = useApp();
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const key = JSON.stringify([spec.queries, rangeMs, endMs ?? null]);
  const end = endMs ?? source.endMs;
  const loaded = useLoad(key, (signal) => loadChart(source, spec, chartGrid(rangeMs, end ?? Date.now()), signal), {
    everyMs: end === undefined ? everyMs : undefined,
    keeps: true,
  });
  const lines = loaded.value?.data.lines ?? [];
  const figures = useMemo(() => lines.map((line) => summaryOf(line.values)), [loaded.value]);
  const names = useMemo(() => differing(lines.map((line) => line.labels)), [loaded.value]);
  const isEmpty = loaded.value !== undefined && lines.every((_, index) => figures[index]?.last === undefined);
  if (isEmpty && spec.isOptional === true) return null;
  const panels = spec.queries.map(({ expr }) => ({ ...newPanel(), expr, tab: 'graph' as const, rangeMs, isStacked: spec.isStacked ?? false }));
  return (
    <section class="card chart" aria-label={spec.title}>
      <h3>
        {spec.title}
        <a class="quiet" href={queryHref(searchOf(panels))} aria-label={`${spec.title}: open in Query`}>
          Query
        </a>
      </h3>
      {loaded.error !== undefined && <Failure error={loaded.error} />}
      {isEmpty && <p class="muted">There are no samples in this range.</p>}
      {loaded.value === undefined && loaded.error === undefined && <p class="muted loading">Loading…</p>}
      {loaded.value !== undefined && !isEmpty && (
        <>
          <Plot
            label={`${spec.title}: ${lines.length} lines`}
            data={loaded.value.data}
            unit={spec.unit}
            height={150}
            syncKey={syncKey}
            isStacked={spec.isStacked}
            yMin={spec.yMin}
            hidden={hidden}
            onZoom={onZoom}
          />
          <ul class="keys" aria-label={`Lines of ${spec.title}`}>
            {lines.map((line, index) => (
              <li key={line.key}>
                <button
                  type="button"
                  class={`quiet line${hidden.has(line.key) ? ' off' : ''}`}
                  aria-pressed={!hidden.has(line.key)}
                  onClick={() => setHidden(toggled(hidden, line.key))}
                >
                  <i class="swatch" style={{ background: colorOf(line.color) }} />
                  {line.title ?? <SeriesName labels={names[index]!} />} <b>{formatNumber(shownValue(line, figures[index]?.last), spec.unit)}</b>
                </button>
              </li>
            ))}
          </ul>
          {loaded.value.isCut && <p class="muted">There are more lines than are drawn.</p>}
          <Values data={loaded.value.data} unit={spec.unit} caption={spec.title} />
        </>
      )}
    </section>
  );
}

function toggled(set: ReadonlySet<string>, key: string): Set<string> {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

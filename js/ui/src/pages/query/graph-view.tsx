/** The result of a panel as a graph. */

import { useMemo, useState } from 'preact/hooks';
import { useApp } from '../../app/context';
import { useLoad } from '../../app/load';
import { formatCount, unitOf, type Unit } from '../../format/number';
import { columnsOf, greatest, type PlotData } from '../../plot/columns';
import { Legend } from '../../plot/legend';
import { Plot } from '../../plot/plot';
import { positive } from '../../plot/stack';
import { Values } from '../../plot/values';
import { printDuration } from '../../promql/duration';
import { metricsOf } from '../../promql/place';
import type { RangeSeries } from '../../source/answers';
import { SaveReport } from '../report/save';
import { Await, Remarks } from '../../widgets/state';
import { GraphControls } from './controls';
import { CostLine } from './cost';
import { stepMsOf, type Panel } from './panels';
import { runRange, type Result } from './run';

/** Lines that are drawn unasked. */
const LINES_MAX = 100;

export interface ViewProps {
  panel: Panel;
  run: number;
  onChange: (panel: Panel, options?: { replace?: boolean }) => void;
}

export function GraphView({ panel, run, onChange }: ViewProps) {
  const { source } = useApp();
  const { expr, rangeMs, endMs } = panel;
  const key = JSON.stringify([expr, rangeMs, endMs ?? null, stepMsOf(panel), run]);
  const loaded = useLoad(key, (signal) => runRange(source, panel, signal), { keeps: true });
  return (
    <div aria-busy={loaded.isLoading}>
      <GraphControls panel={panel} onChange={onChange} />
      <Await of={loaded}>{(result) => <Graph panel={panel} result={result} onChange={onChange} />}</Await>
    </div>
  );
}

/** The answer over a range. */
export function Graph({ panel, result, onChange }: { panel: Panel; result: Result; onChange: ViewProps['onChange'] }) {
  const { source } = useApp();
  const [drawsAll, setDrawsAll] = useState(false);
  const series = seriesOf(result);
  const data = useMemo<PlotData>(() => columnsOf(drawsAll ? series : greatest(series, LINES_MAX), result.grid), [result, drawsAll]);
  const hidden = useMemo(() => new Set(panel.hidden), [panel.hidden.join()]);
  const dropped = useMemo(() => (panel.isLog ? positive(data.lines.map((line) => line.values)).dropped : 0), [data, panel.isLog]);
  const unit = unitFor(panel.expr);
  const hasHistograms = series.some((entry) => entry.histograms !== undefined);
  if (series.length === 0) {
    return (
      <>
        <Remarks warnings={result.warnings} infos={result.infos} />
        <p class="muted">There are no samples in this range.</p>
      </>
    );
  }
  const zoom = (start: number, end: number): void => {
    const rangeMs = Math.max(1000, Math.round(end - start) * 1000);
    onChange({ ...panel, rangeMs, endMs: Math.round(end) * 1000 });
  };
  return (
    <>
      <Remarks warnings={result.warnings} infos={result.infos} />
      <LeftOut result={result} got={series.length} drawn={data.lines.length} onAll={() => setDrawsAll(true)} />
      {dropped > 0 && <p class="notice warn">{formatCount(dropped)} points are not above zero: a log axis has no place for them.</p>}
      {hasHistograms && <p class="notice">Of native histograms the graph has the count; histogram_quantile() gives quantiles.</p>}
      <Plot
        label={`Graph of ${panel.expr}: ${data.lines.length} lines over ${printDuration(panel.rangeMs)}`}
        data={data}
        unit={unit}
        height={320}
        syncKey="query"
        isStacked={panel.isStacked}
        isLog={panel.isLog}
        yMin={panel.yMin}
        hidden={hidden}
        onZoom={source.kind === 'report' ? undefined : zoom}
      />
      <CostLine stats={result.data.stats} tookMs={result.tookMs} series={series.length} isCut={result.isCut} step={printDuration(result.grid.step * 1000)} />
      <Legend data={data} unit={unit} hidden={hidden} caption={`Lines of ${panel.expr}`} onHide={(keys) => onChange({ ...panel, hidden: keys }, { replace: true })} />
      <Values data={data} unit={unit} caption={panel.expr} isOpen={source.kind === 'report'} />
      <SaveReport panel={panel} result={result} />
    </>
  );
}

/** Says which lines are not there. */
function LeftOut({ result, got, drawn, onAll }: { result: Result; got: number; drawn: number; onAll: () => void }) {
  const { isCut, seriesInAll } = result;
  if (!isCut && got === drawn) return null;
  const inAll = seriesInAll === undefined ? `More than ${formatCount(got)}` : formatCount(seriesInAll);
  return (
    <p class="notice warn" role="status">
      {isCut ? `${inAll} series; the answer was cut off after ${formatCount(got)}. ` : `${formatCount(got)} series. `}
      {drawn < got && `The graph draws the ${formatCount(drawn)} with the greatest values. `}
      {isCut && 'Aggregate or select fewer for a whole picture. '}
      {drawn < got && (
        <button type="button" onClick={onAll}>
          Draw {formatCount(got)}
        </button>
      )}
    </p>
  );
}

function seriesOf({ data, grid }: Result): RangeSeries[] {
  if (data.resultType === 'matrix') return data.result;
  // A scalar of a range query is a matrix; what else comes has one point.
  if (data.resultType === 'scalar') return [{ metric: {}, values: [[grid.end, data.result[1]]] }];
  return [];
}

/** The unit of an expression of one metric, if no function changes it. */
function unitFor(expr: string): Unit {
  const [name, ...others] = metricsOf(expr);
  if (name === undefined || others.length > 0) return 'none';
  const unit = unitOf(name);
  if (/\b(count|changes|resets|count_over_time|absent)\b/.test(expr) || /[*/%]/.test(expr)) return 'none';
  const isRate = /\b(rate|irate|deriv)\s*\(/.test(expr);
  if (!isRate || name.endsWith('_bucket')) return unit;
  return unit === 'bytes' ? 'bytes_per_second' : 'none';
}

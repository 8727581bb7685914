/** The result of a panel at one time, as a table. */

import { useMemo, useState } from 'preact/hooks';
import { useApp } from '../../app/context';
import { useLoad } from '../../app/load';
import { formatCount } from '../../format/number';
import { formatTime } from '../../format/time';
import { isFound, seriesText } from '../../promql/selector';
import type { Histogram, InstantSeries, Labels, RangeSeries } from '../../source/answers';
import { Copy } from '../../widgets/copy';
import { Pager } from '../../widgets/pager';
import { EndControl } from '../../widgets/range';
import { SeriesName } from '../../widgets/series';
import { Await, Remarks } from '../../widgets/state';
import { CostLine } from './cost';
import type { ViewProps } from './graph-view';
import { SaveReport } from '../report/save';
import { withRange, type Panel } from './panels';
import { runInstant, type Result } from './run';

const ROWS = 100;
/** Points of a range vector that a cell shows. */
const POINTS_MAX = 100;

export function TableView({ panel, run, onChange }: ViewProps) {
  const { source } = useApp();
  const key = JSON.stringify([panel.expr, panel.endMs ?? null, run]);
  const loaded = useLoad(key, (signal) => runInstant(source, panel, signal), { keeps: true });
  return (
    <div aria-busy={loaded.isLoading}>
      <div class="row controls">
        <EndControl range={panel} onChange={(range) => onChange(withRange(panel, range))} label="Time" />
      </div>
      <Await of={loaded}>{(result) => <Answer panel={panel} result={result} />}</Await>
    </div>
  );
}

/** The answer at one time. */
export function Answer({ panel, result }: { panel: Panel; result: Result }) {
  const { data } = result;
  const isList = data.resultType === 'vector' || data.resultType === 'matrix';
  return (
    <>
      <Remarks warnings={result.warnings} infos={result.infos} />
      {data.resultType === 'vector' || data.resultType === 'matrix' ? (
        <List rows={data.result} result={result} />
      ) : (
        <p class="scalar">
          <span class="muted">{data.resultType}</span> {data.result[1]}
        </p>
      )}
      <CostLine stats={data.stats} tookMs={result.tookMs} series={isList ? data.result.length : 1} isCut={result.isCut} />
      <SaveReport panel={panel} result={result} />
    </>
  );
}

function List({ rows, result }: { rows: readonly (InstantSeries | RangeSeries)[]; result: Result }) {
  const [search, setSearch] = useState('');
  const [offset, setOffset] = useState(0);
  const [isSplit, setSplit] = useState(false);
  const found = useMemo(() => (search.trim() === '' ? rows : rows.filter((row) => isFound(seriesText(row.metric), search))), [rows, search]);
  const shown = found.slice(offset, offset + ROWS);
  if (rows.length === 0) return <p class="muted">The result is empty.</p>;
  const inAll = result.seriesInAll === undefined ? 'more' : formatCount(result.seriesInAll);
  return (
    <>
      {result.isCut && (
        <p class="notice warn" role="status">
          The answer was cut off after {formatCount(rows.length)} of {inAll} series.
        </p>
      )}
      <div class="row">
        {rows.length > 10 && (
          <input
            type="search"
            aria-label="Search in the result"
            placeholder="Search"
            value={search}
            onInput={(event) => {
              setSearch(event.currentTarget.value);
              setOffset(0);
            }}
          />
        )}
        <button type="button" aria-pressed={isSplit} onClick={() => setSplit(!isSplit)}>
          Labels as columns
        </button>
        <Copy what="the table" text={() => found.map(plainRow).join('\n')} />
        <Pager what="series" offset={offset} size={ROWS} total={found.length} onMove={setOffset} />
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Result">
        {isSplit ? <SplitTable rows={shown} /> : <PlainTable rows={shown} />}
      </div>
    </>
  );
}

function PlainTable({ rows }: { rows: readonly (InstantSeries | RangeSeries)[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Series</th>
          <th scope="col" class="number">
            Value
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            <td>
              <SeriesName labels={row.metric} />
            </td>
            <td class="number">
              <Value row={row} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function SplitTable({ rows }: { rows: readonly (InstantSeries | RangeSeries)[] }) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.metric)))].sort();
  return (
    <table>
      <thead>
        <tr>
          {names.map((name) => (
            <th scope="col">{name}</th>
          ))}
          <th scope="col" class="number">
            Value
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            {names.map((name) => (
              <td class="mono">{(row.metric as Labels)[name] ?? ''}</td>
            ))}
            <td class="number">
              <Value row={row} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Value({ row }: { row: InstantSeries | RangeSeries }) {
  const { zone } = useApp();
  if ('value' in row && row.value !== undefined) return <>{row.value[1]}</>;
  if ('histogram' in row && row.histogram !== undefined) return <HistogramValue histogram={row.histogram[1]} />;
  const { values = [], histograms = [] } = row as RangeSeries;
  const left = values.length + histograms.length - POINTS_MAX;
  return (
    <span class="points">
      {values.slice(-POINTS_MAX).map(([time, value]) => (
        <span>
          {value} <span class="muted">@ {formatTime(time * 1000, zone)}</span>
        </span>
      ))}
      {histograms.slice(-POINTS_MAX).map(([time, histogram]) => (
        <span>
          <HistogramValue histogram={histogram} /> <span class="muted">@ {formatTime(time * 1000, zone)}</span>
        </span>
      ))}
      {left > 0 && <span class="muted">and {formatCount(left)} older</span>}
    </span>
  );
}

/** Ends of an interval by rule: 0 has the upper one, 1 the lower, 2 none, 3 both. */
const ENDS: [string, string][] = [
  ['(', ']'],
  ['[', ')'],
  ['(', ')'],
  ['[', ']'],
];

function HistogramValue({ histogram }: { histogram: Histogram }) {
  const { buckets = [] } = histogram;
  return (
    <details>
      <summary>
        count {histogram.count}, sum {histogram.sum}
      </summary>
      <table>
        <tbody>
          {buckets.map(([rule, lower, upper, count]) => {
            const [open, close] = ENDS[rule] ?? ['(', ')'];
            return (
              <tr>
                <td>
                  {open}
                  {lower}, {upper}
                  {close}
                </td>
                <td class="number">{count}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </details>
  );
}

function plainRow(row: InstantSeries | RangeSeries): string {
  const name = seriesText(row.metric);
  if ('value' in row && row.value !== undefined) return `${name}\t${row.value[1]}`;
  if ('histogram' in row && row.histogram !== undefined) return `${name}\t${JSON.stringify(row.histogram[1])}`;
  const { values = [] } = row as RangeSeries;
  return `${name}\t${values.map(([time, value]) => `${value} @ ${time}`).join(' ')}`;
}

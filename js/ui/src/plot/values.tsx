/** The values of a graph in a table, for those who cannot see it and those who want numbers. */

import { useState } from 'preact/hooks';
import { useApp } from '../app/context';
import { formatNumber, type Unit } from '../format/number';
import { formatTime } from '../format/time';
import { seriesText } from '../promql/selector';
import { Pager } from '../widgets/pager';
import { shownValue, type PlotData } from './columns';

const ROWS = 50;
const COLUMNS = 6;

/** A part of the page that opens. */
export function Values(props: { data: PlotData; unit: Unit; caption: string; isOpen?: boolean }) {
  const { data, unit, caption } = props;
  const [isOpen, setOpen] = useState(props.isOpen ?? false);
  return (
    <details class="values" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Values in a table</summary>
      {isOpen && <Table data={data} unit={unit} caption={caption} />}
    </details>
  );
}

function Table({ data, unit, caption }: { data: PlotData; unit: Unit; caption: string }) {
  const { zone } = useApp();
  const [row, setRow] = useState(0);
  const [column, setColumn] = useState(0);
  const lines = data.lines.slice(column, column + COLUMNS);
  // The newest first.
  const last = data.times.length - 1 - row;
  const places = Array.from({ length: Math.max(0, Math.min(ROWS, last + 1)) }, (_, i) => last - i);
  return (
    <>
      <div class="row">
        <Pager what="times" offset={row} size={ROWS} total={data.times.length} onMove={setRow} />
        {data.lines.length > COLUMNS && <Pager what="series" offset={column} size={COLUMNS} total={data.lines.length} onMove={setColumn} />}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${caption}: values`}>
        <table>
          <caption class="hidden">{caption}: values by time</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {lines.map((line) => (
                <th scope="col" class="number">
                  {line.title ?? seriesText(line.labels)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {places.map((place) => (
              <tr>
                <th scope="row">{formatTime(data.times[place]! * 1000, zone)}</th>
                {lines.map((line) => (
                  <td class="number">{formatNumber(shownValue(line, line.values[place]), unit, 5)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

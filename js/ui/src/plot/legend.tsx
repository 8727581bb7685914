/** The lines of a graph with their figures; a click hides a line, another shows it. */

import { formatNumber, type Unit } from '../format/number';
import { SeriesName } from '../widgets/series';
import { summaryOf, type PlotData } from './columns';
import { colorOf } from './palette';

/** Rows that are shown at once. */
const ROWS_MAX = 200;

/** The legend of a graph. */
export function Legend(props: {
  data: PlotData;
  unit: Unit;
  hidden: ReadonlySet<string>;
  onHide: (hidden: string[]) => void;
  caption: string;
}) {
  const { data, unit, hidden, onHide } = props;
  const toggle = (key: string, alone: boolean): void => {
    if (alone) {
      const others = data.lines.map((line) => line.key).filter((other) => other !== key);
      // Once more shows all.
      onHide(others.every((other) => hidden.has(other)) && !hidden.has(key) ? [] : others);
    } else {
      onHide(hidden.has(key) ? [...hidden].filter((other) => other !== key) : [...hidden, key]);
    }
  };
  const number = (value: number | undefined) => <td class="number">{formatNumber(value, unit, 4)}</td>;
  return (
    <div class="legend" tabIndex={0} role="region" aria-label={`${props.caption}: lines`}>
      <table>
        <caption class="hidden">{props.caption}: each line with its figures</caption>
        <thead>
          <tr>
            <th scope="col">Series</th>
            <th scope="col" class="number">Last</th>
            <th scope="col" class="number wide">Least</th>
            <th scope="col" class="number wide">Greatest</th>
            <th scope="col" class="number wide">Mean</th>
          </tr>
        </thead>
        <tbody>
          {data.lines.slice(0, ROWS_MAX).map((line) => {
            const { last, min, max, mean } = summaryOf(line.values);
            const isShown = !hidden.has(line.key);
            return (
              <tr key={line.key} class={isShown ? undefined : 'off'}>
                <td>
                  <button
                    type="button"
                    class="quiet line"
                    aria-pressed={isShown}
                    title="Hide or show; with Ctrl or Shift alone"
                    onClick={(event) => toggle(line.key, event.ctrlKey || event.metaKey || event.shiftKey)}
                  >
                    <i class="swatch" style={{ background: colorOf(line.color) }} />
                    {line.title ?? <SeriesName labels={line.labels} />}
                  </button>
                </td>
                {number(last)}
                <td class="number wide">{formatNumber(min, unit, 4)}</td>
                <td class="number wide">{formatNumber(max, unit, 4)}</td>
                <td class="number wide">{formatNumber(mean, unit, 4)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {data.lines.length > ROWS_MAX && <p class="muted">and {data.lines.length - ROWS_MAX} more lines</p>}
    </div>
  );
}

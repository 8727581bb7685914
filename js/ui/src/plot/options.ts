/** What uPlot is told of a graph. */

import uPlot from 'uplot';
import type { Unit } from '../format/number';
import type { Zone } from '../format/time';
import { BINARY_STEPS, timeTexts, valueTexts } from './axis';
import { colorOf } from './palette';
import { lonely } from './stack';

/** A graph. */
export interface GraphShape {
  width: number;
  height: number;
  unit: Unit;
  zone: Zone;
  isStacked: boolean;
  isLog: boolean;
  /** The least value of the axis; nothing leaves it to the data. */
  yMin?: number | undefined;
  /** Graphs of one key share their cursor. */
  syncKey: string;
  /** Places in the palette, in the order of the columns. */
  colors: number[];
  /** Columns that are drawn dashed. */
  dashed: ReadonlySet<number>;
  /** Colours of texts and lines of the axes. */
  ink: string;
  grid: string;
}

const FONT = '12px system-ui, sans-serif';

/** The options of a graph; the caller adds `plugins`. */
export function optionsOf(shape: GraphShape): Omit<uPlot.Options, 'plugins'> {
  const { unit, zone, isStacked, isLog, ink, grid } = shape;
  const axis = { font: FONT, stroke: ink, ticks: { stroke: grid, width: 1, size: 4 }, grid: { stroke: grid, width: 1 } };
  return {
    width: shape.width,
    height: shape.height,
    tzDate: (seconds) => (zone === 'utc' ? uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC') : new Date(seconds * 1000)),
    // Room for half of the last label below: a date has ten characters.
    padding: [8, 38, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      focus: { prox: 24 },
      drag: { x: true, y: false, setScale: false },
      sync: { key: shape.syncKey, setSeries: false, filters: { pub: isMove, sub: isMove } },
      points: { size: 7 },
    },
    focus: { alpha: 0.25 },
    scales: { x: { time: true }, y: scaleOf(shape) },
    axes: [
      { ...axis, space: 64, size: 36, values: (_, times, __, ___, incr) => timeTexts(times, incr, zone) },
      {
        ...axis,
        space: 24,
        ...(unit === 'bytes' || unit === 'bytes_per_second' ? { incrs: BINARY_STEPS } : {}),
        size: (_, texts) => 14 + 7 * Math.max(0, ...(texts ?? []).map((text) => text.length)),
        values: (_, values) => valueTexts(values, unit),
      },
    ],
    series: [{}, ...shape.colors.map((place, at): uPlot.Series => seriesOf(place, isStacked, shape.dashed.has(at)))],
    ...(isStacked && !isLog ? { bands: shape.colors.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] })) } : {}),
  };
}

// A selection is of the graph in which it was made.
function isMove(type: string): boolean {
  return type === 'mousemove' || type === 'mouseleave';
}

function scaleOf({ isLog, isStacked, yMin }: GraphShape): uPlot.Scale {
  if (isLog) return { distr: 3 };
  const free = { pad: 0.1, soft: 0, mode: 1 as const };
  if (yMin !== undefined) return { range: { min: { hard: yMin, soft: yMin, mode: 1, pad: 0 }, max: free } };
  return { range: { min: isStacked ? { ...free, pad: 0 } : { ...free, mode: 2 }, max: { ...free, mode: 2 } } };
}

function seriesOf(place: number, isStacked: boolean, isDashed: boolean): uPlot.Series {
  const stroke = colorOf(place);
  return {
    stroke,
    width: 1.5,
    spanGaps: false,
    points: { show: false, filter: (u, index) => lonely(u.data[index]!), size: 4, fill: stroke },
    ...(isStacked ? { fill: `${stroke}59` } : {}),
    ...(isDashed ? { dash: [6, 4] } : {}),
  };
}

/**
 * The panels of the query page as an address has them: `g0.expr=up&g0.tab=graph&…`. The names and
 * values are those of Prometheus' own page (`web/ui/mantine-ui`, `urlStateEncoding.ts`), so that
 * links work in both; `log` and `hidden` are ours.
 */

import { formatTime, parseTime } from '../../format/time';
import { parseDuration, printDuration } from '../../promql/duration';
import type { TimeRange } from '../../widgets/range';

/** What a panel shows its result as. */
export type Tab = 'table' | 'graph' | 'explain';

/** How far the points of a graph lie apart. */
export type Resolution = { type: 'auto'; density: 'low' | 'medium' | 'high' } | { type: 'fixed'; stepMs: number };

/** A panel. */
export interface Panel {
  expr: string;
  tab: Tab;
  rangeMs: number;
  /** The end of a graph, and the time of a table; nothing is now. */
  endMs?: number;
  resolution: Resolution;
  isStacked: boolean;
  isLog: boolean;
  /** The least value of the axis. */
  yMin?: number;
  /** Keys of the lines that are hidden. */
  hidden: string[];
}

/** Panels that a page shows; more in an address are left out. */
export const PANELS_MAX = 20;

const HOUR_MS = 3_600_000;
/** Points of a graph by density. */
const POINTS = { low: 100, medium: 250, high: 750 };
const STEP_MS_MIN = 1000;
/** Most points of a series that Prometheus' API gives. */
const POINTS_MAX = 11_000;

/** A panel without an expression, as Prometheus' page begins with. */
export function newPanel(): Panel {
  return { expr: '', tab: 'table', rangeMs: HOUR_MS, resolution: { type: 'auto', density: 'medium' }, isStacked: false, isLog: false, hidden: [] };
}

/** The distance of a graph's points in milliseconds. */
export function stepMsOf({ resolution, rangeMs }: Pick<Panel, 'resolution' | 'rangeMs'>): number {
  const wanted = resolution.type === 'auto' ? Math.ceil(rangeMs / POINTS[resolution.density] / 1000) * 1000 : resolution.stepMs;
  const leastMs = resolution.type === 'auto' ? STEP_MS_MIN : 1;
  return Math.max(wanted, leastMs, Math.ceil(rangeMs / (POINTS_MAX - 1)));
}

/** Reads the panels of an address. */
export function panelsOf(search: string): Panel[] {
  const params = new URLSearchParams(search);
  const panels: Panel[] = [];
  while (panels.length < PANELS_MAX && params.has(`g${panels.length}.expr`)) {
    const prefix = `g${panels.length}.`;
    panels.push(panelOf((name) => params.get(prefix + name) ?? undefined));
  }
  return panels;
}

type Get = (name: string) => string | undefined;

function panelOf(get: Get): Panel {
  const panel = newPanel();
  panel.expr = get('expr') ?? '';
  panel.tab = tabOf(get('tab'));
  panel.rangeMs = parseDuration(get('range_input') ?? '') ?? panel.rangeMs;
  const endMs = parseTime(get('end_input') ?? get('moment_input') ?? '', 'utc');
  if (endMs !== undefined) panel.endMs = endMs;
  panel.resolution = resolutionOf(get) ?? panel.resolution;
  panel.isStacked = get('display_mode') === 'stacked' || (get('display_mode') === undefined && get('stacked') === '1');
  panel.isLog = get('log') === '1';
  const yMin = Number.parseFloat(get('y_axis_min') ?? '');
  if (Number.isFinite(yMin)) panel.yMin = yMin;
  panel.hidden = (get('hidden') ?? '').split(',').filter((key) => key !== '');
  return panel;
}

// Numbers stand in links of Prometheus 2.
function tabOf(text: string | undefined): Tab {
  return text === '0' || text === 'graph' ? 'graph' : text === 'explain' ? 'explain' : 'table';
}

function resolutionOf(get: Get): Resolution | undefined {
  const type = get('res_type');
  const density = get('res_density');
  if (type === 'auto' && (density === 'low' || density === 'medium' || density === 'high')) return { type, density };
  const step = type === 'fixed' || type === 'custom' ? get('res_step') : type === undefined ? get('step_input') : undefined;
  const stepMs = Number.parseFloat(step ?? '') * 1000;
  return stepMs > 0 && Number.isFinite(stepMs) ? { type: 'fixed', stepMs } : undefined;
}

/** Writes panels. */
export function searchOf(panels: readonly Panel[]): URLSearchParams {
  const params = new URLSearchParams();
  panels.forEach((panel, index) => {
    const set = (name: string, value: string): void => params.set(`g${index}.${name}`, value);
    set('expr', panel.expr);
    set('tab', panel.tab);
    set('range_input', printDuration(panel.rangeMs));
    if (panel.endMs !== undefined) {
      set('end_input', formatTime(panel.endMs, 'utc'));
      set('moment_input', formatTime(panel.endMs, 'utc'));
    }
    set('res_type', panel.resolution.type);
    if (panel.resolution.type === 'auto') set('res_density', panel.resolution.density);
    else set('res_step', `${panel.resolution.stepMs / 1000}`);
    set('display_mode', panel.isStacked ? 'stacked' : 'lines');
    if (panel.yMin !== undefined) set('y_axis_min', `${panel.yMin}`);
    if (panel.isLog) set('log', '1');
    if (panel.hidden.length > 0) set('hidden', panel.hidden.join(','));
  });
  return params;
}

/** The panel with another range. */
export function withRange({ endMs: _, ...rest }: Panel, range: TimeRange): Panel {
  return { ...rest, rangeMs: range.rangeMs, ...(range.endMs === undefined ? {} : { endMs: range.endMs }) };
}

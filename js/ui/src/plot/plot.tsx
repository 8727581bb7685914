/** A graph of lines, with its legend and its values in a table. */

import { useEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { useApp } from '../app/context';
import { formatNumber, type Unit } from '../format/number';
import { formatTime } from '../format/time';
import { seriesText } from '../promql/selector';
import { shownValue, type PlotData } from './columns';
import { optionsOf } from './options';
import { colorOf } from './palette';
import { useScheme } from './scheme';
import { spansPlugin, type Span } from './spans';
import { positive, stacked } from './stack';
import { tooltip } from './tooltip';

/** What a graph shows. */
export interface PlotProps {
  /** What it is, for those who do not see it. */
  label: string;
  data: PlotData;
  unit: Unit;
  height: number;
  syncKey: string;
  isStacked?: boolean | undefined;
  isLog?: boolean | undefined;
  yMin?: number | undefined;
  /** Keys of lines that are not drawn. */
  hidden?: ReadonlySet<string> | undefined;
  /** Spans of time behind the lines. */
  spans?: readonly Span[] | undefined;
  /** Called with seconds when a span of time is drawn on the graph. */
  onZoom?: ((start: number, end: number) => void) | undefined;
}

/** The graph alone. */
export function Plot(props: PlotProps) {
  const { data, unit, height, syncKey, isStacked = false, isLog = false, yMin, hidden, spans, onZoom, label } = props;
  const { zone } = useApp();
  const scheme = useScheme();
  const place = useRef<HTMLDivElement>(null);
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  const lines = useMemo(() => data.lines.filter((line) => hidden?.has(line.key) !== true), [data, hidden]);

  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const style = getComputedStyle(element);
    const options = optionsOf({
      width: element.clientWidth,
      height,
      unit,
      zone,
      isStacked,
      isLog,
      yMin,
      syncKey,
      colors: lines.map((line) => line.color),
      dashed: new Set(lines.flatMap(({ isLimit }, at) => (isLimit === true ? [at] : []))),
      ink: style.getPropertyValue('--muted'),
      grid: style.getPropertyValue('--grid'),
    });
    const raw = lines.map((line) => line.values);
    const columns = isStacked ? stacked(raw) : raw;
    const drawn = isLog ? positive(columns).columns : columns;
    const box = tooltip({
      time: (index) => formatTime(data.times[index]! * 1000, zone),
      line: (line, index) => ({
        name: lines[line]!.title ?? seriesText(lines[line]!.labels),
        value: formatNumber(shownValue(lines[line]!, lines[line]!.values[index]), unit, 5),
        color: colorOf(lines[line]!.color),
      }),
    });
    const select = (u: uPlot): void => {
      const { left, width } = u.select;
      if (width < 4) return;
      const [start, end] = [u.posToVal(left, 'x'), u.posToVal(left + width, 'x')];
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      zoom.current?.(start, end);
    };
    const plugins: uPlot.Plugin[] = [box, { hooks: { setSelect: select } }];
    if (spans !== undefined) plugins.push(spansPlugin(spans, (level) => style.getPropertyValue(`--${level}`)));
    const plot = new uPlot({ ...options, plugins }, [data.times, ...drawn] as uPlot.AlignedData, element);
    const resized = new ResizeObserver(() => {
      if (element.clientWidth > 0) plot.setSize({ width: element.clientWidth, height });
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [data, lines, unit, zone, scheme, height, syncKey, isStacked, isLog, yMin, spans]);

  return <div ref={place} class="plot" role="img" aria-label={label} style={{ height: `${height}px` }} />;
}

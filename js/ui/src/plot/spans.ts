/** Spans of time behind the lines of a graph. */

import type uPlot from 'uplot';

/** A span of time: seconds since the epoch, the end not included. */
export interface Span {
  start: number;
  end: number;
  level: 'bad' | 'warn';
}

/** How much of the ground a span covers. */
const ALPHA = 0.16;

/**
 * A plugin that draws them.
 *
 * @param colorOf the colour of a level
 */
export function spansPlugin(spans: readonly Span[], colorOf: (level: Span['level']) => string): uPlot.Plugin {
  const draw = (u: uPlot): void => {
    const { left, top, width, height } = u.bbox;
    const place = (time: number): number => Math.min(left + width, Math.max(left, u.valToPos(time, 'x', true)));
    u.ctx.save();
    u.ctx.globalAlpha = ALPHA;
    for (const { start, end, level } of spans) {
      u.ctx.fillStyle = colorOf(level);
      // A span of a moment is still seen.
      u.ctx.fillRect(place(start), top, Math.max(1, place(end) - place(start)), height);
    }
    u.ctx.restore();
  };
  return { hooks: { drawClear: draw } };
}

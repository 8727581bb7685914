/** What stands beside the cursor: the time, and the line that is nearest, with its value. */

import type uPlot from 'uplot';

/** Texts of the box for a place in the columns. */
export interface TooltipTexts {
  time(index: number): string;
  /** @param line the line's place, from 0 */
  line(line: number, index: number): { name: string; value: string; color: string };
}

/** A plugin that shows the box while the pointer is over the graph. */
export function tooltip(texts: TooltipTexts): uPlot.Plugin {
  const box = document.createElement('div');
  box.className = 'plot-tooltip';
  box.hidden = true;
  // The table under the graph says the same.
  box.setAttribute('aria-hidden', 'true');
  let focused: number | undefined;

  const show = (u: uPlot): void => {
    const { idx, left, top } = u.cursor;
    const isOver = u.over.matches(':hover');
    box.hidden = !isOver || idx == null || left === undefined || left < 0;
    if (box.hidden || idx == null) return;
    const value = focused === undefined ? undefined : u.data[focused]?.[idx];
    const lines = [text('time', texts.time(idx))];
    if (focused !== undefined && value != null) {
      const { name, value: shown, color } = texts.line(focused - 1, idx);
      const swatch = document.createElement('i');
      swatch.style.background = color;
      const label = text('name', name);
      label.prepend(swatch);
      lines.push(text('value', shown), label);
    }
    box.replaceChildren(...lines);
    const isRight = left! > u.over.clientWidth / 2;
    box.style.left = isRight ? '' : `${left! + 14}px`;
    box.style.right = isRight ? `${u.over.clientWidth - left! + 14}px` : '';
    box.style.top = `${Math.min(Math.max(0, (top ?? 0) - 12), Math.max(0, u.over.clientHeight - box.offsetHeight))}px`;
  };

  return {
    hooks: {
      init: (u) => void u.over.append(box),
      setSeries: (u, index) => {
        focused = index ?? undefined;
        show(u);
      },
      setCursor: show,
    },
  };
}

function text(className: string, content: string): HTMLElement {
  const element = document.createElement('div');
  element.className = className;
  element.textContent = content;
  return element;
}

/** Queries: panels with an expression and its result. All of it stands in the address. */

import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { useApp } from '../../app/context';
import { go, queryHref, type Route } from '../../app/route';
import { Completer } from '../../editor/completions';
import { newPanel, PANELS_MAX, panelsOf, searchOf, type Panel } from './panels';
import { QueryPanel } from './panel';

export function QueryPage({ route }: { route: Route }) {
  const { source } = useApp();
  const completer = useMemo(() => new Completer(source), [source]);
  const panels = useMemo(() => {
    const found = panelsOf(route.search);
    return found.length === 0 ? [{ ...newPanel(), tab: 'graph' as const }] : found;
  }, [route.search]);
  // Tells panels that look alike apart when one before them is removed.
  const [ids, setIds] = useState<number[]>([]);
  const known = panels.map((_, index) => ids[index] ?? index + 1000 * (ids.length + 1));

  const show = useCallback((changed: Panel[], replace = false) => go(queryHref(searchOf(changed)), { replace }), []);
  const change = (index: number, panel: Panel, replace: boolean): void => show(panels.map((other, i) => (i === index ? panel : other)), replace);
  const remove = (index: number): void => {
    setIds(known.filter((_, i) => i !== index));
    show(panels.filter((_, i) => i !== index));
  };
  const add = (): void => {
    const { rangeMs, tab, endMs } = panels.at(-1)!;
    setIds([...known, Math.max(...known) + 1]);
    show([...panels, { ...newPanel(), rangeMs, tab, ...(endMs === undefined ? {} : { endMs }) }]);
  };
  useEffect(() => {
    const focus = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (event.key !== '/' || target.matches('input, textarea, select')) return;
      event.preventDefault();
      document.querySelector<HTMLElement>('.editor textarea')?.focus();
    };
    addEventListener('keydown', focus);
    return () => removeEventListener('keydown', focus);
  }, []);
  return (
    <>
      <h1 class="hidden">Query</h1>
      {panels.map((panel, index) => (
        <QueryPanel
          key={known[index]}
          number={index + 1}
          panel={panel}
          completer={completer}
          onChange={(changed, { replace = false } = {}) => change(index, changed, replace)}
          onRemove={panels.length > 1 ? () => remove(index) : undefined}
        />
      ))}
      <button type="button" onClick={add} disabled={panels.length >= PANELS_MAX}>
        Add a panel
      </button>
    </>
  );
}

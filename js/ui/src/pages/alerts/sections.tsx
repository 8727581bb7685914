/** The ways between the rules of the node, what became of alerts, and what other rules would do. */

import { useApp } from '../../app/context';
import { useLoad } from '../../app/load';
import { hashOf, type Route } from '../../app/route';
import { isMissing } from '../../source/source';

/** What stands below Alerts. `isNew`: older nodes lack it. */
const SECTIONS = [
  { name: 'rules', title: 'Rules', path: ['alerts'], isNew: false },
  { name: 'history', title: 'History', path: ['alerts', 'history'], isNew: true },
  { name: 'silences', title: 'Silences', path: ['alerts', 'silences'], isNew: true },
  { name: 'receivers', title: 'Receivers', path: ['alerts', 'receivers'], isNew: true },
  { name: 'backtest', title: 'Backtest', path: ['alerts', 'backtest'], isNew: false },
] as const;

/** Whether the node tells others of alerts; kept, so that nothing flickers between views. */
let isTelling: boolean | undefined;

export function Sections({ route, shown }: { route: Route; shown: (typeof SECTIONS)[number]['name'] }) {
  const hasAll = useTelling();
  return (
    <nav class="sections" aria-label="Sections">
      {SECTIONS.filter(({ name, isNew }) => !isNew || hasAll || name === shown).map(({ name, title, path }) => (
        <a key={name} href={route.search + hashOf(path)} aria-current={name === shown ? 'page' : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}

/** One of its endpoints tells: a node has all of them or none. */
function useTelling(): boolean {
  const { source } = useApp();
  const { value, error } = useLoad(isTelling === undefined ? 'telling' : undefined, async (signal) => {
    try {
      await source.request('api/v1/alerts/receivers', new URLSearchParams(), signal);
      isTelling = true;
    } catch (error) {
      if (!isMissing(error)) throw error;
      isTelling = false;
    }
    return isTelling;
  });
  // The views themselves say what is not known.
  return isTelling ?? value ?? error !== undefined;
}

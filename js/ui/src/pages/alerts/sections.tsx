/** The ways between the rules of the node and what others would do. */

import { hashOf, type Route } from '../../app/route';

const SECTIONS = [
  { name: 'rules', title: 'Rules', path: ['alerts'] },
  { name: 'backtest', title: 'Backtest', path: ['alerts', 'backtest'] },
];

export function Sections({ route, shown }: { route: Route; shown: 'rules' | 'backtest' }) {
  return (
    <nav class="sections" aria-label="Sections">
      {SECTIONS.map(({ name, title, path }) => (
        <a href={route.search + hashOf(path)} aria-current={name === shown ? 'page' : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}

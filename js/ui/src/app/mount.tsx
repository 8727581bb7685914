/** Shows the page with a source of data. */

import { render } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Zone } from '../format/time';
import { Explore } from '../pages/explore/explore';
import { Home } from '../pages/home/home';
import { QueryPage } from '../pages/query/page';
import type { Source } from '../source/source';
import type { TokenKeeper } from '../source/token';
import { Connection } from './connection';
import { App, type AppContext, type Theme } from './context';
import { Login } from './login';
import { followLinks, useRoute } from './route';
import { readSetting, writeSetting } from './settings';
import { Shell, type NavEntry } from './shell';
import '../style/main.css';

const PAGES: readonly NavEntry[] = [
  { name: '', title: 'Home' },
  { name: 'query', title: 'Query' },
  { name: 'explore', title: 'Explore' },
];

/** Shows the page in an element. `tokens` asks for a token where the source may want one. */
export function mount(element: HTMLElement, source: Source, tokens?: TokenKeeper): void {
  element.replaceChildren();
  render(<Page source={source} tokens={tokens} />, element);
}

function Page({ source, tokens }: { source: Source; tokens: TokenKeeper | undefined }) {
  const connection = useMemo(() => new Connection(source), [source]);
  const [theme, setTheme] = useState<Theme>(() => oneOf(readSetting('theme'), ['light', 'dark']) ?? 'auto');
  const [zone, setZone] = useState<Zone>(() => oneOf(readSetting('zone'), ['utc']) ?? 'local');
  // The count of changes is of no interest, only that there was one.
  const [, setChanges] = useState(0);
  useEffect(() => connection.start(), [connection]);
  useEffect(() => connection.listen(() => setChanges((count) => count + 1)), [connection]);
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme;
    writeSetting('theme', theme);
  }, [theme]);
  useEffect(() => writeSetting('zone', zone), [zone]);
  const app: AppContext = { source: connection, zone, theme, epoch: connection.epoch, setZone, setTheme };
  useEffect(followLinks, []);
  const route = useRoute();
  // A directory has no state of a node to show.
  const pages = source.kind === 'node' ? PAGES : PAGES.slice(1);
  const shown = route.path[0] ?? pages[0]!.name;
  useEffect(() => {
    const title = PAGES.find((page) => page.name === shown)?.title;
    document.title = shown === '' || title === undefined ? 'tidepool' : `${title} – tidepool`;
  }, [shown]);
  return (
    <App.Provider value={app}>
      <Shell pages={pages} shown={shown} search={route.search}>
        {shown === 'query' ? <QueryPage route={route} /> : shown === 'explore' ? <Explore route={route} /> : <Home />}
      </Shell>
      {tokens !== undefined && <Login tokens={tokens} />}
    </App.Provider>
  );
}

function oneOf<T extends string>(text: string | undefined, all: readonly T[]): T | undefined {
  return all.find((known) => known === text);
}

/** Shows the page with a source of data. */

import { render } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Zone } from '../format/time';
import type { Source } from '../source/source';
import type { Tokens } from '../source/token';
import { Connection } from './connection';
import { App, type AppContext, type Theme } from './context';
import { Login } from './login';
import { followLinks, useRoute } from './route';
import { readSetting, writeSetting } from './settings';
import { Shell } from './shell';
import { NotLoaded, useView, viewsOf, type View } from './views';
import '../style/main.css';

/**
 * Shows the page in an element.
 *
 * @param views the views, of which the first is shown unasked
 * @param tokens ask for tokens where the source may want them
 */
export function mount(element: HTMLElement, source: Source, views: readonly View[], tokens?: Tokens): void {
  element.replaceChildren();
  render(<Page source={source} views={views} tokens={tokens} />, element);
}

function Page({ source, views, tokens }: { source: Source; views: readonly View[]; tokens: Tokens | undefined }) {
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
  const { top, asked } = viewsOf(views, route.path);
  const { view, isLoading, hasFailed } = useView(asked, route);
  useEffect(() => {
    document.title = asked.name === '' ? 'tidepool' : `${asked.title} – tidepool`;
  }, [asked]);
  return (
    <App.Provider value={app}>
      <Shell views={views} shown={top.name} search={route.search} isLoading={isLoading}>
        {hasFailed ? <NotLoaded /> : view !== undefined && <view.Component route={view.route} />}
      </Shell>
      {tokens !== undefined && Object.values(tokens).map((keeper) => <Login tokens={keeper} />)}
    </App.Provider>
  );
}

function oneOf<T extends string>(text: string | undefined, all: readonly T[]): T | undefined {
  return all.find((known) => known === text);
}

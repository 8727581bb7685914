/**
 * The views of the page. Most are loaded when they are opened, and until then the one before stays,
 * so that nothing flashes.
 */

import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Route } from './route';

type Component = ComponentType<{ route: Route }>;

/** A view, and its entry in the navigation. */
export interface View {
  name: string;
  title: string;
  /** Nothing for a view that comes with the page. */
  load?: () => Promise<Component>;
  component?: Component;
  /** Views below it, which have no entry in the navigation. */
  below?: readonly View[];
}

// The bundler makes a file of what such an import names, and the viewer's bundle has it in itself.
export const QUERY: View = { name: 'query', title: 'Query', load: async () => (await import('../pages/query/page')).QueryPage };
export const EXPLORE: View = { name: 'explore', title: 'Explore', load: async () => (await import('../pages/explore/explore')).Explore };
export const HISTORY: View = { name: 'history', title: 'History of alerts', load: async () => (await import('../pages/alerts/history/history')).History };
export const SILENCES: View = { name: 'silences', title: 'Silences', load: async () => (await import('../pages/alerts/silences/silences')).Silences };
export const RECEIVERS: View = { name: 'receivers', title: 'Receivers of alerts', load: async () => (await import('../pages/alerts/receivers/receivers')).Receivers };
export const BACKTEST: View = { name: 'backtest', title: 'Backtest', load: async () => (await import('../pages/alerts/backtest/backtest')).Backtest };

/** The view of an address, and the one among `views` that it is or stands below. */
export function viewsOf(views: readonly View[], [first, second]: readonly string[]): { top: View; asked: View } {
  const top = views.find(({ name }) => name === first) ?? views[0]!;
  return { top, asked: top.below?.find(({ name }) => name === second) ?? top };
}

/** What stands in the frame. */
export interface Shown {
  /** The view of the route, or the one before while that is loaded; nothing before the first. */
  view?: { Component: Component; route: Route } | undefined;
  isLoading: boolean;
  hasFailed: boolean;
}

/** Loads a view, unless it is there. */
export function useView(view: View, route: Route): Shown {
  const [state, setState] = useState<{ view: View; hasFailed: boolean }>();
  const before = useRef<Shown['view']>(undefined);
  useEffect(() => {
    setState(undefined);
    if (view.component !== undefined) return;
    let isCurrent = true;
    const settle = (hasFailed: boolean): void => {
      if (isCurrent) setState({ view, hasFailed });
    };
    view.load!().then(
      (component) => {
        view.component = component;
        settle(false);
      },
      () => settle(true),
    );
    return () => {
      isCurrent = false;
    };
  }, [view]);
  const Component = view.component;
  if (Component !== undefined) before.current = { Component, route };
  const hasFailed = Component === undefined && state?.view === view && state.hasFailed;
  return { view: before.current, isLoading: Component === undefined && !hasFailed, hasFailed };
}

/** In place of a view that could not be loaded, such as after the node was updated. */
export function NotLoaded() {
  return (
    <div class="notice bad" role="alert">
      <p>This view could not be loaded. The node does not answer, or it runs another version since this page was opened.</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </div>
  );
}

/** What all components may use: the source, and how times and colours are shown. */

import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Zone } from '../format/time';
import type { Connection } from './connection';

/** Which colours; `auto` is what the system prefers. */
export type Theme = 'auto' | 'light' | 'dark';

/** Shared by all components. */
export interface AppContext {
  source: Connection;
  zone: Zone;
  theme: Theme;
  /** Grows when the source came back: answers from before are asked for again. */
  epoch: number;
  setZone(zone: Zone): void;
  setTheme(theme: Theme): void;
}

export const App = createContext<AppContext | undefined>(undefined);

/** The context of the page. */
export function useApp(): AppContext {
  const app = useContext(App);
  if (app === undefined) throw new Error('a component stands outside of the page');
  return app;
}

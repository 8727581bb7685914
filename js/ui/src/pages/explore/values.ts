/**
 * Values of a label that have a text in them, by pages. The source filters and gives a window of
 * values; one that knows `offset`, and says how many there are, gives the windows behind it, too.
 */

import { useApp } from '../../app/context';
import { useLoad, type Loaded } from '../../app/load';
import { pathSegment } from '../../editor/names';
import type { ApiAnswer } from '../../source/source';

/** Values of a window. */
const WINDOW = 1000;

/** A window of the values. */
export interface Window {
  values: string[];
  /** The place of the first among all. */
  offset: number;
  /** How many there are, as far as is known. */
  total: number;
  /** Whether there are more than that. */
  isOpenEnd: boolean;
}

/** The window in which a place lies. */
export function useValues(label: string, search: string, place: number, matcher?: string): Loaded<Window> {
  const { source } = useApp();
  const offset = Math.floor(place / WINDOW) * WINDOW;
  const key = JSON.stringify([label, search, offset, matcher ?? null]);
  const load = async (signal: AbortSignal): Promise<Window> => {
    const params = new URLSearchParams({ limit: `${WINDOW}`, offset: `${offset}` });
    if (search.trim() !== '') params.set('search', search);
    if (matcher !== undefined) params.append('match[]', matcher);
    return windowOf(await source.request(`api/v1/label/${pathSegment(label)}/values`, params, signal), offset);
  };
  return useLoad(key, load, { keeps: true });
}

/** Names of labels: the window in which a place lies. */
export function useNames(search: string, place: number): Loaded<Window> {
  const { source } = useApp();
  const offset = Math.floor(place / WINDOW) * WINDOW;
  const load = async (signal: AbortSignal): Promise<Window> => {
    const params = new URLSearchParams({ limit: `${WINDOW}`, offset: `${offset}` });
    if (search.trim() !== '') params.set('search', search);
    return windowOf(await source.request('api/v1/labels', params, signal), offset);
  };
  return useLoad(JSON.stringify([search, offset]), load, { keeps: true });
}

function windowOf({ data, total, warnings }: ApiAnswer, offset: number): Window {
  const values = data as string[];
  // A source without offset gives the first window, whichever was asked for.
  if (total === undefined) return { values, offset: 0, total: values.length, isOpenEnd: warnings.length > 0 };
  return { values, offset, total, isOpenEnd: false };
}

/** The values of a page. */
export function pageOf(window: Window, place: number, size: number): string[] {
  const from = place - window.offset;
  return window.values.slice(from, from + size);
}

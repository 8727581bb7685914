/**
 * Addresses. The page stands in the hash, `#/metrics?search=cpu`; the panels of the query page
 * stand in the query, as in Prometheus: `?g0.expr=up#/query`. Paths do not matter, so that the page
 * works behind any prefix.
 */

import { useEffect, useState } from 'preact/hooks';

/** What an address shows. */
export interface Route {
  /** The parts of the hash's path, decoded: `['metrics']`. */
  path: string[];
  /** The parameters behind it. */
  params: URLSearchParams;
  /** The query of the address. */
  search: string;
}

/**
 * Reads an address. One with a panel and without a hash is of the query page: links of Prometheus.
 */
export function routeOf(search: string, hash: string): Route {
  const [path = '', params = ''] = split(hash.replace(/^#\/?/, ''), '?');
  const parts = path.split('/').filter((part) => part !== '').map(decoded);
  if (hash.replace('#', '') === '' && new URLSearchParams(search).has('g0.expr')) parts.push('query');
  return { path: parts, params: new URLSearchParams(params), search };
}

/** The hash of a page. */
export function hashOf(path: readonly string[], params?: URLSearchParams | Record<string, string>): string {
  const query = new URLSearchParams(params).toString();
  return `#/${path.map(encodeURIComponent).join('/')}${query === '' ? '' : `?${query}`}`;
}

/** The address of the query page with these panels, relative to the page. */
export function queryHref(search: URLSearchParams): string {
  return `?${search}#/query`;
}

/** The address that is shown, as it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const follow = (): void => setRoute(read());
    for (const event of EVENTS) addEventListener(event, follow);
    return () => {
      for (const event of EVENTS) removeEventListener(event, follow);
    };
  }, []);
  return route;
}

/** Shows another address without loading the page. */
export function go(href: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', href);
  else history.pushState(null, '', href);
  dispatchEvent(new Event(CHANGED));
}

/** Follows links to other panels without loading the page. Gives what ends that. */
export function followLinks(): () => void {
  const follow = (event: MouseEvent): void => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const href = link?.getAttribute('href');
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!isPlain || event.defaultPrevented || href?.startsWith('?') !== true) return;
    event.preventDefault();
    go(href);
  };
  document.addEventListener('click', follow);
  return () => document.removeEventListener('click', follow);
}

/** Changes parameters in the hash; an empty text removes one. */
export function setParams(route: Route, changes: Record<string, string>, options = { replace: true }): void {
  const params = new URLSearchParams(route.params);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') params.delete(name);
    else params.set(name, value);
  }
  go(route.search + hashOf(route.path, params), options);
}

/** Our own changes of the address fire no event of the browser. */
const CHANGED = 'tidepool:address';
const EVENTS = ['hashchange', 'popstate', CHANGED];

function read(): Route {
  return routeOf(location.search, location.hash);
}

function split(text: string, sign: string): [string, string] {
  const at = text.indexOf(sign);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

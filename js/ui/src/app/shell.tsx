/** The frame of all pages: navigation, choices, and whether the node answers. */

import type { ComponentChildren } from 'preact';
import { formatAgo } from '../format/time';
import { useNow } from './clock';
import { useApp, type Theme } from './context';
import { hashOf } from './route';
import type { View } from './views';

const THEMES: Theme[] = ['auto', 'light', 'dark'];

/**
 * What stands around a view.
 *
 * @param isLoading whether the view is not there yet: what is in its place is of another one
 */
export function Shell(props: { views: readonly View[]; shown: string; search: string; isLoading: boolean; children: ComponentChildren }) {
  const { source } = useApp();
  return (
    <>
      <a class="skip" href="#main" onClick={focusMain}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href={`${props.search}#/`}>
          tidepool{source.kind === 'directory' && <small> viewer</small>}
        </a>
        <nav aria-label="Pages">
          {props.views.map(({ name, title }) => (
            <a href={props.search + hashOf(name === '' ? [] : [name])} aria-current={props.shown === name ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <Choices />
      </header>
      {source.isLost && <Lost />}
      {props.isLoading && (
        <p class="hidden loading" role="status">
          Loading…
        </p>
      )}
      <main id="main" tabIndex={-1} inert={props.isLoading}>
        {props.children}
      </main>
    </>
  );
}

// The hash is the address of the page, so the link's own would lead away.
function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function Choices() {
  const { theme, zone, setTheme, setZone } = useApp();
  return (
    <div class="choices">
      <button type="button" class="quiet" onClick={() => setZone(zone === 'utc' ? 'local' : 'utc')} title="Times in UTC or in your zone">
        {zone === 'utc' ? 'UTC' : 'Local time'}
      </button>
      <label>
        <span class="hidden">Colours</span>
        <select class="quiet" value={theme} onChange={(event) => setTheme(event.currentTarget.value as Theme)} title="Colours">
          {THEMES.map((name) => (
            <option value={name}>{name === 'auto' ? 'Auto' : name === 'light' ? 'Light' : 'Dark'}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Lost() {
  const { source } = useApp();
  const now = useNow(1000);
  return (
    <div class="notice bad lost" role="alert">
      <span>
        The node does not answer. {source.answeredMs !== undefined && <span aria-hidden="true">Its last answer came {formatAgo(source.answeredMs, now)}. </span>}
        What is shown may be old; the page tries again every few seconds.
      </span>
      <button type="button" onClick={() => source.retry()}>
        Try now
      </button>
    </div>
  );
}

/**
 * Loading for components: asks while the component is shown, again at an interval, never in a
 * hidden tab.
 */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { isAbort, type ApiAnswer } from '../source/source';
import { useApp } from './context';

/** The state of what is loaded. */
export interface Loaded<T> {
  /** The newest answer; it stays while another one is asked for, and when that fails. */
  value?: T | undefined;
  /** Why the newest request has no answer. */
  error?: Error | undefined;
  isLoading: boolean;
  /** When the value came. */
  atMs?: number | undefined;
  reload(): void;
}

/** How something is loaded. */
export interface LoadOptions {
  /** How often it is loaded again while the tab is visible. */
  everyMs?: number | undefined;
  /** Whether the value of the key before stays until that of the new one is there. */
  keeps?: boolean;
}

interface State<T> {
  /** What was asked for last. */
  key?: string | undefined;
  /** What the value stands for. */
  valueKey?: string | undefined;
  value?: T;
  error?: Error;
  isLoading: boolean;
  atMs?: number;
}

/**
 * Loads what a key stands for. Another key ends the request and drops the value.
 *
 * @param key nothing loads nothing
 */
export function useLoad<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>, { everyMs, keeps = false }: LoadOptions = {}): Loaded<T> {
  const { epoch } = useApp();
  const [state, setState] = useState<State<T>>({ isLoading: false });
  const [round, setRound] = useState(0);
  const current = useRef(load);
  current.current = load;

  useEffect(() => {
    if (key === undefined) return;
    const controller = new AbortController();
    const { signal } = controller;
    setState((before) => {
      if (before.key === key) return { ...before, isLoading: true };
      const { error: _, ...rest } = before;
      return keeps ? { ...rest, key, isLoading: true } : { key, isLoading: true };
    });
    current.current(signal).then(
      (value) => {
        if (!signal.aborted) setState({ key, valueKey: key, value, isLoading: false, atMs: Date.now() });
      },
      (error: unknown) => {
        if (signal.aborted || isAbort(error)) return;
        const seen = error instanceof Error ? error : new Error(String(error));
        // What was kept of another key would be taken for an answer.
        setState((before) => ({ ...(before.valueKey === key ? before : { key }), error: seen, isLoading: false }));
      },
    );
    return () => controller.abort();
  }, [key, round, epoch]);

  const reload = useCallback(() => setRound((round) => round + 1), []);
  useVisibleInterval(key === undefined || state.isLoading ? undefined : everyMs, reload);
  const isCurrent = state.key === key;
  const hasValue = key !== undefined && (keeps || (isCurrent && state.valueKey === key));
  return {
    value: hasValue ? state.value : undefined,
    error: isCurrent ? state.error : undefined,
    atMs: hasValue ? state.atMs : undefined,
    isLoading: key !== undefined && (!isCurrent || state.isLoading),
    reload,
  };
}

/** Loads an endpoint; nothing for parameters loads nothing. */
export function useAnswer(path: string, params: URLSearchParams | undefined, options?: LoadOptions): Loaded<ApiAnswer> {
  const { source } = useApp();
  const key = params === undefined ? undefined : `${path}?${params}`;
  return useLoad(key, (signal) => source.request(path, params!, signal), options);
}

/**
 * Calls a function at an interval while the tab is visible, and at once when it is visible again
 * after longer.
 */
export function useVisibleInterval(everyMs: number | undefined, act: () => void): void {
  useEffect(() => {
    if (everyMs === undefined) return;
    const begunMs = Date.now();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const plan = (): void => {
      clearTimeout(timer);
      timer = document.hidden ? undefined : setTimeout(act, Math.max(0, begunMs + everyMs - Date.now()));
    };
    plan();
    document.addEventListener('visibilitychange', plan);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', plan);
    };
  }, [everyMs, act]);
}

/** The value once it has stayed the same for so long. */
export function useSettled<T>(value: T, afterMs: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(() => value), afterMs);
    return () => clearTimeout(timer);
  }, [value, afterMs]);
  return settled;
}

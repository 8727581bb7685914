/** Silences of the node, and changes of them. */

import { useState } from 'preact/hooks';
import { useApp } from '../../../app/context';
import { useLoad, type Loaded } from '../../../app/load';
import type { Silence } from '../../../source/answers';
import { ApiError, isMissing, type PlainRequest, type Source } from '../../../source/source';

const EVERY_MS = 15_000;
const PATH = 'api/v2/silences';
/** What Alertmanager leaves out if it is told so. */
const ACTIVE = new URLSearchParams({ active: 'true', pending: 'false', expired: 'false' });

/** All silences, or those that are active. */
export function useSilences({ isActiveOnly }: { isActiveOnly: boolean }): Loaded<Silence[]> {
  const { source } = useApp();
  const params = isActiveOnly ? ACTIVE : new URLSearchParams();
  return useLoad(`silences ${params}`, (signal) => loadSilences(source, params, signal), { everyMs: EVERY_MS });
}

async function loadSilences(source: Source, params: URLSearchParams, signal: AbortSignal): Promise<Silence[]> {
  if (source.alertmanager === undefined) throw new ApiError('missing', 'there are no silences here');
  const silences = await source.alertmanager(PATH, params.size === 0 ? {} : { params }, signal);
  if (!Array.isArray(silences)) throw new ApiError('internal', 'the answer is no list of silences');
  return silences as Silence[];
}

/** A silence that is to be added. */
export type NewSilence = Pick<Silence, 'matchers' | 'startsAt' | 'endsAt' | 'createdBy' | 'comment'>;

/** A change of silences, one at a time. */
export interface Change {
  isRunning: boolean;
  /** Why the last one failed. */
  error?: Error;
  add(silence: NewSilence, done: () => void): void;
  expire(id: string, done: () => void): void;
}

/** A change that was sent goes on when the view is left. */
export function useChange(): Change {
  const { source } = useApp();
  const [state, setState] = useState<{ isRunning: boolean; error?: Error }>({ isRunning: false });
  const run = (path: string, asked: PlainRequest, done: () => void): void => {
    setState({ isRunning: true });
    source.alertmanager!(path, asked, new AbortController().signal).then(
      () => {
        setState({ isRunning: false });
        done();
      },
      (error: unknown) => setState({ isRunning: false, error: error instanceof Error ? error : new Error(String(error)) }),
    );
  };
  return {
    ...state,
    add: (body, done) => run(PATH, { method: 'POST', body }, done),
    expire: (id, done) => run(`api/v2/silence/${encodeURIComponent(id)}`, { method: 'DELETE' }, done),
  };
}

/** Why a silence was not expired. An answer without a text means that there is none. */
export function expiryError(error: Error): Error {
  return isMissing(error) ? new ApiError('not_found', 'the node has no such silence any more') : error;
}

/** Loads events of alerts, a page at a time. */

import type { AlertHistory } from '../../../source/answers';
import { ApiError, type Source } from '../../../source/source';
import type { TimeRange } from '../../../widgets/range';

/** Events of a page. */
const LIMIT = 50;

/** Where a page behind the first one begins, in the range that the first one was asked for. */
export interface Place {
  token: string;
  start: string;
}

/** What is asked for. */
export interface HistoryAsked {
  /** A selector; nothing for all. */
  match: string | undefined;
  range: TimeRange;
  /** By the node's clock. */
  nowMs: number;
  /** Nothing for the newest. */
  place: Place | undefined;
}

/** A page of events. */
export interface HistoryAnswer {
  history: AlertHistory;
  warnings: string[];
  infos: string[];
  /** What it was asked for. */
  place: Place | undefined;
  /** Where the older ones begin, if there are any. */
  next: Place | undefined;
}

/** The parameters of a page. */
export function historyParams({ match, range: { rangeMs, endMs }, nowMs, place }: HistoryAsked): URLSearchParams {
  const start = place?.start ?? `${((endMs ?? nowMs) - rangeMs) / 1000}`;
  // Without an end nothing that is new is left out, whatever the clocks say.
  const end = endMs === undefined ? undefined : `${endMs / 1000}`;
  const params = new URLSearchParams({ start, ...(end === undefined ? {} : { end }), limit: `${LIMIT}` });
  if (match !== undefined) params.set('match[]', match);
  if (place !== undefined) params.set('next_token', place.token);
  return params;
}

export async function loadHistory(source: Source, asked: HistoryAsked, signal: AbortSignal): Promise<HistoryAnswer> {
  const params = historyParams(asked);
  const { data, warnings, infos } = await source.request('api/v1/alerts/history', params, signal);
  const history = data as AlertHistory;
  if (!Array.isArray(history?.events)) throw new ApiError('internal', 'the answer has no events');
  const token = history.nextToken;
  return { history, warnings, infos, place: asked.place, next: token === undefined || token === '' ? undefined : { token, start: params.get('start')! } };
}

/** A node that answers over HTTP, at addresses relative to the page. */

import { boundedText } from './body';
import { ApiError, isAbort, type ApiAnswer, type Source } from './source';
import type { TokenKeeper } from './token';

/** Endpoints that take their parameters in a form, too. Source: routes of Prometheus' HTTP API. */
const TAKES_FORMS = /^api\/v1\/(query|query_range|query_exemplars|format_query|parse_query|labels|series)$/;

/** Endpoints that take them in a form only. */
const TAKES_FORMS_ONLY = /^api\/v1\/alerts\/backtest$/;

/** Characters of parameters from which on they travel in a form: URLs are cut at some 8 KiB. */
const URL_PARAMS_MAX = 2000;

/** The node that served this page. */
export class HttpSource implements Source {
  readonly kind = 'node';
  readonly title = location.host;
  readonly #tokens: TokenKeeper;

  constructor(tokens: TokenKeeper) {
    this.#tokens = tokens;
  }

  async request(path: string, params: URLSearchParams, signal: AbortSignal): Promise<ApiAnswer> {
    const query = params.toString();
    const isForm = TAKES_FORMS_ONLY.test(path) || (query.length > URL_PARAMS_MAX && TAKES_FORMS.test(path));
    const response = isForm
      ? await this.#fetch(path, { method: 'POST', body: params, signal })
      : await this.#fetch(query === '' ? path : `${path}?${query}`, { signal });
    return answerOf(path, response, await textOf(response));
  }

  async metrics(signal: AbortSignal): Promise<string> {
    const response = await this.#fetch('metrics', { signal });
    const text = await textOf(response);
    if (!response.ok) throw refusalOf('metrics', response, text);
    return text;
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    for (;;) {
      const token = this.#tokens.token;
      const headers: HeadersInit = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const response = await fetch(path, { ...init, headers, cache: 'no-store' }).catch(unreachable);
      // For Basic the browser has asked by itself.
      const asksForToken = /\bbearer\b/i.test(response.headers.get('www-authenticate') ?? '');
      if (response.status !== 401 || !asksForToken) return response;
      if (!(await this.#tokens.ask(token))) {
        throw new ApiError('unauthorized', 'the node asks for a token: load the page again to give one');
      }
      init.signal?.throwIfAborted();
    }
  }
}

function unreachable(error: unknown): never {
  if (isAbort(error)) throw error;
  throw new ApiError('unreachable', 'the node does not answer');
}

async function textOf(response: Response): Promise<string> {
  try {
    return await boundedText(response);
  } catch (error) {
    if (error instanceof ApiError || isAbort(error)) throw error;
    // What fails after the answer began resets the connection.
    throw new ApiError('unreachable', 'the answer broke off');
  }
}

/** Reads the envelope of Prometheus' API. */
export function answerOf(path: string, response: Pick<Response, 'ok' | 'status'>, text: string): ApiAnswer {
  const envelope = parsed(text);
  if (!response.ok || envelope === undefined || envelope['status'] !== 'success') {
    throw refusalOf(path, response, text);
  }
  const { data, warnings, infos, total } = envelope;
  const answer: ApiAnswer = { data, warnings: texts(warnings), infos: texts(infos) };
  if (typeof total === 'number') answer.total = total;
  if (isDoubted(envelope) || isDoubted(data)) answer.isClockDoubted = true;
  return answer;
}

/** Our own field, which stands in answers of rules and alerts only while the clock is doubted. */
function isDoubted(part: unknown): boolean {
  return typeof part === 'object' && part !== null && (part as Record<string, unknown>)['tidepool_clock_doubted'] === true;
}

function refusalOf(path: string, response: Pick<Response, 'ok' | 'status'>, text: string): ApiError {
  const envelope = parsed(text);
  const { errorType, error } = envelope ?? {};
  if (typeof errorType === 'string' && typeof error === 'string') return new ApiError(errorType, error);
  if (response.status === 404) return new ApiError('missing', `the node has no ${path}`);
  if (response.status === 401) return new ApiError('unauthorized', 'credentials are missing or wrong');
  if (response.ok) return new ApiError('internal', `${path} is not answered as by Prometheus' API`);
  const line = text.split('\n', 1)[0]?.slice(0, 500).trim();
  if (response.status === 403) return new ApiError('forbidden', line === '' ? `${path} is forbidden` : `${line}`);
  return new ApiError('internal', line === '' ? `${path} is answered with status ${response.status}` : `${line}`);
}

function parsed(text: string): Record<string, unknown> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : [];
}

/** A node that answers over HTTP, at addresses relative to the page. */

import { boundedText } from './body';
import { ApiError, isAbort, type ApiAnswer, type PlainRequest, type Source } from './source';
import type { Purpose, Tokens } from './token';

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
  readonly #tokens: Tokens;

  constructor(tokens: Tokens) {
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

  async alertmanager(path: string, { method, params, body }: PlainRequest, signal: AbortSignal): Promise<unknown> {
    const query = params === undefined ? '' : `?${params}`;
    // A blob brings its type along.
    const sent = body === undefined ? {} : { body: new Blob([JSON.stringify(body)], { type: 'application/json' }) };
    const response = await this.#fetch(path + query, { method: method ?? 'GET', signal, ...sent }, method === undefined ? 'read' : 'admin');
    return plainOf(path, response, await textOf(response));
  }

  async #fetch(path: string, init: RequestInit, purpose: Purpose = 'read'): Promise<Response> {
    for (;;) {
      const own = this.#tokens[purpose].token;
      // The same token may stand in several of the node's files.
      const token = own ?? this.#tokens.read.token;
      const headers: HeadersInit = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const response = await fetch(path, { ...init, headers, cache: 'no-store' }).catch(unreachable);
      // For Basic the browser has asked by itself.
      const asksForToken = /\bbearer\b/i.test(response.headers.get('www-authenticate') ?? '');
      if (response.status !== 401 || !asksForToken) return response;
      if (!(await this.#tokens[purpose].ask(own))) {
        throw new ApiError('unauthorized', purpose === 'read' ? 'the node asks for a token: load the page again to give one' : 'the node asks for a token of its administrators');
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

/** Reads an answer without an envelope; nothing if it has no body. */
export function plainOf(path: string, response: Pick<Response, 'ok' | 'status'>, text: string): unknown {
  const value = jsonOf(text);
  if (response.ok && (value !== undefined || text === '')) return value;
  // Alertmanager's own refusals are a text, those of its validator have a code beside it.
  const message = typeof value === 'string' ? value : (value as { message?: unknown } | null | undefined)?.message;
  if (response.ok || typeof message !== 'string') throw refusalOf(path, response, text);
  throw new ApiError(PLAIN_TYPES[response.status] ?? 'internal', message);
}

/** Types of refusals that are a text, by their status: what `errorType` says in an envelope. */
const PLAIN_TYPES: Record<number, string> = { 400: 'bad_data', 401: 'unauthorized', 403: 'forbidden', 404: 'not_found', 422: 'bad_data' };

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
  return text.startsWith('{') ? (jsonOf(text) as Record<string, unknown> | undefined) : undefined;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : [];
}

/**
 * Where a page's data come from. All pages are written against {@link Source}: a node that answers
 * over HTTP, or a data directory that a Worker has open.
 */

/** What an endpoint of Prometheus' HTTP API answers. */
export interface ApiAnswer {
  /** The field `data`, in the shape of the endpoint. */
  data: unknown;
  /** What was left out or is doubtful. */
  warnings: string[];
  /** Notes that may be of no importance. */
  infos: string[];
  /**
   * Entries of the whole list that `data` is a part of. Only from a source that pages the list:
   * one that knows the parameters `search`, `limit` and `offset`.
   */
  total?: number;
  /** Whether the node doubts its clock, so that times in the answer may be wrong. */
  isClockDoubted?: boolean;
}

/** Data in the shapes of Prometheus' HTTP API. */
export interface Source {
  /** A running node, the files of one, or an answer that was saved. */
  readonly kind: 'node' | 'directory' | 'report';
  /** Its name for people: an address, or what was picked. */
  readonly title: string;
  /**
   * The end of the data in milliseconds, if it is not now: instant queries and ranges without an
   * end are asked for at this time.
   */
  readonly endMs?: number;
  /**
   * Answers one request.
   *
   * @param path such as `api/v1/query_range`, without a leading slash
   * @throws ApiError if there is no answer, with its reason; an `AbortError` if the signal ended it
   */
  request(path: string, params: URLSearchParams, signal: AbortSignal): Promise<ApiAnswer>;
  /** The text of `/metrics`; only a node has it. */
  metrics?(signal: AbortSignal): Promise<string>;
  /**
   * Answers one request of Alertmanager's API, whose JSON has no envelope; only a node has it.
   * Nothing stands for an answer without a body.
   *
   * @param path such as `api/v2/silences`, without a leading slash
   * @throws ApiError, `AbortError` as {@link request}
   */
  alertmanager?(path: string, asked: PlainRequest, signal: AbortSignal): Promise<unknown>;
}

/** What is asked of an API whose answers have no envelope: to read, unless a method is named. */
export interface PlainRequest {
  method?: 'POST' | 'DELETE';
  params?: URLSearchParams;
  body?: unknown;
}

/** Reasons beside those of Prometheus' API (`bad_data`, `execution`, `timeout`, `unavailable`, …). */
export type ErrorType = 'unreachable' | 'unauthorized' | 'missing' | 'too_large' | (string & {});

/** Why a request has no answer. */
export class ApiError extends Error {
  /**
   * @param errorType the field of the same name in the answer; `unreachable` if nothing answered,
   *   `missing` if the source has no such endpoint
   * @param message for people
   */
  constructor(
    readonly errorType: ErrorType,
    message: string,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** Whether an error is the end of a request that its caller ended. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** Whether the source lacks what was asked for, so that a page does without it. */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.errorType === 'missing';
}

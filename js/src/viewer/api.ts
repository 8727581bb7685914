/** Prometheus' HTTP API over picked files, as far as they have what it asks for. */

import {
  InvalidError,
  LimitExceededError,
  QueryExecutionError,
  QueryParseError,
} from '../errors.js';
import * as lookups from './lookups.js';
import { Refusal } from './parameters.js';
import * as queries from './queries.js';
import type { ViewerAnswer } from './protocol.js';
import type { Viewer } from './viewer.js';

/** Why a request has no answer: the fields `errorType` and `error` of the API, or `missing`. */
export interface ApiFailure {
  readonly errorType: string;
  readonly error: string;
}

/** Answers one request. `path` is such as `api/v1/query`. */
export function answer(viewer: Viewer, path: string, params: URLSearchParams, endMs: number, signal: AbortSignal): Promise<ViewerAnswer> {
  return viewer.reading(async (engine) => {
    signal.throwIfAborted();
    const name = path.replace(/^api\/v1\//, '');
    const label = /^label\/([^/]+)\/values$/.exec(name)?.[1];
    if (label !== undefined) return lookups.labelValues(engine, labelOf(label), params);
    switch (name) {
      case 'query':
        return queries.instant(engine, params, endMs, signal);
      case 'query_range':
        return queries.range(engine, params, signal);
      case 'parse_query':
        return queries.parsed(engine, params);
      case 'format_query':
        return queries.formatted(engine, params);
      case 'labels':
        return lookups.labelNames(engine, params);
      case 'series':
        return lookups.series(engine, params, signal);
      case 'metadata':
        return lookups.metadata(engine, params);
      case 'status/tsdb':
        return lookups.headStatus(engine, params, signal);
      case 'status/tsdb/blocks':
        return { data: JSON.stringify({ blocks: viewer.blocks }) };
      default:
        throw new Refusal('missing', `files have no ${path}`);
    }
  });
}

/** The failure that an exception stands for. */
export function failureOf(error: unknown): ApiFailure {
  if (error instanceof Refusal) return { errorType: error.errorType, error: error.message };
  if (error instanceof QueryParseError) return { errorType: 'bad_data', error: `invalid parameter "query": ${error.message}` };
  if (error instanceof InvalidError) return { errorType: 'bad_data', error: error.message };
  if (error instanceof QueryExecutionError || error instanceof LimitExceededError) return { errorType: 'execution', error: error.message };
  return { errorType: 'internal', error: error instanceof Error ? error.message : String(error) };
}

/** A label in a path; names that a path cannot hold are written `U__…`, as in Prometheus. */
function labelOf(part: string): string {
  const name = decodeURIComponent(part);
  if (!name.startsWith('U__')) return name;
  return name.slice(3).replace(/__|_([0-9a-fA-F]+)_/g, (all, hex: string | undefined) => {
    return hex === undefined ? all[0]! : String.fromCodePoint(parseInt(hex, 16));
  });
}

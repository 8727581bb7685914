/**
 * Names of metrics and labels, and values of labels, asked of the source as they are typed. The
 * source filters: a node can have more names than a page should hold.
 */

import { ranked } from '../promql/rank';
import { labelName, quoted } from '../promql/selector';
import { isAbort, type Source } from '../source/source';

/** Names that one request asks for. */
const NAMES_MAX = 100;
/** Answers that are kept. */
const CACHE_MAX = 200;
/** Names of this time before the end of the data come first; others only if there are none. */
const RECENT_MS = 86_400_000;

interface Known {
  names: string[];
  isComplete: boolean;
}

/** Looks names up. */
export class Names {
  readonly #source: Source;
  readonly #cache = new Map<string, Known>();

  constructor(source: Source) {
    this.#source = source;
  }

  /** Names of metrics that fit what was typed. */
  metrics(typed: string, signal: AbortSignal): Promise<string[]> {
    return this.values('__name__', undefined, [], typed, signal);
  }

  /** Names of labels of the series that a metric and matchers select. */
  async labels(metric: string | undefined, matchers: readonly string[], signal: AbortSignal): Promise<string[]> {
    const inside = matchersOf(metric, matchers);
    const { names } = await this.#known(`labels ${inside}`, 'api/v1/labels', inside, signal);
    return names.filter((name) => name !== '__name__');
  }

  /** Values of a label that fit what was typed, in the series that a metric and matchers select. */
  async values(label: string, metric: string | undefined, matchers: readonly string[], typed: string, signal: AbortSignal): Promise<string[]> {
    const inside = matchersOf(metric, matchers);
    const path = `api/v1/label/${pathSegment(label)}/values`;
    for (let length = typed.length; length >= 0; length -= 1) {
      const known = this.#cache.get(`${label} ${inside} ${typed.slice(0, length)}`);
      if (known?.isComplete) return ranked(known.names, (name) => name, typed, NAMES_MAX);
    }
    const key = `${label} ${inside} ${typed}`;
    const escaped = typed.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
    const patterns = typed === '' ? [] : [`(?is:${escaped}.*)`, `(?is:.*${escaped}.*)`];
    const asked = (pattern?: string): Promise<Known> => {
      const wanted = pattern === undefined ? [] : [`${labelName(label)}=~${quoted(pattern)}`];
      return this.#known(`${key} ${pattern}`, path, [inside, ...wanted].filter((text) => text !== '').join(','), signal);
    };
    const found = await Promise.all(patterns.length === 0 ? [asked()] : patterns.map(asked));
    // The last pattern finds what the others find.
    const names = [...new Set(found.flatMap((known) => known.names))];
    this.#keep(key, { names, isComplete: found.at(-1)!.isComplete });
    return ranked(names, (name) => name, typed, NAMES_MAX);
  }

  async #known(key: string, path: string, matchers: string, signal: AbortSignal): Promise<Known> {
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    const params = new URLSearchParams({ limit: `${NAMES_MAX}` });
    if (matchers !== '') params.set('match[]', `{${matchers}}`);
    const recent = new URLSearchParams(params);
    const endMs = this.#source.endMs ?? Date.now();
    recent.set('start', `${Math.floor((endMs - RECENT_MS) / 1000)}`);
    try {
      let names = await this.#request(path, recent, signal);
      if (names.length === 0) names = await this.#request(path, params, signal);
      const known = { names, isComplete: names.length < NAMES_MAX };
      this.#keep(key, known);
      return known;
    } catch (error) {
      if (isAbort(error)) throw error;
      // Completion is a help: without an answer there is none.
      return { names: [], isComplete: false };
    }
  }

  async #request(path: string, params: URLSearchParams, signal: AbortSignal): Promise<string[]> {
    const { data } = await this.#source.request(path, params, signal);
    return Array.isArray(data) ? (data as string[]) : [];
  }

  #keep(key: string, known: Known): void {
    this.#cache.set(key, known);
    if (this.#cache.size > CACHE_MAX) this.#cache.delete(this.#cache.keys().next().value!);
  }
}

function matchersOf(metric: string | undefined, matchers: readonly string[]): string {
  return [...(metric === undefined ? [] : [`__name__=${quoted(metric)}`]), ...matchers].join(',');
}

/**
 * A label's name in a path. Names with other characters than those of identifiers are written as
 * `U__` and code points. Source: values encoding of Prometheus' `model.EscapeName`.
 */
export function pathSegment(name: string): string {
  if (/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name)) return name;
  let text = 'U__';
  for (const c of name) {
    if (c === '_') text += '__';
    else if (/[a-zA-Z0-9]/.test(c) && !(text === 'U__' && /\d/.test(c))) text += c;
    else text += `_${c.codePointAt(0)!.toString(16)}_`;
  }
  return text;
}

/** What can stand at a place of an expression. */

import { AGGREGATIONS, FUNCTIONS, signatureText } from '../promql/functions';
import { placeOf, type Place } from '../promql/place';
import { fitOf, ranked } from '../promql/rank';
import { labelName, quoted, selectorOf } from '../promql/selector';
import type { Source } from '../source/source';
import { loadMetadata, Metadata } from './metadata';
import { Names } from './names';

/** A completion. */
export interface Completion {
  kind: 'metric' | 'function' | 'aggregation' | 'keyword' | 'label' | 'value' | 'duration';
  /** What is shown. */
  name: string;
  /** What replaces the text from `from` to `to`. */
  text: string;
  /** Where the cursor stands then, from the end of `text` on. */
  back: number;
  /** Type or signature. */
  detail?: string;
  help?: string;
}

/** Completions and what they replace. */
export interface Offer {
  place: Place;
  completions: Completion[];
}

const COUNT_MAX = 40;
const DURATIONS = ['1m', '2m', '5m', '10m', '15m', '30m', '1h', '6h', '12h', '1d', '7d', '30d'];
const KEYWORDS = ['by', 'without', 'on', 'ignoring', 'group_left', 'group_right', 'offset', 'bool', 'and', 'or', 'unless'];

/** Looks for completions. */
export class Completer {
  readonly #source: Source;
  readonly #names: Names;
  #metadata: Promise<Metadata> | undefined;

  constructor(source: Source) {
    this.#source = source;
    this.#names = new Names(source);
  }

  /** What fits at the cursor; nothing where nothing can be completed. */
  async at(text: string, cursor: number, signal: AbortSignal): Promise<Offer | undefined> {
    const place = placeOf(text, cursor);
    if (place === undefined) return undefined;
    const completions = await this.#of(place, text, signal);
    // What is there already is no help.
    const isDone = completions.length === 1 && completions[0]!.name === place.typed;
    return completions.length === 0 || isDone ? undefined : { place, completions };
  }

  async #of(place: Place, text: string, signal: AbortSignal): Promise<Completion[]> {
    switch (place.kind) {
      case 'expression':
        return this.#expression(place.typed, signal);
      case 'duration':
        return DURATIONS.filter((name) => name.startsWith(place.typed) && name !== place.typed).map((name) => ({ kind: 'duration', name, text: name, back: 0 }));
      case 'label-name': {
        const names = await this.#names.labels(place.metric, place.matchers, signal);
        // What is behind the name is kept.
        const hasOperator = /^\s*[=!]/.test(text.slice(place.to));
        const written = (name: string): [string, number] => (hasOperator ? [labelName(name), 0] : [`${labelName(name)}=""`, 1]);
        return this.#labels(names, place.typed, written);
      }
      case 'grouping': {
        const [first] = place.metrics;
        const names = await this.#names.labels(first, [], signal);
        return this.#labels(names, place.typed, (name) => [labelName(name), 0]);
      }
      case 'label-value': {
        const values = await this.#names.values(place.label, place.metric, place.matchers, place.typed, signal);
        const isClosed = /^["'`]/.test(text.slice(place.to));
        return values.map((value) => ({ kind: 'value', name: value, text: quoted(value).slice(1, -1) + (isClosed ? '' : '"'), back: isClosed ? -1 : 0 }));
      }
    }
  }

  #labels(names: readonly string[], typed: string, written: (name: string) => [string, number]): Completion[] {
    return ranked(names, (name) => name, typed, COUNT_MAX).map((name) => {
      const [text, back] = written(name);
      return { kind: 'label', name, text, back };
    });
  }

  async #expression(typed: string, signal: AbortSignal): Promise<Completion[]> {
    const [metrics, metadata] = await Promise.all([this.#names.metrics(typed, signal), this.#said(signal)]);
    const known = metrics.map((name): Completion => {
      const said = metadata.of(name);
      const plain = selectorOf(name);
      return { kind: 'metric', name, text: plain, back: 0, ...(said === undefined ? {} : { detail: said.type, help: said.help }) };
    });
    const calls = (kind: 'function' | 'aggregation', all: typeof FUNCTIONS): Completion[] =>
      [...all].map(([name, signature]) => ({ kind, name, text: `${name}()`, back: signature.args === '' ? 0 : 1, detail: signatureText(name, signature), help: signature.help }));
    const words = KEYWORDS.map((name): Completion => ({ kind: 'keyword', name, text: name, back: 0 }));
    // With nothing typed, what the node has is more telling than the language.
    if (typed === '') return known.slice(0, COUNT_MAX);
    const isNear = (completion: Completion): boolean => (fitOf(completion.name, typed) ?? 9) <= 1;
    const language = [...calls('aggregation', AGGREGATIONS), ...calls('function', FUNCTIONS), ...words];
    return ranked([...language.filter(isNear), ...known, ...language.filter((it) => !isNear(it))], (it) => it.name, typed, COUNT_MAX);
  }

  #said(signal: AbortSignal): Promise<Metadata> {
    // The end of one completion does not end the request that all of them wait for.
    this.#metadata ??= loadMetadata(this.#source, new AbortController().signal).catch(() => {
      this.#metadata = undefined;
      return new Metadata({});
    });
    signal.throwIfAborted();
    return this.#metadata;
  }
}

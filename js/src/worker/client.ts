/** The page's side: the store's calls as promises. */

import * as args from '../arguments.js';
import { EngineStoppedError, NotOpenError } from '../errors.js';
import type * as model from '../model.js';
import { fromPlainError, type Answer, type Calls, type SeriesBatch } from './protocol.js';
import type { WorkerOpenOptions } from './protocol.js';

/** A worker, or a port to one. */
export interface Channel {
  postMessage(message: unknown): void;
  addEventListener(type: string, listener: (event: Event) => void): void;
}

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A store in a worker: the calls of a `Store`, each giving a promise. Calls are done in the order
 * in which they were made, so that a read sees every write that was begun before it. Arguments are
 * copied; what was passed can be used again at once.
 */
export class WorkerStore {
  readonly #channel: Channel;
  readonly #end: () => void;
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;
  #ended: Error | undefined;

  /** Use `openInWorker`. */
  protected constructor(channel: Channel, end: () => void) {
    this.#channel = channel;
    this.#end = end;
    channel.addEventListener('message', (event) => {
      const { data } = event as MessageEvent<Answer>;
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if ('error' in data) waiting?.reject(fromPlainError(data.error));
      else waiting?.resolve(data.value as never);
    });
    channel.addEventListener('error', (event) => {
      const { message = 'it could not be started' } = event as ErrorEvent;
      this.#fail(new EngineStoppedError(`the worker failed: ${message}`, event));
    });
  }

  /** Opens a store at the other end of a channel; `end` ends whatever is there. */
  static open(channel: Channel, end: () => void, options: WorkerOpenOptions): Promise<WorkerStore> {
    return new WorkerStore(channel, end).begin(options);
  }

  /** Opens it. */
  protected async begin(options: WorkerOpenOptions): Promise<this> {
    try {
      await this.call('open', options);
    } catch (error) {
      this.#end();
      throw error;
    }
    return this;
  }

  /** As `Store.seriesRef`. For many, {@link seriesRefs} takes one message. */
  async seriesRef(labels: model.Labels): Promise<model.SeriesRef> {
    const [ref] = await this.seriesRefs([labels]);
    return ref!;
  }

  /** The numbers of many series. */
  seriesRefs(labels: readonly model.Labels[]): Promise<model.SeriesRef[]> {
    return this.call('seriesRefs', labels);
  }

  /** As `Store.append`. */
  async append(rows: model.Columns, nowMs = Date.now()): Promise<model.WriteOutcome> {
    const { series, timestampsMs, values } = args.typedColumns(rows);
    const alone = { series: own(series), timestampsMs: own(timestampsMs), values: own(values) };
    return this.call('append', alone, nowMs);
  }

  /** As `Store.appendRemoteWrite`. */
  appendRemoteWrite(
    version: 'v1' | 'v2',
    body: Uint8Array,
    nowMs = Date.now(),
  ): Promise<model.WriteOutcome> {
    return this.call('appendRemoteWrite', version, own(body), nowMs);
  }

  /**
   * As `Store.select`: series with their samples, in label order, as they are when the loop
   * begins. Series that come together share the memory of their columns.
   */
  select(selection: model.Selection = {}): AsyncIterableIterator<model.Series> {
    return this.#iterate(selection, false, (batch) => fromBatch(batch as SeriesBatch));
  }

  /** As `Store.selectChunks`. */
  selectChunks(selection: model.Selection = {}): AsyncIterableIterator<model.SeriesChunks> {
    return this.#iterate(selection, true, (batch) => batch as model.SeriesChunks[]);
  }

  /** As `Store.labelNames`. */
  labelNames(lookup: model.Lookup = {}): Promise<string[]> {
    return this.call('labelNames', lookup);
  }

  /** As `Store.labelValues`. */
  labelValues(name: string, lookup: model.Lookup = {}): Promise<string[]> {
    return this.call('labelValues', name, lookup);
  }

  /** As `Store.delete`. */
  delete(
    selection: model.Selection & { matchers: readonly model.Matcher[] },
  ): Promise<model.Deletion> {
    return this.call('delete', selection);
  }

  /** As `Store.compact`; other calls are served between its slices. */
  compact(nowMs = Date.now()): Promise<model.CompactedBlock[]> {
    return this.call('compact', nowMs);
  }

  /** As `Store.stats`. */
  stats(): Promise<model.Figures> {
    return this.call('stats');
  }

  /**
   * The data directory file by file, such as for a download: `tidepool`, Prometheus and `NodeFiles`
   * open it. Nothing for a store in memory.
   */
  async *files(): AsyncGenerator<{ path: string; bytes: Uint8Array }, void> {
    for (let number = 0; ; number += 1) {
      const file = await this.call('file', number);
      if (file === undefined) return;
      yield file;
    }
  }

  /** Ends the store, and the worker if it is its own. */
  async close(): Promise<void> {
    if (this.#ended !== undefined) return;
    try {
      await this.call('close');
    } finally {
      this.#fail(new NotOpenError());
    }
  }

  #fail(error: Error): void {
    this.#ended ??= error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    this.#end();
  }

  async *#iterate<T>(
    selection: model.Selection,
    isRaw: boolean,
    open: (batch: ReturnType<Calls['next']>) => T[],
  ): AsyncGenerator<T, void> {
    const cursor = await this.call('select', selection, isRaw);
    let isAtEnd = false;
    try {
      let next = this.call('next', cursor);
      for (;;) {
        const all = open(await next);
        isAtEnd = all.length === 0;
        if (isAtEnd) return;
        // The worker goes on while the page looks at what it has.
        next = this.call('next', cursor);
        next.catch(() => {});
        yield* all;
      }
    } finally {
      if (!isAtEnd && this.#ended === undefined) await this.call('closeCursor', cursor);
    }
  }

  /** Makes a call at the other end. */
  protected call<Name extends keyof Calls>(
    call: Name,
    ...values: Parameters<Calls[Name]>
  ): Promise<ReturnType<Calls[Name]>> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const id = this.#calls;
    this.#calls += 1;
    return new Promise((resolve, reject) => {
      this.#channel.postMessage({ id, call, args: values });
      this.#waiting.set(id, { resolve, reject });
    });
  }
}

/** A view's bytes without what is around them, which would cross as well. */
function own<View extends { byteLength: number; buffer: ArrayBufferLike; slice(): View }>(
  view: View,
): View {
  return view.byteLength === view.buffer.byteLength ? view : view.slice();
}

/** Series that have crossed. */
export function fromBatch(batch: SeriesBatch): model.Series[] {
  // A cursor that was left returns an empty list.
  if (batch instanceof Array) return [];
  let at = 0;
  return batch.labels.map((labels, i) => {
    const [from, end] = [at, at + batch.lengths[i]!];
    at = end;
    return {
      labels,
      timestampsMs: batch.timestampsMs.subarray(from, end),
      values: batch.values.subarray(from, end),
      histograms: batch.histograms.get(i) ?? [],
    };
  });
}

/** The worker's side: one store, whose calls come as messages and are done one after the other. */

import { InvalidError, NotOpenError } from '../errors.js';
import { MemoryStorage } from '../imports/memory.js';
import type { Storage } from '../imports/storage.js';
import type { Series, SeriesChunks } from '../model.js';
import { OpfsFiles } from '../opfs/index.js';
import type { OpenOptions, Store } from '../store.js';
import {
  toPlainError,
  type Answer,
  type Calls,
  type QueryCalls,
  type Request,
  type SeriesBatch,
  type StoreCalls,
} from './protocol.js';

/** A port, or a worker's own end of the one to its page. */
export interface Port {
  postMessage(message: Answer, transfer: Transferable[]): void;
  addEventListener(type: 'message', listener: (event: MessageEvent<Request>) => void): void;
}

/** About how many samples, and bytes of chunks, cross at a time. */
const BATCH_SAMPLES = 64 * 1024;
const BATCH_CHUNK_BYTES = 512 * 1024;

/** Answers calls, which may take their time. */
export type Handlers<Names> = {
  [Name in keyof Names]: Names[Name] extends (...args: infer Args) => infer Given
    ? (...args: Args) => Given | Promise<Given>
    : never;
};

/**
 * Serves a store on a port. `open` opens it; `queries` makes what answers the calls of PromQL on
 * the store that is open, if it has it.
 */
export function serve<Opened extends Store>(
  port: Port,
  open: (options: OpenOptions) => Promise<Opened>,
  queries: (opened: () => Opened) => Partial<Handlers<QueryCalls>> = () => ({}),
): void {
  const server = new Server(open, queries);
  let turn = Promise.resolve();
  port.addEventListener('message', ({ data: { id, call, args } }) => {
    const answer = async () => {
      try {
        const transfer: Transferable[] = [];
        const value = await server.call(call, args, transfer);
        port.postMessage({ id, value }, transfer);
      } catch (error) {
        port.postMessage({ id, error: toPlainError(error) }, []);
      }
    };
    // Others may come in between the slices of a compaction.
    const begun = turn.then(() => (call === 'compact' ? void answer() : answer()));
    turn = begun;
  });
}

class Server<Opened extends Store> {
  readonly #open: (options: OpenOptions) => Promise<Opened>;
  readonly #queries: Partial<Handlers<QueryCalls>>;
  #store: Opened | undefined;
  #storage: Storage | undefined;
  readonly #cursors = new Map<number, { isRaw: boolean; series: Iterator<Series | SeriesChunks> }>();
  #cursorsOpened = 0;
  #files: { next: number; files: Generator<{ path: string; bytes: Uint8Array }> } | undefined;

  constructor(
    open: (options: OpenOptions) => Promise<Opened>,
    queries: (opened: () => Opened) => Partial<Handlers<QueryCalls>>,
  ) {
    this.#open = open;
    this.#queries = queries(() => this.#opened);
  }

  /** Makes a call; what changes hands with its answer is added to `transfer`. */
  async call(name: keyof Calls, args: readonly unknown[], transfer: Transferable[]) {
    // Between calls there is time to open files; within one there is none.
    await this.#storage?.ready?.();
    const handlers: Partial<Handlers<Calls>> = { ...this.#handlers, ...this.#queries };
    const handler = handlers[name] as (...all: readonly unknown[]) => unknown;
    const value = await handler(...args);
    if (name === 'next') addBuffers(value as ReturnType<Calls['next']>, transfer);
    if (name === 'nextOfQuery') {
      addBuffers((value as ReturnType<Calls['nextOfQuery']>).batch, transfer);
    }
    if (name === 'file' && value !== undefined) {
      transfer.push((value as { bytes: Uint8Array<ArrayBuffer> }).bytes.buffer);
    }
    return value;
  }

  get #opened(): Opened {
    if (this.#store === undefined) throw new NotOpenError();
    return this.#store;
  }

  readonly #handlers: Handlers<StoreCalls> = {
    open: async ({ name, storage, sync, ...options }) => {
      if (this.#store !== undefined) throw new InvalidError('this worker has a store open');
      const files = () => new OpfsFiles(name, sync === undefined ? {} : { sync });
      this.#storage = storage === 'memory' ? new MemoryStorage() : files();
      try {
        this.#store = await this.#open({ ...options, storage: this.#storage });
      } catch (error) {
        this.#storage = undefined;
        throw error;
      }
    },
    seriesRefs: (labels) => labels.map((one) => this.#opened.seriesRef(one)),
    append: (rows, nowMs) => this.#opened.append(rows, nowMs),
    appendRemoteWrite: (...args) => this.#opened.appendRemoteWrite(...args),
    select: (selection, isRaw) => {
      const store = this.#opened;
      const series = isRaw ? store.selectChunks(selection) : store.select(selection);
      this.#cursorsOpened += 1;
      this.#cursors.set(this.#cursorsOpened, { isRaw, series });
      return this.#cursorsOpened;
    },
    next: (number) => {
      const cursor = this.#cursors.get(number);
      if (cursor === undefined) return [];
      const { isRaw, series } = cursor;
      const all = isRaw
        ? take(series as Iterator<SeriesChunks>, chunkBytes, BATCH_CHUNK_BYTES)
        : take(series as Iterator<Series>, samplesOf, BATCH_SAMPLES);
      if (all.length === 0) this.#cursors.delete(number);
      return isRaw ? (all as SeriesChunks[]) : toBatch(all as Series[]);
    },
    closeCursor: (number) => {
      this.#cursors.get(number)?.series.return?.();
      this.#cursors.delete(number);
    },
    labelNames: (lookup) => this.#opened.labelNames(lookup),
    labelValues: (name, lookup) => this.#opened.labelValues(name, lookup),
    delete: (selection) => this.#opened.delete(selection),
    compact: (nowMs) => this.#opened.compact(nowMs),
    stats: () => this.#opened.stats(),
    file: (number) => {
      if (!(this.#storage instanceof OpfsFiles)) return undefined;
      if (this.#files?.next !== number) this.#files = { next: 0, files: this.#storage.files() };
      const found = this.#files.files.next();
      this.#files.next = number + 1;
      if (found.done) this.#files = undefined;
      return found.done ? undefined : found.value;
    },
    close: async () => {
      await this.#store?.close();
      this.#store = undefined;
      this.#storage = undefined;
      this.#cursors.clear();
    },
  };
}

/** As many series as have about so much together; none at the end. */
function take<T>(series: Iterator<T>, sizeOf: (one: T) => number, sizeMax: number): T[] {
  const all: T[] = [];
  for (let size = 0; size < sizeMax; ) {
    const { done, value } = series.next();
    if (done) break;
    all.push(value);
    size += sizeOf(value);
  }
  return all;
}

/** Labels count, too: a series is never free. */
function samplesOf({ values, histograms }: Series): number {
  return 16 + values.length + 16 * histograms.length;
}

function chunkBytes({ chunks }: SeriesChunks): number {
  return chunks.reduce((sum, { data }) => sum + data.length, 256);
}

/** Series as they cross. */
export function toBatch(series: readonly Series[]): SeriesBatch {
  const lengths = Uint32Array.from(series, ({ values }) => values.length);
  const samples = lengths.reduce((sum, length) => sum + length, 0);
  const timestampsMs = new Float64Array(samples);
  const values = new Float64Array(samples);
  const histograms = new Map<number, Series['histograms']>();
  let at = 0;
  for (const [i, one] of series.entries()) {
    timestampsMs.set(one.timestampsMs, at);
    values.set(one.values, at);
    at += one.values.length;
    if (one.histograms.length > 0) histograms.set(i, one.histograms);
  }
  return { labels: series.map(({ labels }) => labels), lengths, timestampsMs, values, histograms };
}

function addBuffers(answer: ReturnType<Calls['next']>, transfer: Transferable[]): void {
  // Chunks are small, and many: copying them is cheaper.
  if (answer instanceof Array) return;
  for (const { buffer } of [answer.lengths, answer.timestampsMs, answer.values]) {
    transfer.push(buffer as ArrayBuffer);
  }
}

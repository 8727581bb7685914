/** Reading: cursors of the component as iterators. */

import { toSelection } from './arguments.js';
import { sampleCount, XorDecoder } from './chunk.js';
import type { Instance, StoreExports } from './component.js';
import { decodeHistograms } from './histogram.js';
import { dispose } from './imports/dispose.js';
import type { Chunk, Histogram, Labels, Selection, Series, SeriesChunks } from './model.js';

/** About how many bytes of labels and chunks are taken out of the engine at a time. */
const BATCH_BYTES = 256 * 1024;

/**
 * Series with raw chunks. The cursor opens at once, so that the answer is of this moment; it is
 * dropped when the iterator ends or is left early.
 */
export function selectChunks(instance: Instance, selection: Selection): ChunkIterator {
  const wanted = toSelection(selection);
  return new ChunkIterator(
    instance,
    instance.call((store) => store.select(wanted)),
  );
}

/** Series with their samples inside the range. */
export function selectSeries(instance: Instance, selection: Selection): IterableIterator<Series> {
  return new SeriesIterator(selectChunks(instance, selection), selection);
}

/** The samples of a series' chunks, of those between two times, both included. */
export function decodeSeries(series: SeriesChunks, startMs?: number, endMs?: number): Series {
  const { labels, chunks } = series;
  const floats = chunks.filter(({ encoding }) => encoding === 'xor');
  const decoder = new XorDecoder(floats.reduce((sum, { data }) => sum + sampleCount(data), 0));
  for (const { data } of floats) decoder.decode(data);
  const histograms: Histogram[] = [];
  for (const { encoding, data } of floats.length === chunks.length ? [] : chunks) {
    if (encoding === 'xor') continue;
    const all = decodeHistograms(data, encoding === 'histogram' ? 'integer' : 'float');
    const isIn = (timeMs: number) => timeMs >= (startMs ?? -Infinity) && timeMs <= (endMs ?? Infinity);
    histograms.push(...all.filter(({ timestampMs }) => isIn(timestampMs)));
  }
  return { labels, ...decoder.samples(startMs, endMs), histograms };
}

/** Not a generator: leaving one that was never started would not run its end. */
class SeriesIterator implements IterableIterator<Series> {
  readonly #chunks: ChunkIterator;
  readonly #range: Selection;

  constructor(chunks: ChunkIterator, range: Selection) {
    this.#chunks = chunks;
    this.#range = range;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<Series, undefined> {
    const { startMs, endMs } = this.#range;
    for (;;) {
      const series = this.#chunks.next();
      if (series.done) return series;
      const value = this.#decode(series.value, startMs, endMs);
      if (value.timestampsMs.length + value.histograms.length > 0) return { done: false, value };
    }
  }

  return(): IteratorResult<Series, undefined> {
    this.#chunks.return();
    return { done: true, value: undefined };
  }

  #decode(...series: Parameters<typeof decodeSeries>): Series {
    try {
      return decodeSeries(...series);
    } catch (error) {
      this.#chunks.return();
      throw error;
    }
  }
}

class ChunkIterator implements IterableIterator<SeriesChunks> {
  #batch: SeriesChunks[] = [];
  #next = 0;
  readonly #instance: Instance;
  #cursor: StoreExports.Cursor | undefined;

  constructor(instance: Instance, cursor: StoreExports.Cursor) {
    this.#instance = instance;
    this.#cursor = cursor;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<SeriesChunks, undefined> {
    if (this.#next === this.#batch.length && this.#cursor !== undefined) this.#fetch(this.#cursor);
    const value = this.#batch[this.#next];
    if (value === undefined) return { done: true, value };
    this.#next += 1;
    return { done: false, value };
  }

  return(): IteratorResult<SeriesChunks, undefined> {
    this.#batch = [];
    this.#next = 0;
    const cursor = this.#cursor as (StoreExports.Cursor & Disposable) | undefined;
    this.#cursor = undefined;
    // The cursors of an instance end with it.
    if (cursor !== undefined && !this.#instance.hasEnded) {
      this.#instance.call(() => cursor[dispose]());
    }
    return { done: true, value: undefined };
  }

  #fetch(cursor: StoreExports.Cursor): void {
    try {
      this.#batch = this.#instance.call(() => cursor.next(BATCH_BYTES)).map(fromValue);
    } catch (error) {
      this.return();
      throw error;
    }
    this.#next = 0;
    if (this.#batch.length === 0) this.return();
  }
}

function fromValue({ labels, chunks }: StoreExports.SeriesChunks): SeriesChunks {
  return { labels: fromLabels(labels), chunks: chunks satisfies readonly Chunk[] };
}

/** Own properties whatever their names: a label may be called `__proto__`. */
export function fromLabels(labels: StoreExports.Label[]): Labels {
  return Object.fromEntries(labels.map(({ name, value }) => [name, value]));
}

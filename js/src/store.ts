/** An open store: the component's exported interface in JavaScript's words. */

import * as args from './arguments.js';
import { Instance, type Build, type Exports, type StoreExports } from './component.js';
import { InvalidError } from './errors.js';
import { dispose } from './imports/dispose.js';
import type { Storage } from './imports/storage.js';
import type * as model from './model.js';
import { selectChunks, selectSeries } from './select.js';

/** How to open a store. */
export interface OpenOptions {
  /** Where data is kept. */
  readonly storage: Storage;
  /** Span of one block, at least a second. Default: {@link BLOCK_DURATION_MS}. */
  readonly blockDurationMs?: number;
  /** Samples further ahead of the clock are refused. Default: {@link FUTURE_LIMIT_MS}. */
  readonly futureLimitMs?: number;
  /**
   * How far behind the newest sample an out-of-order one is still accepted; 0 accepts samples in
   * order only. Default: {@link OUT_OF_ORDER_WINDOW_MS}.
   */
  readonly outOfOrderWindowMs?: number;
  /** Longest span of a merged block. Default: a tenth of the retention, and 31 days at most. */
  readonly blockDurationMaxMs?: number;
  /** A block is deleted when it ends this long before the newest. Default: never. */
  readonly retentionMs?: number;
  /** Bytes that all blocks may take together; the oldest go beyond. Default: no limit. */
  readonly retentionBytes?: number;
  /** Most series that the head holds at a time. Default: no limit. */
  readonly seriesMax?: number;
  /** Most exemplars kept, the newest. Default: none, and those that are sent are refused. */
  readonly exemplarsMax?: number;
  /**
   * Bytes of memory that the store may have in use: near it, {@link Store.compact} has a block to
   * cut, new series are refused, and at last all writes. Default: no limit.
   */
  readonly memoryBytesMax?: number;
  /** Most labels of a series, its name included; 0: no limit. Default: {@link LABELS_MAX}. */
  readonly labelsMax?: number;
  /** Longest label name in bytes; 0: no limit. Default: {@link LABEL_NAME_BYTES_MAX}. */
  readonly labelNameBytesMax?: number;
  /** Longest label value in bytes; 0: no limit. Default: {@link LABEL_VALUE_BYTES_MAX}. */
  readonly labelValueBytesMax?: number;
}

/** Prometheus' span of a block: two hours. */
export const BLOCK_DURATION_MS = 2 * 60 * 60 * 1000;

/** Prometheus' limit for samples from the future: ten minutes. */
export const FUTURE_LIMIT_MS = 10 * 60 * 1000;

/** How far behind the newest sample out-of-order ones are accepted: two hours. */
export const OUT_OF_ORDER_WINDOW_MS = 2 * 60 * 60 * 1000;

/** Most labels of a series. */
export const LABELS_MAX = 128;

/** Longest label name in bytes. */
export const LABEL_NAME_BYTES_MAX = 1024;

/** Longest label value in bytes. */
export const LABEL_VALUE_BYTES_MAX = 4096;

/** About how many bytes of the log are read back at a time. */
const REPLAY_BYTES = 1024 * 1024;

/** About how many bytes of names or values are taken out of the engine at a time. */
const STRINGS_BYTES = 64 * 1024;

/** A storage says by itself when it is full. */
const ROOM = { freeBytes: 2n ** 64n - 1n, otherBytes: 0n, memoryBytes: 2n ** 32n };

const TIME_MIN = -(2n ** 63n);
const TIME_MAX = 2n ** 63n - 1n;

/** Opens a store in a new instance of a component; `make` makes the object for it. */
export async function openWith<All extends Exports, Opened extends Store>(
  build: Build<All>,
  options: OpenOptions,
  make: (instance: Instance<All>) => Opened,
): Promise<Opened> {
  const { storage } = options;
  await storage.acquire();
  try {
    const instance = await Instance.create(build, storage);
    const values: StoreExports.Options = {
      role: 'all',
      blockDurationMs: args.toMs(options.blockDurationMs ?? BLOCK_DURATION_MS, 'blockDurationMs'),
      futureLimitMs: args.toMs(options.futureLimitMs ?? FUTURE_LIMIT_MS, 'futureLimitMs'),
      outOfOrderWindowMs: args.toMs(
        options.outOfOrderWindowMs ?? OUT_OF_ORDER_WINDOW_MS,
        'outOfOrderWindowMs',
      ),
      seriesMax: args.toCount(options.seriesMax ?? 0, 'seriesMax'),
      exemplarsMax: args.toCount(options.exemplarsMax ?? 0, 'exemplarsMax'),
      memoryBytesMax: args.toCount(options.memoryBytesMax ?? 0, 'memoryBytesMax'),
      labelLimits: {
        labelsMax: args.toLimit(options.labelsMax ?? LABELS_MAX, 'labelsMax'),
        nameBytesMax: args.toLimit(
          options.labelNameBytesMax ?? LABEL_NAME_BYTES_MAX,
          'labelNameBytesMax',
        ),
        valueBytesMax: args.toLimit(
          options.labelValueBytesMax ?? LABEL_VALUE_BYTES_MAX,
          'labelValueBytesMax',
        ),
      },
      blockDurationMaxMs: args.toMs(options.blockDurationMaxMs ?? 0, 'blockDurationMaxMs'),
      retentionMs: args.toMs(options.retentionMs ?? 0, 'retentionMs'),
      retentionBytes: args.toCount(options.retentionBytes ?? 0, 'retentionBytes'),
      // Callers cannot guess labels that would slow the series table.
      hashSeed: crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n,
    };
    instance.call((store) => store.open(values));
    while (!instance.call((store) => store.replay(REPLAY_BYTES)).done) await nextTurn();
    return make(instance);
  } catch (error) {
    await storage.release();
    throw error;
  }
}

/**
 * A store of time series. Calls other than `compact` and `close` are synchronous: they return
 * when the storage has what they wrote. Times that are left out are the clock's.
 */
export class Store {
  readonly #instance: Instance;
  readonly #storage: Storage;
  #isClosed = false;

  /** Use `open`. */
  constructor(instance: Instance, storage: Storage) {
    this.#instance = instance;
    this.#storage = storage;
  }

  /**
   * The number by which `append` knows a series, which is created if needed. It holds until all
   * samples of the series lie in blocks, or the store is closed; after either, ask again.
   */
  seriesRef(labels: model.Labels): model.SeriesRef {
    const pairs = args.toLabels(labels);
    return this.#call((store) => store.seriesRef(pairs));
  }

  /** Stores rows, but for those that are refused. On an exception, nothing was stored. */
  append(rows: model.Columns, nowMs = Date.now()): model.WriteOutcome {
    const columns = args.typedColumns(rows);
    const now = args.toMs(nowMs, 'nowMs');
    return outcome(this.#call((store) => store.append(columns, now)));
  }

  /**
   * Stores what a decompressed remote-write body holds: `v1` is a `prometheus.WriteRequest`, `v2`
   * an `io.prometheus.write.v2.Request`. On an exception, nothing was stored.
   */
  appendRemoteWrite(
    version: 'v1' | 'v2',
    body: Uint8Array,
    nowMs = Date.now(),
  ): model.WriteOutcome {
    const now = args.toMs(nowMs, 'nowMs');
    const [known, bytes] = [args.toVersion(version), args.toBytes(body, 'the body')];
    return outcome(this.#call((store) => store.appendRemoteWrite(known, bytes, now)));
  }

  /**
   * Series with their samples, in label order: those that the store has at the time of this call;
   * samples that are appended to them while the answer is read may be in it or not. Memory does
   * not grow with the answer. Iterate to the end or leave the loop: an iterator that is kept
   * half-read keeps compaction from freeing what it may still return.
   */
  select(selection: model.Selection = {}): IterableIterator<model.Series> {
    return selectSeries(this.#instance, selection);
  }

  /** As `select`, but with the chunks as they are stored. */
  selectChunks(selection: model.Selection = {}): IterableIterator<model.SeriesChunks> {
    return selectChunks(this.#instance, selection);
  }

  /**
   * Does all compaction that is due: cuts blocks while the head spans more than one and a half of
   * them, merges blocks, drops those beyond retention; returns the blocks that it wrote. Other
   * calls may come in between its slices.
   */
  async compact(nowMs = Date.now()): Promise<model.CompactedBlock[]> {
    const blocks: model.CompactedBlock[] = [];
    for (;;) {
      const { done, block } = this.compactSlice(nowMs);
      if (block !== undefined) blocks.push(block);
      if (done) return blocks;
      await this.#storage.ready?.();
      await nextTurn();
    }
  }

  /** Does a bounded slice of compaction, some milliseconds of work. */
  compactSlice(nowMs = Date.now()): model.CompactProgress {
    const now = args.toMs(nowMs, 'nowMs');
    const { done, block, deleted, bad, unmerged } = this.#call((store) => store.compact(now, ROOM));
    return {
      done,
      block: block && { id: block.id, level: block.level, samples: Number(block.samples) },
      deleted,
      damaged: bad.map(args.damageText),
      unmerged: unmerged.map(({ where, reason }) => `${where}: ${reason}`),
    };
  }

  /** Names of the labels that the selected series carry, ascending. */
  labelNames(lookup: model.Lookup = {}): string[] {
    const wanted = args.toLookup(lookup);
    return this.#strings((store) => store.labelNames(wanted));
  }

  /** Values that the selected series have for a label, ascending; none if no series has it. */
  labelValues(name: string, lookup: model.Lookup = {}): string[] {
    const [known, wanted] = [args.toText(name, 'the name'), args.toLookup(lookup)];
    return this.#strings((store) => store.labelValues(known, wanted));
  }

  /**
   * Deletes the samples in a range of all selected series, in head and blocks: they are hidden
   * from every read that begins afterwards, and gone when their block is merged. What is written
   * later counts, wherever it lies in time. It needs at least one matcher, so that leaving one out
   * does not delete everything.
   */
  delete(selection: model.Selection & { matchers: readonly model.Matcher[] }): model.Deletion {
    const { matchers, range } = args.toSelection(selection);
    if (matchers.length === 0) throw new InvalidError('a deletion without a matcher is refused');
    const { headSeries, blocks, bad } = this.#call((store) => store.delete([matchers], range));
    return { headSeries: Number(headSeries), blocks, damaged: bad.map(args.damageText) };
  }

  /** The store's figures at this moment. */
  stats(): model.Figures {
    const { headMinTimeMs, headMaxTimeMs, ...counts } = this.#call((store) => store.stats());
    const numbers = Object.entries(counts).map(([name, count]) => [name, Number(count)]);
    return {
      ...(Object.fromEntries(numbers) as Record<keyof typeof counts, number>),
      headMinTimeMs: headMinTimeMs === TIME_MAX ? undefined : Number(headMinTimeMs),
      headMaxTimeMs: headMaxTimeMs === TIME_MIN ? undefined : Number(headMaxTimeMs),
    };
  }

  /** Ends the store, and answers that are being read; lets go of the storage. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      if (!this.#instance.hasEnded) this.#call((store) => store.close());
    } finally {
      this.#instance.end();
      await this.#storage.release();
    }
  }

  #strings(ask: (store: typeof StoreExports) => StoreExports.Strings): string[] {
    const strings = this.#call(ask) as StoreExports.Strings & Disposable;
    try {
      const all: string[] = [];
      for (;;) {
        const some = this.#call(() => strings.next(STRINGS_BYTES));
        if (some.length === 0) return all;
        all.push(...some);
      }
    } finally {
      if (!this.#instance.hasEnded) this.#call(() => strings[dispose]());
    }
  }

  #call<T>(call: (store: typeof StoreExports) => T): T {
    return this.#instance.call(call);
  }
}

function outcome(value: StoreExports.WriteOutcome): model.WriteOutcome {
  return {
    samplesWritten: Number(value.samplesWritten),
    histogramsWritten: Number(value.histogramsWritten),
    exemplarsWritten: Number(value.exemplarsWritten),
    refused: Number(value.refused),
    refusals: value.refusals.map(({ reason, detail, timestampMs }) => {
      return { reason, detail, timestampMs: Number(timestampMs) };
    }),
  };
}

/** Lets other work have its turn. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

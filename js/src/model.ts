/**
 * The words of the public interface.
 *
 * Times are milliseconds since the Unix epoch, as whole numbers of at most 2^53 - 1 either way
 * (some 285 thousand years). A range includes both of its ends.
 */

/** A label set: values by name. A label with an empty value is the same as no label. */
export type Labels = Readonly<Record<string, string>>;

/** The number by which a store knows one of its series; of no meaning to another store. */
export type SeriesRef = bigint;

/**
 * Rows as columns of equal length: row `i` is the sample (`timestampsMs[i]`, `values[i]`).
 *
 * Typed arrays are copied as bytes, so that even a NaN keeps its bits; JavaScript may change the
 * bits of a NaN in a plain array. {@link STALE_NAN_BITS} says how to write a stale marker.
 */
export interface Columns {
  /** Series of each row, or the one series of all rows. */
  readonly series: SeriesRef | BigUint64Array | readonly SeriesRef[];
  /** Time of each row. `BigInt64Array` is the fastest. */
  readonly timestampsMs: BigInt64Array | Float64Array | readonly number[];
  /** Value of each row. */
  readonly values: Float64Array | readonly number[];
}

/** How a matcher compares: Prometheus' four operators. Expressions are RE2, anchored. */
export type MatchOp = '=' | '!=' | '=~' | '!~';

/** Selects series by one label. A series without the label is compared as the empty string. */
export interface Matcher {
  readonly name: string;
  readonly op: MatchOp;
  /** The value or the expression. */
  readonly value: string;
}

/** What to select. */
export interface Selection {
  /** All must hold. None selects every series. */
  readonly matchers?: readonly Matcher[];
  /** First time, included; left out, from the beginning. */
  readonly startMs?: number;
  /** Last time, included; left out, to the end. */
  readonly endMs?: number;
}

/** What to look up names or values of. */
export interface Lookup extends Selection {
  /** Most names or values given: the first ones. Left out or 0, all. */
  readonly limit?: number;
}

/** A series with its samples inside the selected range; at least one, by ascending time. */
export interface Series {
  readonly labels: Labels;
  /** Times of the values; histograms have their own. */
  readonly timestampsMs: Float64Array;
  /** As many as there are times. The bits of a NaN are kept: see {@link isStale}. */
  readonly values: Float64Array;
  /** Native histograms, by ascending time; most series have none, few have both. */
  readonly histograms: readonly Histogram[];
}

/**
 * A native histogram. Counts are exact up to 2^53. `histogramBuckets` returns its buckets with
 * their bounds.
 */
export interface Histogram {
  readonly timestampMs: number;
  /** Whether counts are whole numbers, or may be fractions. */
  readonly kind: 'integer' | 'float';
  /** The series ends here: all else says nothing. */
  readonly isStale: boolean;
  /**
   * What is known of the counter since the sample before. `gauge`: it is no counter. `reset` occurs
   * in answers of queries only.
   */
  readonly counterReset: 'unknown' | 'not-reset' | 'reset' | 'gauge';
  /** Resolution: a bucket is 2^(2^-schema) times as wide as the one before; -53: custom bounds. */
  readonly schema: number;
  readonly count: number;
  readonly sum: number;
  /** Observations in the bucket around zero are at most this far from it. */
  readonly zeroThreshold: number;
  readonly zeroCount: number;
  readonly positiveSpans: readonly BucketSpan[];
  /** The count of each bucket that the spans name. */
  readonly positiveBuckets: Float64Array;
  readonly negativeSpans: readonly BucketSpan[];
  readonly negativeBuckets: Float64Array;
  /** Upper bounds, with schema -53 only. */
  readonly customBounds: Float64Array;
}

/** A run of buckets next to each other. */
export interface BucketSpan {
  /** Buckets left out since the span before; of the first, its bucket's number. */
  readonly offset: number;
  readonly length: number;
}

/** A series with its chunks as they are stored, by ascending time, none overlapping. */
export interface SeriesChunks {
  readonly labels: Labels;
  /** May reach past the selected range at both ends. */
  readonly chunks: readonly Chunk[];
}

/** A run of one series' samples, about 120 of them, packed in Prometheus' chunk format. */
export interface Chunk {
  readonly encoding: 'xor' | 'histogram' | 'float-histogram';
  /** Time of the first sample. */
  readonly minTimeMs: bigint;
  /** Time of the last sample. */
  readonly maxTimeMs: bigint;
  /** Without the length, encoding byte and checksum that surround it in a chunk file. */
  readonly data: Uint8Array;
}

/** Why a row was not written. Sending it again cannot help, but for the two limits. */
export type RefusalReason =
  /** The series has another value at this time. */
  | 'duplicate-sample'
  /** Older than the series' newest sample. */
  | 'out-of-order'
  /** Older than the window in which samples are accepted. */
  | 'too-old'
  /** Further ahead of the clock than the future limit. */
  | 'too-far-in-future'
  /** The label set is not valid. */
  | 'invalid-labels'
  /** A symbol reference points outside the request's symbol table. */
  | 'invalid-symbol-ref'
  /** The series carries neither samples nor histograms. */
  | 'no-samples'
  /** The series is new, and the store holds as many as it may. */
  | 'series-limit'
  /** The series is new, and memory is short. */
  | 'memory-limit'
  /** A native histogram whose parts contradict each other. */
  | 'invalid-histogram'
  /** An exemplar with more than 128 characters of label names and values. */
  | 'invalid-exemplar'
  /** The store was opened with no room for exemplars. */
  | 'exemplars-off';

/** One refused row. */
export interface Refusal {
  readonly reason: RefusalReason;
  /** The series as Prometheus prints it, and what is wrong with the row; for people. */
  readonly detail: string;
  /** Time of the row; zero where the whole series was refused. */
  readonly timestampMs: number;
}

/** What became of a batch. Rows are refused one by one; all others are stored. */
export interface WriteOutcome {
  /** Includes exact duplicates of what is stored: sending those again is no mistake. */
  readonly samplesWritten: number;
  readonly histogramsWritten: number;
  readonly exemplarsWritten: number;
  /** Rows (or whole series) refused. */
  readonly refused: number;
  /** The first ten refusals. */
  readonly refusals: readonly Refusal[];
}

/** What a deletion found. */
export interface Deletion {
  /** Series of the head that may have had samples in the range. */
  readonly headSeries: number;
  /** Blocks in which more is deleted than before. */
  readonly blocks: readonly string[];
  /** Blocks in which nothing could be deleted, and why. */
  readonly damaged: readonly string[];
}

/** A block that a compaction wrote. */
export interface CompactedBlock {
  /** Its ULID. */
  readonly id: string;
  /** 1 for a block cut from the head; a merge adds one. */
  readonly level: number;
  readonly samples: number;
}

/** A block that a compaction deleted. */
export interface DeletedBlock {
  /** Its ULID. */
  readonly id: string;
  /** A merged block holds what it held, or it is beyond the retention. */
  readonly reason: 'merged' | 'age' | 'size';
}

/** What a slice of compaction did. */
export interface CompactProgress {
  /** Whether nothing is left to do now. */
  readonly done: boolean;
  /** The block that this slice finished, if it did. */
  readonly block: CompactedBlock | undefined;
  /** Blocks that this slice deleted. */
  readonly deleted: readonly DeletedBlock[];
  /** Blocks that were found to be damaged, and why; all others are served. */
  readonly damaged: readonly string[];
  /** Blocks that could not be merged with others, and why; they are served as they are. */
  readonly unmerged: readonly string[];
}

/** Figures of a store at one moment; counts are since it was opened. */
export interface Figures {
  /** Memory of the component's instance, which never shrinks. */
  readonly memoryBytes: number;
  /** Bytes of it that are in use. */
  readonly memoryUsedBytes: number;
  readonly headSeries: number;
  readonly headChunks: number;
  /** Distinct label names and values in the head. */
  readonly headSymbols: number;
  readonly headExemplars: number;
  /** Time of the oldest sample in the head; `undefined` if it is empty. */
  readonly headMinTimeMs: number | undefined;
  /** Time of the newest sample in the head; `undefined` if it is empty. */
  readonly headMaxTimeMs: number | undefined;
  readonly headSeriesCreated: number;
  readonly headSeriesRemoved: number;
  readonly samplesAppended: number;
  readonly samplesDuplicate: number;
  readonly samplesRefusedDuplicate: number;
  readonly samplesRefusedOutOfOrder: number;
  readonly samplesRefusedTooOld: number;
  readonly samplesRefusedInFuture: number;
  readonly openCursors: number;
  readonly blocks: number;
}

/**
 * Takes chunks of native histograms apart: Prometheus' format, as `tsdb/docs/format/chunks.md` in
 * its repository gives it ("Histogram chunk data", "Float histogram chunk data").
 *
 * ```text
 * count u16 | header byte | zero threshold | schema int | positive spans | negative spans |
 *   custom bounds, with schema -53 | samples
 *
 * header byte     00 and 01 and 10 a counter, 11 a gauge, in its top bits
 * zero threshold  0: zero; 1 to 254: 2^(byte - 244); 255: the float follows
 * spans           number uint, then of each: length uint, offset int
 * custom bounds   number uint, then of each: 1 + thousandths as uint, or 0 and the float
 *
 * sample              time  count  zero count  sum   positive buckets…  negative buckets…
 * first    integer    int   uint   uint        64    int                int
 *          float      int   64     64          64    64                 64
 * later    integer    dod   dod    dod         xor   dod                dod
 *          float      dod   xor    xor         xor   xor                xor
 * ```
 *
 * `int` and `uint` are {@link VARBIT_WIDTHS} after as many ones; `dod` is an int, how much the step
 * to the value differs from the step before; `xor` is that of floats, with a window for each
 * number. Integer buckets are differences, each to its neighbour's. A sample with the stale marker
 * as its sum has no buckets. Any bytes are survived: what does not decode throws a {@link
 * ChunkError}.
 */

import { BitReader } from './bits.js';
import { sampleCount } from './chunk.js';
import { ChunkError } from './errors.js';
import type { BucketSpan, Histogram } from './model.js';
import { STALE_NAN_BITS } from './stale.js';

const VARBIT_WIDTHS = [0, 3, 6, 9, 12, 18, 25, 56, 64] as const;
const CUSTOM_BOUNDS_SCHEMA = -53;
const HIGH_HALF = 0x1_0000_0000;
const ZERO_THRESHOLD_BIAS = 244;

/** What all samples of a chunk share. */
type Layout = Pick<
  Histogram,
  'schema' | 'zeroThreshold' | 'positiveSpans' | 'negativeSpans' | 'customBounds'
>;

/** The histograms of one chunk. */
export function decodeHistograms(data: Uint8Array, kind: Histogram['kind']): Histogram[] {
  const count = sampleCount(data);
  if (count === 0) return [];
  return new HistogramDecoder(data, count, kind).decode();
}

class HistogramDecoder {
  readonly #bits: BitReader;
  readonly #count: number;
  readonly #kind: Histogram['kind'];
  readonly #bitsMax: number;

  constructor(data: Uint8Array, count: number, kind: Histogram['kind']) {
    this.#bits = new BitReader(data, count);
    this.#count = count;
    this.#kind = kind;
    this.#bitsMax = data.length * 8;
  }

  decode(): Histogram[] {
    const bits = this.#bits;
    const isGauge = bits.read(8) >>> 6 === 3;
    const layout = this.#readLayout();
    const buckets = [layout.positiveSpans, layout.negativeSpans].map((spans) =>
      spans.reduce((sum, { length }) => sum + length, 0),
    );
    if (buckets[0]! + buckets[1]! > this.#bitsMax) this.#fail('it has more buckets than bits');
    const isInteger = this.#kind === 'integer';
    const total = (): Cell => (isInteger ? new StepCell(false) : new XorCell());
    const bucket = (): Cell => (isInteger ? new StepCell(true) : new XorCell());
    const time = new StepCell(true);
    const [count, zeroCount, sum] = [total(), total(), new XorCell()];
    const positive = Array.from({ length: buckets[0]! }, bucket);
    const negative = Array.from({ length: buckets[1]! }, bucket);

    const histograms: Histogram[] = [];
    for (let sample = 0; sample < this.#count; sample += 1) {
      bits.sample = sample;
      for (const cell of [time, count, zeroCount, sum]) cell.read(bits);
      const { isStale } = sum;
      if (!isStale || sample === 0) {
        for (const cell of positive) cell.read(bits);
        for (const cell of negative) cell.read(bits);
      }
      histograms.push({
        timestampMs: time.value,
        kind: this.#kind,
        isStale,
        counterReset: isGauge ? 'gauge' : sample === 0 ? 'unknown' : 'not-reset',
        ...layout,
        count: count.value,
        sum: sum.value,
        zeroCount: zeroCount.value,
        positiveBuckets: counts(positive, isInteger),
        negativeBuckets: counts(negative, isInteger),
      });
    }
    return histograms;
  }

  #readLayout(): Layout {
    const bits = this.#bits;
    const byte = bits.read(8);
    const isInFull = byte === 255;
    const power = byte === 0 ? 0 : 2 ** (byte - ZERO_THRESHOLD_BIAS);
    const zeroThreshold = isInFull ? readFloat(bits) : power;
    const schema = readInt(bits);
    const positiveSpans = this.#readSpans();
    const negativeSpans = this.#readSpans();
    const customBounds: number[] = [];
    if (schema === CUSTOM_BOUNDS_SCHEMA) {
      for (let left = readUint(bits); left > 0; left -= 1) {
        const thousandths = readUint(bits);
        customBounds.push(thousandths === 0 ? readFloat(bits) : (thousandths - 1) / 1000);
      }
    }
    const bounds = Float64Array.from(customBounds);
    return { schema, zeroThreshold, positiveSpans, negativeSpans, customBounds: bounds };
  }

  #readSpans(): BucketSpan[] {
    const spans: BucketSpan[] = [];
    for (let left = readUint(this.#bits); left > 0; left -= 1) {
      const length = readUint(this.#bits);
      const offset = readInt(this.#bits);
      if (spans.length > 0 && offset < 0) this.#fail('a span begins before the end of another');
      spans.push({ offset, length });
    }
    return spans;
  }

  #fail(reason: string): never {
    throw new ChunkError(0, this.#count, reason);
  }
}

/** One number of a sample, read again and again. */
interface Cell {
  readonly value: number;
  read(bits: BitReader): void;
}

/** A whole number, whose steps change little. */
class StepCell implements Cell {
  value = 0;
  #step: number | undefined;
  readonly #isSigned: boolean;

  /** Whether the first number has a sign; changes always have. */
  constructor(isSigned: boolean) {
    this.#isSigned = isSigned;
  }

  read(bits: BitReader): void {
    if (this.#step === undefined) {
      this.value = this.#isSigned ? readInt(bits) : readUint(bits);
      this.#step = 0;
      return;
    }
    this.#step = bits.checked(this.#step + readInt(bits));
    this.value = bits.checked(this.value + this.#step);
  }
}

/** A float, kept as two halves of bits so that a NaN keeps its own. */
class XorCell implements Cell {
  #high = 0;
  #low = 0;
  #leading = 0;
  #width = 64;
  #isFirst = true;

  get value(): number {
    return toFloat(this.#high, this.#low);
  }

  get isStale(): boolean {
    const bits = (BigInt(this.#high >>> 0) << 32n) | BigInt(this.#low >>> 0);
    return bits === STALE_NAN_BITS;
  }

  read(bits: BitReader): void {
    if (this.#isFirst) {
      this.#isFirst = false;
      this.#high = bits.read(32);
      this.#low = bits.read(32);
      return;
    }
    if (bits.read(1) === 0) return;
    if (bits.read(1) === 1) {
      this.#leading = bits.read(5);
      this.#width = bits.read(6) || 64;
    }
    const trailing = 64 - this.#leading - this.#width;
    if (trailing < 0) bits.fail(`${this.#leading} zeros and ${this.#width} bits are over 64`);
    const upper = this.#width > 32 ? bits.read(this.#width - 32) : 0;
    const lower = bits.read(Math.min(this.#width, 32));
    // The shifts of a 32-bit half by 32 would do nothing.
    const change = ((BigInt(upper) << 32n) | BigInt(lower)) << BigInt(trailing);
    this.#high ^= Number(change >> 32n);
    this.#low ^= Number(change & 0xffff_ffffn);
  }
}

function counts(cells: readonly Cell[], areSteps: boolean): Float64Array {
  let sum = 0;
  return Float64Array.from(cells, ({ value }) => (areSteps ? (sum += value) : value));
}

const words = new DataView(new ArrayBuffer(8));

function toFloat(high: number, low: number): number {
  words.setUint32(0, high);
  words.setUint32(4, low);
  return words.getFloat64(0);
}

function readFloat(bits: BitReader): number {
  const high = bits.read(32);
  return toFloat(high, bits.read(32));
}

/** The two halves of a number behind its prefix, and how many bits it had. */
function readVarbit(bits: BitReader): { high: number; low: number; width: number } {
  let ones = 0;
  while (ones < VARBIT_WIDTHS.length - 1 && bits.read(1) === 1) ones += 1;
  const width = VARBIT_WIDTHS[ones]!;
  const high = width > 32 ? bits.read(width - 32) : 0;
  return { high, low: width === 0 ? 0 : bits.read(Math.min(width, 32)), width };
}

function readUint(bits: BitReader): number {
  const { high, low } = readVarbit(bits);
  return bits.checked(high * HIGH_HALF + low);
}

function readInt(bits: BitReader): number {
  const { high, low, width } = readVarbit(bits);
  if (width === 64) return bits.checked((high | 0) * HIGH_HALF + low);
  // A width's largest value is the power of two that its topmost bit alone would mean. The sign
  // goes to the upper half first: 56 bits are more than a number holds.
  const isLong = width > 32;
  const [top, half] = isLong ? [high, 2 ** (width - 33)] : [low, 2 ** (width - 1)];
  const isNegative = width > 0 && (top > half || (isLong && top === half && low > 0));
  const signed = isNegative ? top - 2 * half : top;
  return isLong ? bits.checked(signed * HIGH_HALF + low) : signed;
}

/** A bucket with its bounds; `upper` is part of it above zero, `lower` below. */
export interface Bucket {
  readonly lower: number;
  readonly upper: number;
  readonly count: number;
}

/** The buckets of a histogram that hold anything, from the lowest to the highest. */
export function histogramBuckets(histogram: Histogram): Bucket[] {
  const { schema, customBounds, zeroThreshold, zeroCount } = histogram;
  const isCustom = schema === CUSTOM_BOUNDS_SCHEMA;
  const bound = (index: number) => {
    if (!isCustom) return 2 ** (index * 2 ** -schema);
    return index < 0 ? -Infinity : (customBounds[index] ?? Infinity);
  };
  const side = (spans: readonly BucketSpan[], countsOf: Float64Array): Bucket[] => {
    const buckets: Bucket[] = [];
    let index = 0;
    for (const { offset, length } of spans) {
      index += offset;
      for (let i = 0; i < length; i += 1, index += 1) {
        const count = countsOf[buckets.length]!;
        buckets.push({ lower: bound(index - 1), upper: bound(index), count });
      }
    }
    return buckets;
  };
  const positive = side(histogram.positiveSpans, histogram.positiveBuckets);
  const negative = side(histogram.negativeSpans, histogram.negativeBuckets);
  const mirrored = negative.map(({ lower, upper, count }) => {
    return { lower: -upper, upper: -lower, count };
  });
  const zero = { lower: -zeroThreshold, upper: zeroThreshold, count: zeroCount };
  const all = [...mirrored.reverse(), ...(isCustom ? [] : [zero]), ...positive];
  return all.filter(({ count }) => count > 0);
}

/**
 * Takes XOR chunks apart: Prometheus' format, as `tsdb/docs/format/chunks.md` in its repository
 * gives it ("XOR chunk data").
 *
 * ```text
 * count u16 | t0 varint | v0 float64 | t1-t0 uvarint | v1 bits | t2 step bits | v2 bits | ...
 *
 * step: how much the distance in time changes     value: XOR with the bits of the one before
 *   0      not at all                               0    no difference
 *   10     + 14 bits, -8191 to 8192                 10   the window's bits
 *   110    + 17 bits, -65535 to 65536               11   5 bits of leading zeros, 6 bits of width
 *   1110   + 20 bits, -524287 to 524288                  (0 means 64), then a new window's bits
 *   1111   + 64 bits
 * ```
 *
 * Values are put together from two 32-bit halves and never pass through a JavaScript number, so
 * that the bits of a NaN come out as they went in. Any bytes are survived: what does not decode
 * throws a {@link ChunkError}.
 */

import { BitReader } from './bits.js';
import { ChunkError } from './errors.js';

/** Samples as columns. */
export interface Samples {
  readonly timestampsMs: Float64Array;
  readonly values: Float64Array;
}

/** Least bits that a sample after the first takes. */
const SAMPLE_BITS_MIN = 2;

/** How many samples a chunk says that it holds. */
export function sampleCount(data: Uint8Array): number {
  const [high, low] = data;
  if (high === undefined || low === undefined) {
    throw new ChunkError(0, 0, 'the bytes end within the count of samples');
  }
  const count = (high << 8) | low;
  if ((count - 1) * SAMPLE_BITS_MIN > data.length * 8) {
    throw new ChunkError(0, count, `${data.length} bytes cannot hold so many`);
  }
  return count;
}

/** The samples of one XOR chunk. */
export function decodeChunk(data: Uint8Array): Samples {
  const decoder = new XorDecoder(sampleCount(data));
  decoder.decode(data);
  return decoder.samples();
}

/** Decodes chunk after chunk into the same columns. */
export class XorDecoder {
  readonly #timestampsMs: Float64Array;
  readonly #values: Float64Array;
  /** The halves of the values, low before high: all platforms of WebAssembly are little-endian. */
  readonly #words: Uint32Array;
  /** How many samples are decoded. */
  #length = 0;

  /** Makes room for as many samples. */
  constructor(samplesMax: number) {
    this.#timestampsMs = new Float64Array(samplesMax);
    this.#values = new Float64Array(samplesMax);
    this.#words = new Uint32Array(this.#values.buffer);
  }

  /** The samples between two times, both included. */
  samples(startMs = -Infinity, endMs = Infinity): Samples {
    let start = 0;
    let end = this.#length;
    while (start < end && this.#timestampsMs[start]! < startMs) start += 1;
    while (end > start && this.#timestampsMs[end - 1]! > endMs) end -= 1;
    const isWhole = start === 0 && end === this.#values.length;
    if (isWhole) return { timestampsMs: this.#timestampsMs, values: this.#values };
    return {
      timestampsMs: this.#timestampsMs.slice(start, end),
      values: this.#values.slice(start, end),
    };
  }

  /** Decodes a chunk behind what is decoded already. */
  decode(data: Uint8Array): void {
    const count = sampleCount(data);
    if (count === 0) return;
    const bits = new BitReader(data, count);
    const words = this.#words;
    let at = this.#length;

    let timestampMs = bits.readVarint();
    let high = bits.read(32);
    let low = bits.read(32);
    let stepMs = 0;
    let leading = 0;
    // A chunk may use a window before it sets one; all 64 bits are meant then.
    let width = 64;

    let sample = 0;
    for (;;) {
      this.#timestampsMs[at] = timestampMs;
      words[2 * at] = low;
      words[2 * at + 1] = high;
      at += 1;
      sample += 1;
      if (sample === count) break;
      bits.sample = sample;

      if (sample === 1) stepMs = bits.readUvarint();
      else if (bits.read(1) === 1) stepMs = bits.checked(stepMs + bits.readStepChange());
      timestampMs = bits.checked(timestampMs + stepMs);

      if (bits.read(1) === 0) continue;
      if (bits.read(1) === 1) {
        leading = bits.read(5);
        width = bits.read(6) || 64;
        if (leading + width > 64) {
          throw new ChunkError(sample, count, `${leading} zeros and ${width} bits are over 64`);
        }
      }
      const trailing = 64 - leading - width;
      const upper = width > 32 ? bits.read(width - 32) : 0;
      const lower = bits.read(Math.min(width, 32));
      if (trailing >= 32) {
        high ^= lower << (trailing - 32);
      } else if (trailing > 0) {
        high ^= (upper << trailing) | (lower >>> (32 - trailing));
        low ^= lower << trailing;
      } else {
        high ^= upper;
        low ^= lower;
      }
    }
    this.#length = at;
  }
}

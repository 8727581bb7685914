/** The bits of a chunk, whichever its encoding. */

import { ChunkError } from './errors.js';

/** 2^32 and 2^27: halves of numbers that bit operations cannot hold. */
const HIGH_HALF = 0x1_0000_0000;
const VARINT_HIGH = 0x800_0000;

/** Reads bits, highest first, and the whole bytes at a chunk's beginning. */
export class BitReader {
  readonly #bytes: Uint8Array;
  readonly #count: number;
  readonly #endBits: number;
  #positionBits = 16;
  /** The sample that is being read, for an error. */
  sample = 0;

  constructor(data: Uint8Array, count: number) {
    this.#bytes = data;
    this.#count = count;
    this.#endBits = data.length * 8;
  }

  /** The next bits, of which there may be 32 at most, as a number that is not negative. */
  read(width: number): number {
    const position = this.#positionBits;
    this.#positionBits = position + width;
    if (this.#positionBits > this.#endBits) this.#throwCutShort();
    const bytes = this.#bytes;
    const at = position >>> 3;
    const offset = position & 7;
    // Past the end of the array there is `undefined`, which is zero among bits.
    const four =
      (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
    const window = (four << offset) | (bytes[at + 4]! >>> (8 - offset));
    return window >>> (32 - width);
  }

  /** How much the step changes, behind the first bit of its prefix. */
  readStepChange(): number {
    if (this.read(1) === 0) return this.#readLopsided(14);
    if (this.read(1) === 0) return this.#readLopsided(17);
    if (this.read(1) === 0) return this.#readLopsided(20);
    return this.checked((this.read(32) | 0) * HIGH_HALF + this.read(32));
  }

  /** The topmost bit alone is the largest positive number. */
  #readLopsided(width: number): number {
    const bits = this.read(width);
    return bits > 1 << (width - 1) ? bits - (1 << width) : bits;
  }

  /** A number of up to ten bytes with seven bits each, as its lowest 28 bits and the rest. */
  #readVarintHalves(): [low: number, high: number] {
    let low = 0;
    let high = 0;
    for (let i = 0; i < 10; i += 1) {
      const byte = this.read(8);
      if (i < 4) low |= (byte & 127) << (7 * i);
      else high += (byte & 127) * 2 ** (7 * (i - 4));
      if (byte < 128) return [low, high];
    }
    throw new ChunkError(this.sample, this.#count, 'a varint is longer than ten bytes');
  }

  readUvarint(): number {
    const [low, high] = this.#readVarintHalves();
    return this.checked(high * 2 * VARINT_HIGH + low);
  }

  /** As above, with the sign in the lowest bit. */
  readVarint(): number {
    const [low, high] = this.#readVarintHalves();
    const magnitude = high * VARINT_HIGH + (low >>> 1);
    return this.checked(low & 1 ? -magnitude - 1 : magnitude);
  }

  /** Numbers past 2^53 are not exact. */
  checked(time: number): number {
    if (Number.isSafeInteger(time)) return time;
    throw new ChunkError(this.sample, this.#count, 'a number is past 2^53; read the chunk raw');
  }

  /** Says that the sample that is being read does not decode. */
  fail(reason: string): never {
    throw new ChunkError(this.sample, this.#count, reason);
  }

  #throwCutShort(): never {
    throw new ChunkError(this.sample, this.#count, 'the bytes end within it');
  }
}

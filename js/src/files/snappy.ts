/**
 * Snappy's block format (`format_description.txt` in google/snappy), in which Prometheus packs log
 * records. The packages for it are CommonJS, which a browser does not load.
 *
 * ```text
 * length uvarint │ element …       element by its lowest two bits:
 *   00 literal: 6 bits of length - 1, of which 60 to 63 mean 1 to 4 bytes of it behind
 *   01 copy:    3 bits of length - 4, 3 bits of offset above 1 byte behind
 *   10 copy:    6 bits of length - 1, offset in 2 bytes behind        11: offset in 4 bytes
 * ```
 */

/** Matches are looked for in pieces as long as two bytes of an offset reach. */
const PIECE_BYTES = 65_536;
const HASH_BITS = 14;
const MATCH_BYTES_MIN = 4;
const COPY_BYTES_MAX = 64;

/** The most bytes that packing may return. */
function packedBytesMax(length: number): number {
  return 32 + length + Math.floor(length / 6);
}

/** Packs bytes. */
export function snappyPack(bytes: Uint8Array): Uint8Array {
  const packer = new Packer(bytes);
  for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
    packer.pack(from, Math.min(bytes.length, from + PIECE_BYTES));
  }
  return packer.packed();
}

const table = new Uint16Array(1 << HASH_BITS);

class Packer {
  readonly #in: Uint8Array;
  readonly #out: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#in = bytes;
    this.#out = new Uint8Array(packedBytesMax(bytes.length));
    let length = bytes.length;
    for (; length >= 128; length >>>= 7) this.#out[this.#at++] = (length & 127) | 128;
    this.#out[this.#at++] = length;
  }

  packed(): Uint8Array {
    return this.#out.subarray(0, this.#at);
  }

  pack(from: number, end: number): void {
    const bytes = this.#in;
    table.fill(0);
    const four = (at: number) =>
      bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    let literal = from;
    let at = from + 1;
    // Bytes that nothing matches are passed over in growing steps.
    let misses = 32;
    while (at + MATCH_BYTES_MIN <= end) {
      const word = four(at);
      const slot = Math.imul(word, 0x1e35a7bd) >>> (32 - HASH_BITS);
      const candidate = from + table[slot]!;
      table[slot] = at - from;
      if (candidate >= at || four(candidate) !== word) {
        at += misses >>> 5;
        misses += 1;
        continue;
      }
      misses = 32;
      let length = MATCH_BYTES_MIN;
      while (at + length < end && bytes[candidate + length] === bytes[at + length]) length += 1;
      this.#putLiteral(literal, at);
      this.#putCopy(at - candidate, length);
      at += length;
      literal = at;
    }
    this.#putLiteral(literal, end);
  }

  #putLiteral(from: number, end: number): void {
    const rest = end - from - 1;
    if (rest < 0) return;
    const out = this.#out;
    if (rest < 60) {
      out[this.#at++] = rest << 2;
    } else if (rest < 256) {
      out[this.#at++] = 60 << 2;
      out[this.#at++] = rest;
    } else {
      out[this.#at++] = 61 << 2;
      out[this.#at++] = rest;
      out[this.#at++] = rest >>> 8;
    }
    out.set(this.#in.subarray(from, end), this.#at);
    this.#at += end - from;
  }

  #putCopy(offset: number, length: number): void {
    const out = this.#out;
    for (let left = length; left > 0; ) {
      const part = Math.min(left, COPY_BYTES_MAX);
      out[this.#at++] = ((part - 1) << 2) | 2;
      out[this.#at++] = offset;
      out[this.#at++] = offset >>> 8;
      left -= part;
    }
  }
}

/** Unpacks a block, or returns `undefined` if the bytes are none of at most so many bytes. */
export function snappyUnpack(packed: Uint8Array, bytesMax: number): Uint8Array | undefined {
  let length = 0;
  let at = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = packed[at++];
    if (byte === undefined || shift > 28) return undefined;
    length += (byte & 127) * 2 ** shift;
    if (byte < 128) break;
  }
  // No element of three bytes makes more than 64, so that a wrong length cannot eat the memory.
  if (length > bytesMax || length > packed.length * COPY_BYTES_MAX) return undefined;
  const out = new Uint8Array(length);
  let end = 0;
  while (at < packed.length) {
    const tag = packed[at++]!;
    const upper = tag >>> 2;
    if ((tag & 3) === 0) {
      const width = Math.max(0, upper - 59);
      let count = upper;
      if (width > 0) {
        count = 0;
        for (let i = 0; i < width; i += 1) count += (packed[at + i] ?? 0) * 2 ** (8 * i);
        at += width;
      }
      count += 1;
      if (at + count > packed.length || end + count > length) return undefined;
      out.set(packed.subarray(at, at + count), end);
      at += count;
      end += count;
      continue;
    }
    const isShort = (tag & 3) === 1;
    const count = isShort ? 4 + (upper & 7) : upper + 1;
    const width = isShort ? 1 : (tag & 3) === 2 ? 2 : 4;
    let offset = isShort ? (tag >>> 5) * 256 : 0;
    for (let i = 0; i < width; i += 1) offset += (packed[at + i] ?? 0) * 2 ** (8 * i);
    at += width;
    if (at > packed.length || offset === 0 || offset > end || end + count > length) {
      return undefined;
    }
    if (offset >= count) {
      out.copyWithin(end, end - offset, end - offset + count);
    } else {
      // The copy repeats what it has just written.
      for (let i = 0; i < count; i += 1) out[end + i] = out[end + i - offset]!;
    }
    end += count;
  }
  return end === length ? out : undefined;
}

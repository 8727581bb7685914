/** Remote-write bodies by hand: messages that are shorter than 16 KiB. */

/** A number in groups of seven bits. */
export function varint(n: bigint): number[] {
  return n < 128n ? [Number(n)] : [Number(n & 127n) | 128, ...varint(n >> 7n)];
}

/** A field with a length: its tag, then what it holds. */
export function message(tag: number, ...fields: number[][]): number[] {
  const bytes = fields.flat();
  return [tag, ...varint(BigInt(bytes.length)), ...bytes];
}

/** A label of a series. */
export function label(name: string, value: string): number[] {
  const text = (value: string) => [...new TextEncoder().encode(value)];
  return message(0x0a, message(0x0a, text(name)), message(0x12, text(value)));
}

/** A float in eight bytes. */
export function float(value: number): number[] {
  return [...new Uint8Array(Float64Array.of(value).buffer)];
}

/**
 * A message of remote write 1.0, which can say what text cannot: stale markers. Sources: the
 * specification's `prometheus.WriteRequest`, and Snappy's block format, all in literals.
 */

/** A stale marker: a NaN of these bits, as Prometheus' `model/value` has it. */
export const STALE = 0x7ff0000000000002n;

/** A sample: milliseconds, and a value or the bits of one. */
export type Sample = [number, number | bigint];

/** The body of a request with one series. */
export function writeRequest(labels: Record<string, string>, samples: readonly Sample[]): Uint8Array {
  const pairs = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  const text = (field: number, value: string) => bytesField(field, Buffer.from(value));
  const labelled = pairs.map(([name, value]) => bytesField(1, Buffer.concat([text(1, name), text(2, value)])));
  const sampled = samples.map(([time, value]) => {
    const bits = Buffer.alloc(8);
    if (typeof value === 'bigint') bits.writeBigUInt64LE(value);
    else bits.writeDoubleLE(value);
    return bytesField(2, Buffer.concat([Buffer.from([(1 << 3) | 1]), bits, Buffer.from([2 << 3]), varint(time)]));
  });
  return packed(bytesField(1, Buffer.concat([...labelled, ...sampled])));
}

function bytesField(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = BigInt(value);
  for (; left > 127n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  return Buffer.from([...bytes, Number(left)]);
}

/** Bytes of a literal whose length stands in one byte. */
const LITERAL_MAX = 60;

function packed(bytes: Buffer): Uint8Array {
  const parts = [varint(bytes.length)];
  for (let at = 0; at < bytes.length; at += LITERAL_MAX) {
    const part = bytes.subarray(at, at + LITERAL_MAX);
    parts.push(Buffer.from([(part.length - 1) << 2]), part);
  }
  return Buffer.concat(parts);
}

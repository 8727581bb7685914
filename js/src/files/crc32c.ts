/** CRC-32C (Castagnoli), eight bytes at a time: no platform of JavaScript offers it. */

/** The polynomial, lowest bit first. */
const POLYNOMIAL = 0x82f63b78;

/** Table `n` holds what a byte does that `n` more bytes follow. */
const TABLES = tables();

function tables(): Uint32Array[] {
  const first = Uint32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    return crc;
  });
  const all = [first];
  for (let n = 1; n < 8; n += 1) {
    all.push(all[n - 1]!.map((crc) => (crc >>> 8) ^ first[crc & 255]!));
  }
  return all;
}

/** The checksum of these bytes. */
export function crc32c(bytes: Uint8Array): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as [
    Uint32Array, Uint32Array, Uint32Array, Uint32Array,
    Uint32Array, Uint32Array, Uint32Array, Uint32Array,
  ];
  let crc = -1;
  let at = 0;
  for (const end = bytes.length - 7; at < end; at += 8) {
    crc ^=
      bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    crc =
      t7[crc & 255]! ^ t6[(crc >>> 8) & 255]! ^ t5[(crc >>> 16) & 255]! ^ t4[crc >>> 24]! ^
      t3[bytes[at + 4]!]! ^ t2[bytes[at + 5]!]! ^ t1[bytes[at + 6]!]! ^ t0[bytes[at + 7]!]!;
  }
  for (; at < bytes.length; at += 1) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]!) & 255]!;
  return ~crc >>> 0;
}

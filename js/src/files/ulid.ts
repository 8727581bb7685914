/** ULIDs: 48 bits of milliseconds and 80 of chance, as 26 letters that sort by time. */

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** A ULID of this time, whose lowest 80 bits are given. */
export function ulid(nowMs: number, rest: bigint): string {
  const timeMs = BigInt.asUintN(48, BigInt(Math.max(0, nowMs)));
  const value = (timeMs << 80n) | BigInt.asUintN(80, rest);
  const digit = (_: unknown, i: number) => CROCKFORD[Number((value >> BigInt(5 * (25 - i))) & 31n)];
  return Array.from({ length: 26 }, digit).join('');
}

/** 80 bits of chance. */
export function chance(): bigint {
  const [a, b] = crypto.getRandomValues(new BigUint64Array(2));
  return BigInt.asUintN(80, (a! << 64n) | b!);
}

/** Whether this is a ULID in its one canonical spelling. */
export function isUlid(name: string): boolean {
  return /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(name);
}

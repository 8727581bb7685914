/**
 * Stale markers: the NaN by which Prometheus says that a series has ended.
 *
 * Only its bits distinguish it from other NaNs, and JavaScript may change those whenever the value
 * leaves a typed array. Node 20 does: out of a `Float64Array` into a variable, a plain array or a
 * map, 7ff0000000000002 becomes 7ff8000000000002 or 7ff8000000000000, depending on the path and on
 * how far the code is optimised. So a marker is written and read in place. The bytes of a
 * `Float64Array` reach the store, and come back from it, as they are.
 */

/** The bits of the stale marker. */
export const STALE_NAN_BITS = 0x7ff0000000000002n;

/** Writes the stale marker as value `index`. */
export function setStale(values: Float64Array, index: number): void {
  view(values).setBigUint64(8 * index, STALE_NAN_BITS, true);
}

/** Whether value `index` is the stale marker. */
export function isStale(values: Float64Array, index: number): boolean {
  return view(values).getBigUint64(8 * index, true) === STALE_NAN_BITS;
}

function view({ buffer, byteOffset, byteLength }: Float64Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

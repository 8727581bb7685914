//! The value that ends a series until its next sample (`model/value` of prometheus/prometheus).

/// Bits of the NaN that marks a series as stale. A stale histogram has this NaN as its sum.
pub const STALE_NAN_BITS: u64 = 0x7ff0_0000_0000_0002;

/// The NaN that marks a series as stale. Only its bits distinguish it from other NaNs.
pub const STALE_NAN: f64 = f64::from_bits(STALE_NAN_BITS);

/// Returns whether a value is the stale marker, not just any NaN.
pub fn is_stale_nan(value: f64) -> bool {
    value.to_bits() == STALE_NAN_BITS
}

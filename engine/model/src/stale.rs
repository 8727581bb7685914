//! The value that ends a series until it has samples again (`model/value` of
//! prometheus/prometheus).

/// The bits of the NaN that marks a series as stale. Of a histogram, its sum has them.
pub const STALE_NAN_BITS: u64 = 0x7ff0_0000_0000_0002;

/// The NaN that marks a series as stale. It is told from others by its bits.
pub const STALE_NAN: f64 = f64::from_bits(STALE_NAN_BITS);

/// Whether a value is the marker, not just any NaN.
pub fn is_stale_nan(value: f64) -> bool {
    value.to_bits() == STALE_NAN_BITS
}

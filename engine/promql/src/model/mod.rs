//! Values of the language: label sets, floats and native histograms.

mod histogram;
mod labels;
mod point;

pub use histogram::{CUSTOM_BUCKETS_SCHEMA, CounterReset, Histogram, Span};
pub use labels::Labels;
pub use point::{FloatPoint, HistogramPoint, Samples};

use std::rc::Rc;

/// Bits of the NaN that marks the end of a series, as a value or as a histogram's sum.
pub const STALE_NAN_BITS: u64 = 0x7ff0_0000_0000_0002;

/// Whether a value, or a histogram's sum, marks the end of a series.
pub fn is_stale_nan(value: f64) -> bool {
    value.to_bits() == STALE_NAN_BITS
}

/// What a series says at one time.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A float.
    Float(f64),
    /// A native histogram.
    Histogram(Rc<Histogram>),
}

impl From<Histogram> for Value {
    fn from(histogram: Histogram) -> Value {
        Value::Histogram(Rc::new(histogram))
    }
}

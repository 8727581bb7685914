//! The value of a sample: a float or a native histogram.

use super::histogram::{
    Count, FloatHistogram, Histogram, NativeHistogram, ResetHint, STALE_NAN_BITS, is_stale_nan,
};
use std::rc::Rc;

/// A measured value of any kind; copies share the histogram.
#[derive(Clone, Debug)]
pub enum Value {
    /// A float, which may be the staleness marker.
    Float(f64),
    /// A native histogram with whole counts.
    Histogram(Rc<Histogram>),
    /// A native histogram with fractional counts.
    FloatHistogram(Rc<FloatHistogram>),
}

impl Value {
    /// The staleness marker of any series; a head stores it as a value of the series' kind.
    pub const STALE: Value = Value::Float(f64::from_bits(STALE_NAN_BITS));

    /// Returns whether the value is a staleness marker.
    pub fn is_stale(&self) -> bool {
        match self {
            Value::Float(value) => is_stale_nan(*value),
            Value::Histogram(histogram) => histogram.is_stale(),
            Value::FloatHistogram(histogram) => histogram.is_stale(),
        }
    }

    /// Returns the value without a counter-reset hint; a gauge stays a gauge.
    pub fn without_reset_hint(self) -> Value {
        match self {
            Value::Histogram(h) => Value::Histogram(clear_hint(h)),
            Value::FloatHistogram(h) => Value::FloatHistogram(clear_hint(h)),
            float => float,
        }
    }

    /// Returns whether two values are duplicates, though chunks may have stored them differently.
    /// Values of different kinds are never duplicates.
    pub fn same_observations(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Histogram(a), Value::Histogram(b)) => a.same_observations(b),
            (Value::FloatHistogram(a), Value::FloatHistogram(b)) => a.same_observations(b),
            _ => false,
        }
    }
}

fn clear_hint<C: Count>(mut histogram: Rc<NativeHistogram<C>>) -> Rc<NativeHistogram<C>> {
    // Shared histograms are copied only if there is a hint to clear.
    if matches!(histogram.reset_hint, ResetHint::Reset | ResetHint::NotReset) {
        Rc::make_mut(&mut histogram).reset_hint = ResetHint::Unknown;
    }
    histogram
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Histogram(a), Value::Histogram(b)) => a == b,
            (Value::FloatHistogram(a), Value::FloatHistogram(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

impl From<Histogram> for Value {
    fn from(histogram: Histogram) -> Value {
        Value::Histogram(Rc::new(histogram))
    }
}

impl From<FloatHistogram> for Value {
    fn from(histogram: FloatHistogram) -> Value {
        Value::FloatHistogram(Rc::new(histogram))
    }
}

//! Values of the language: label sets, floats and native histograms.

mod histogram;
mod key_labels;
mod labels;
mod metadata;
mod point;

pub use histogram::{CUSTOM_BUCKETS_SCHEMA, CounterReset, Histogram, Span};
pub use key_labels::KeyLabels;
pub(crate) use key_labels::hash_labels;
pub use labels::Labels;
pub(crate) use metadata::{NAME, begins_behind_metadata, drop_metadata, has_metadata, is_metadata};
pub use point::{FloatPoint, HistogramPoint, Samples};
pub use tidepool_model::{STALE_NAN_BITS, is_stale_nan};

use std::rc::Rc;

/// Value of a series at one time.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A float, NaN and infinities included.
    Float(f64),
    /// A native histogram, shared between steps.
    Histogram(Rc<Histogram>),
}

impl From<Histogram> for Value {
    fn from(histogram: Histogram) -> Value {
        Value::Histogram(Rc::new(histogram))
    }
}

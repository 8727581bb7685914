//! Arithmetic, comparison and printing of native histograms.
//!
//! Source: prometheus/prometheus, `model/histogram`.

mod arithmetic;
mod buckets;
mod compensated;
mod custom;
mod layout;
mod print;
mod reset;
mod trim;
mod zero;

pub use arithmetic::{Incompatible, Reconciled};
pub use buckets::Bucket;
pub use compensated::Compensation;
pub use print::test_notation;
pub use trim::Keep;

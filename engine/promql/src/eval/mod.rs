//! Evaluation of a plan over the series of a source.
//!
//! Series go one by one from the source through the operators to the caller; each has one column,
//! a value for each step. What must be held counts against a budget.

mod aggregate;
mod binary;
mod buckets;
mod budget;
mod buffer;
mod column;
mod context;
pub mod element;
mod error;
mod evaluation;
mod extend;
mod fold;
mod info;
pub mod key;
mod operators;
mod pipeline;
mod relabel;
mod root;
mod scalar;
mod scalars;
mod series;
mod sort;
mod stats;
mod subquery;
mod transform;
mod unite;

pub use budget::{Limit, Limits};
pub use error::EvalError;
pub use evaluation::{Estimate, Evaluation, Query};
pub use series::ResultSeries;
pub(crate) use series::is_metadata;
pub use stats::Stats;

/// How many times there are from a first to a last one, both included.
pub fn number_of_steps(start_ms: i64, end_ms: i64, step_ms: i64) -> u64 {
    match end_ms.checked_sub(start_ms) {
        _ if end_ms < start_ms || step_ms <= 0 => 0,
        Some(width) => (width / step_ms) as u64 + 1,
        None => u64::MAX,
    }
}

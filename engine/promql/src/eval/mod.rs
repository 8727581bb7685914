//! Evaluation of a plan over the series of a source.
//!
//! Series pass one by one from the source through the operators to the caller. Each series has one
//! column, with a value for each step. All memory in use counts towards a budget.

mod aggregate;
mod binary;
mod buckets;
mod budget;
mod buffer;
mod column;
mod context;
mod evaluation;
mod extend;
mod fold;
mod info;
mod key;
mod operators;
mod pipeline;
mod relabel;
mod root;
mod scalar;
mod scalars;
mod series;
mod series_union;
mod sort;
mod stats;
mod step_annotations;
mod subquery;
mod transform;

pub use evaluation::{Estimate, Evaluation, Query};
pub use series::ResultSeries;
pub use stats::Stats;

pub use crate::error::EvalError;
pub use crate::limits::{Limit, Limits};

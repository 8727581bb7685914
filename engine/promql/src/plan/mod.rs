//! Turns a checked expression into a plan: resolves durations and times, folds constants, marks
//! parts that are the same at all steps, and merges equal selectors into one scan.
//!
//! Equal selectors share one scan, which covers both time ranges if these touch, in two cases: an
//! aggregation is between one of the selectors and the operator at which both meet; or both meet at
//! a join in lockstep (see `lockstep`), where each series matches only itself. Any other join, such
//! as `x - on (a) x`, needs two scans: one side is kept in memory, and the other side would have to
//! wait, because a series may match the last series in memory. Reading series twice takes no
//! memory.
//!
//! The inputs of a node come before the node. Scans run one after the other; inputs that are kept
//! in memory are complete before the input that flows past them begins.

mod binary;
mod build;
mod call;
mod condition;
mod constant;
mod duration;
mod grid;
mod invariant;
mod leaf;
mod lockstep;
mod order;
mod selector;
mod sorting;
mod stepwise;
mod types;

pub use binary::{dropped, key as match_key};
pub use build::plan;
pub use types::*;

use crate::error::EvalError;
use crate::syntax::Span;

/// Reason why an expression cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The expression has no meaning. The text is upstream's.
    #[error("{text}")]
    Invalid {
        /// Upstream's error text, without the position.
        text: String,
        /// Part of the expression that is refused.
        span: Span,
    },
    /// An error that upstream finds during evaluation, or a limit.
    #[error(transparent)]
    Evaluation(#[from] EvalError),
}

impl PlanError {
    fn invalid(text: impl Into<String>, span: Span) -> PlanError {
        PlanError::Invalid { text: text.into(), span }
    }
}

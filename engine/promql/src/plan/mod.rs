//! What is done to evaluate an expression: durations and times are resolved, constants folded,
//! parts that are the same at all steps are evaluated once, equal selectors are one scan.
//!
//! Equal selectors share a scan, also one over all of their times if these touch, where an
//! aggregation stands between one of them and the operator at which they meet, or where they meet
//! at a join in lockstep (`lockstep`): by all labels, so that series match themselves. Two sides of
//! another join, as in `x - on (a) x`, are two scans: series come in label order, and the series
//! that flows may match one of the held side that comes last, so all of the flowing side would have
//! to wait. To read it again takes no memory.
//!
//! Nodes stand in an order in which each comes behind those that it takes series from. Scans are
//! run one after the other, in an order in which what must be held is there before what flows past
//! it.

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

/// Why an expression cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The expression asks for something that has no meaning. The text is upstream's.
    #[error("{text}")]
    Invalid {
        /// What is wrong.
        text: String,
        /// The part of the expression.
        span: Span,
    },
    /// What upstream finds when it evaluates, and limits.
    #[error(transparent)]
    Evaluation(#[from] EvalError),
}

impl PlanError {
    fn invalid(text: impl Into<String>, span: Span) -> PlanError {
        PlanError::Invalid { text: text.into(), span }
    }
}

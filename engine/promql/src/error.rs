//! Errors that end an evaluation early.

use crate::limits::Limit;
use crate::source::SourceError;
use crate::syntax::Span;

/// Reason for which an evaluation ends early. The texts are upstream's where upstream has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The store failed while series were read.
    #[error("expanding series: {0}")]
    Source(#[from] SourceError),
    /// The query reached one of its limits.
    #[error("{}", limit_text(*limit, *max))]
    Limit {
        /// The limit that was reached.
        limit: Limit,
        /// Configured value of the limit.
        max: u64,
        /// Part of the expression that exceeded the limit.
        span: Span,
    },
    /// The expression has no answer on these series. The text is upstream's.
    #[error("{text}")]
    Execution {
        /// Upstream's text of the error.
        text: String,
    },
}

impl EvalError {
    /// Makes the error of a limit that `span` exceeded.
    pub fn limit(limit: Limit, max: u64, span: Span) -> EvalError {
        EvalError::Limit { limit, max, span }
    }

    /// Makes the error of an expression that has no answer on these series.
    pub fn execution(text: impl Into<String>) -> EvalError {
        EvalError::Execution { text: text.into() }
    }

    /// Makes the error of two series in one vector with the same labels.
    pub fn same_labels() -> EvalError {
        EvalError::execution("vector cannot contain metrics with the same labelset")
    }
}

fn limit_text(limit: Limit, max: u64) -> String {
    match limit {
        Limit::Bytes => format!("the query needs more than the {max} bytes of memory it may take"),
        Limit::Samples => format!(
            "query processing would load too many samples into memory in query execution; \
             the limit is {max}"
        ),
        Limit::Steps => format!("the query has more than {max} steps"),
        Limit::LabelBytes => format!("a label's value would have more than {max} bytes"),
        Limit::Depth => format!("the query is nested more than {max} levels deep"),
    }
}

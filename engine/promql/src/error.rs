//! Why an evaluation ends early.

use crate::limits::Limit;
use crate::source::SourceError;
use crate::syntax::Span;

/// Why an evaluation ends early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The store failed.
    #[error("expanding series: {0}")]
    Source(#[from] SourceError),
    /// A limit was reached.
    #[error("{}", limit_text(*limit, *max))]
    Limit {
        /// Which one.
        limit: Limit,
        /// Its value.
        max: u64,
        /// The part of the expression that asked for more.
        span: Span,
    },
    /// The expression has no answer on these series. The text is upstream's.
    #[error("{text}")]
    Execution {
        /// What is wrong.
        text: String,
    },
}

impl EvalError {
    /// A limit was reached.
    pub fn limit(limit: Limit, max: u64, span: Span) -> EvalError {
        EvalError::Limit { limit, max, span }
    }

    /// The expression has no answer on these series.
    pub fn execution(text: impl Into<String>) -> EvalError {
        EvalError::Execution { text: text.into() }
    }

    /// Two series of one vector have the same labels.
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

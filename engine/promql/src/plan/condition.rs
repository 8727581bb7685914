//! Matchers that the evaluation itself applies to label values, without the store.

use crate::error::EvalError;
use crate::syntax::{MatchOp, Matcher};
use tidepool_relabel::Pattern;

/// A matcher's operator and value, without the label name.
#[derive(Debug)]
pub struct Condition {
    op: MatchOp,
    value: String,
    pattern: Option<Pattern>,
}

impl Condition {
    /// Compiles the condition of a matcher; fails if its regular expression is invalid.
    pub fn new(matcher: &Matcher) -> Result<Condition, EvalError> {
        let pattern = match matcher.op {
            MatchOp::Regex | MatchOp::NotRegex => {
                Some(Pattern::new(&matcher.value).map_err(EvalError::execution)?)
            }
            _ => None,
        };
        Ok(Condition { op: matcher.op, value: matcher.value.clone(), pattern })
    }

    /// Returns whether a label value satisfies the condition. An absent label has the empty value.
    pub fn holds(&self, value: &str) -> bool {
        let fits = || self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(value));
        match self.op {
            MatchOp::Equal => value == self.value,
            MatchOp::NotEqual => value != self.value,
            MatchOp::Regex => fits(),
            MatchOp::NotRegex => !fits(),
        }
    }

    /// Approximate memory of value and compiled expression in bytes.
    pub fn bytes(&self) -> usize {
        self.value.len() + self.pattern.as_ref().map_or(0, Pattern::bytes)
    }
}

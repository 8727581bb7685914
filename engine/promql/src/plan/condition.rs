//! Matchers that the evaluation itself compares with values.

use crate::error::EvalError;
use crate::syntax::{MatchOp, Matcher};
use tidepool_relabel::Pattern;

/// A condition on a value.
#[derive(Debug)]
pub struct Condition {
    op: MatchOp,
    value: String,
    pattern: Option<Pattern>,
}

impl Condition {
    /// The condition of a matcher.
    pub fn new(matcher: &Matcher) -> Result<Condition, EvalError> {
        let pattern = match matcher.op {
            MatchOp::Regex | MatchOp::NotRegex => {
                Some(Pattern::new(&matcher.value).map_err(EvalError::execution)?)
            }
            _ => None,
        };
        Ok(Condition { op: matcher.op, value: matcher.value.clone(), pattern })
    }

    /// Whether a value fits.
    pub fn holds(&self, value: &str) -> bool {
        let fits = || self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(value));
        match self.op {
            MatchOp::Equal => value == self.value,
            MatchOp::NotEqual => value != self.value,
            MatchOp::Regex => fits(),
            MatchOp::NotRegex => !fits(),
        }
    }

    /// Memory that it takes, roughly.
    pub fn bytes(&self) -> usize {
        self.value.len() + self.pattern.as_ref().map_or(0, Pattern::bytes)
    }
}

//! Matchers for labels that are not in the store, such as those of targets and rules.

use tidepool_relabel::Pattern;
use tidepool_runtime::{MatchOp, Matcher};

/// A matcher with its compiled pattern.
pub enum Condition {
    Text(Matcher),
    Pattern(Matcher, Pattern),
}

impl Condition {
    /// Compiles a matcher. The error says what is wrong with its pattern.
    pub fn new(matcher: Matcher) -> Result<Condition, String> {
        match matcher.op {
            MatchOp::Equal | MatchOp::NotEqual => Ok(Condition::Text(matcher)),
            MatchOp::Regex | MatchOp::NotRegex => {
                let pattern = Pattern::new(&matcher.value)?;
                Ok(Condition::Pattern(matcher, pattern))
            }
        }
    }

    /// Returns whether the value of the matcher's label matches. `value` returns the value of a
    /// label; empty if it is absent.
    pub fn holds<'a>(&self, value: impl Fn(&str) -> &'a str) -> bool {
        match self {
            Condition::Text(matcher) => {
                (value(&matcher.name) == matcher.value) == (matcher.op == MatchOp::Equal)
            }
            Condition::Pattern(matcher, pattern) => {
                pattern.is_match(value(&matcher.name)) == (matcher.op == MatchOp::Regex)
            }
        }
    }
}

//! Operators of label matchers, as in PromQL and remote read.

/// Comparison of a label's value with that of a matcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchOp {
    /// `=`: the values are equal.
    Equal,
    /// `!=`: the values are different.
    NotEqual,
    /// `=~`: the regular expression matches the whole value; its dot also matches a newline.
    Regex,
    /// `!~`: the regular expression does not match the whole value.
    NotRegex,
}

impl MatchOp {
    /// Returns the sign of the operator in PromQL.
    pub fn name(self) -> &'static str {
        match self {
            MatchOp::Equal => "=",
            MatchOp::NotEqual => "!=",
            MatchOp::Regex => "=~",
            MatchOp::NotRegex => "!~",
        }
    }
}

//! How conditions on labels compare, as PromQL and remote read write them.

/// How a label's value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`, anchored at both ends; the dot matches a newline, too
    Regex,
    /// `!~`
    NotRegex,
}

impl MatchOp {
    /// Its sign.
    pub fn name(self) -> &'static str {
        match self {
            MatchOp::Equal => "=",
            MatchOp::NotEqual => "!=",
            MatchOp::Regex => "=~",
            MatchOp::NotRegex => "!~",
        }
    }
}

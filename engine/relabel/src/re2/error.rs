//! What is wrong with an expression, in the words of Go's package.

use std::fmt;

/// Bytes of the expression's part that an error shows.
const PART_BYTES_MAX: usize = 200;

/// Why an expression cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {wrong}: `{part}`")]
pub struct SyntaxError {
    /// What is wrong.
    pub wrong: Wrong,
    /// Which part of the expression is, or its beginning.
    pub part: String,
}

impl SyntaxError {
    pub(super) fn new(wrong: Wrong, part: &str) -> SyntaxError {
        let end = part.floor_char_boundary(PART_BYTES_MAX);
        let more = if end < part.len() { "…" } else { "" };
        SyntaxError { wrong, part: format!("{}{more}", &part[..end]) }
    }
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A class such as `[z-a]`, `[[:none:]]` or `\p{None}`.
    ClassRange,
    /// `\<`
    Escape,
    /// `(?P<a b>x)`
    GroupName,
    /// `(?=x)`
    PerlSyntax,
    /// `a**`
    NestedRepetition,
    /// `a{1001}`, `a{2,1}`
    RepeatCount,
    /// `[a`
    ClassNotClosed,
    /// `(a`
    GroupNotClosed,
    /// `*a`
    NothingToRepeat,
    /// `a\`
    LastBackslash,
    /// `a)`
    GroupNotOpened,
    /// Groups in groups.
    TooDeep,
    /// More than may be kept or compiled.
    TooLarge,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wrong::ClassRange => "invalid character class range",
            Wrong::Escape => "invalid escape sequence",
            Wrong::GroupName => "invalid named capture",
            Wrong::PerlSyntax => "invalid or unsupported Perl syntax",
            Wrong::NestedRepetition => "invalid nested repetition operator",
            Wrong::RepeatCount => "invalid repeat count",
            Wrong::ClassNotClosed => "missing closing ]",
            Wrong::GroupNotClosed => "missing closing )",
            Wrong::NothingToRepeat => "missing argument to repetition operator",
            Wrong::LastBackslash => "trailing backslash at end of expression",
            Wrong::GroupNotOpened => "unexpected )",
            Wrong::TooDeep => "expression nests too deeply",
            Wrong::TooLarge => "expression too large",
        })
    }
}

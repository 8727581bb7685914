//! Syntax errors with the texts of Go's package `regexp/syntax`.

use std::fmt;

/// Maximum bytes of the expression's part that an error shows.
const PART_BYTES_MAX: usize = 200;

/// Reason for which an expression cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {wrong}: `{part}`")]
pub struct SyntaxError {
    pub wrong: Wrong,
    /// Part of the expression that is wrong, shortened.
    pub part: String,
}

impl SyntaxError {
    pub(super) fn new(wrong: Wrong, part: &str) -> SyntaxError {
        let end = part.floor_char_boundary(PART_BYTES_MAX);
        let more = if end < part.len() { "…" } else { "" };
        SyntaxError { wrong, part: format!("{}{more}", &part[..end]) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A class such as `[z-a]`, `[[:none:]]` or `\p{None}`.
    ClassRange,
    Escape,
    GroupName,
    PerlSyntax,
    NestedRepetition,
    RepeatCount,
    ClassNotClosed,
    GroupNotClosed,
    NothingToRepeat,
    LastBackslash,
    GroupNotOpened,
    TooDeep,
    /// Exceeds the limits of parsing or compilation.
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

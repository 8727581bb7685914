//! Errors of the parser and of the type check.

use super::Span;
use std::fmt;

/// A syntax or type error. Prints as upstream does: `1:5: parse error: ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Position of the part that is wrong.
    pub span: Span,
    /// Description of the error without its position.
    pub text: String,
    /// Line and column of the position, from 1; `None` for an empty text.
    pub position: Option<(u32, u32)>,
}

impl ParseError {
    pub(super) fn new(span: Span, text: impl Into<String>, input: &str) -> ParseError {
        let position = (!input.is_empty()).then(|| span.line_and_column(input));
        ParseError { span, text: text.into(), position }
    }
}

impl Span {
    /// Returns line and column of the first byte, both from 1; columns count bytes.
    pub fn line_and_column(self, text: &str) -> (u32, u32) {
        let before = &text.as_bytes()[..(self.start as usize).min(text.len())];
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        (lines as u32 + 1, (before.len() - line_start) as u32 + 1)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => write!(f, "{line}:{column}: parse error: {}", self.text),
            None => write!(f, "unknown position: parse error: {}", self.text),
        }
    }
}

impl std::error::Error for ParseError {}

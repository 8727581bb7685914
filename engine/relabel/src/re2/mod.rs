//! Parser of regular expressions in RE2's syntax, as Go's package `regexp/syntax` with its flags
//! `Perl`. All expressions that users write are parsed here.
//!
//! The result is the tree that `regex-automata` compiles. This library's syntax differs too much
//! for a translation of the text: here a lone `{` is a letter, an escape such as `\<` or a
//! repetition such as `a**` is an error, `\w` and `\b` are ASCII only, a class has no operators,
//! and `(?U)` or `(?x)` mean other things.
//!
//! Differences from Go: expressions nest at most [`NESTING_MAX`] deep (Go: 1000), because the
//! compiler recurses on the small stack of a sandbox; scripts also have short names and names of
//! several words; the tables are those of a newer Unicode.
//!
//! Sources: RE2's page "Syntax", and the behaviour of Go's package, with which `tests/re2.rs`
//! compares.

mod class;
mod cursor;
mod error;
mod escape;
mod parser;

pub use error::{SyntaxError, Wrong};

use regex_syntax::hir::{Hir, HirKind};

/// Maximum nesting of an expression.
pub const NESTING_MAX: u32 = 250;

/// Maximum product of the counts of nested repetitions, as in Go.
const REPEATS_MAX: u32 = 1000;

/// Set of characters that a dot matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dot {
    /// Any character, as in matchers and rules.
    Any,
    /// Any character but a newline.
    NoNewline,
}

#[derive(Debug)]
pub struct Parsed {
    /// Tree to compile. Its groups have numbers but no names: Go allows a name to occur twice.
    pub hir: Hir,
    /// Names of groups with their numbers, in the order of the opening parentheses.
    pub names: Vec<(String, usize)>,
}

/// Parses one expression on its own, so that `a)(b` cannot close an enclosing group.
pub fn parse(expression: &str, dot: Dot) -> Result<Parsed, SyntaxError> {
    parser::Parser::new(expression, dot).parsed().map_err(|error| match error.wrong {
        Wrong::TooLarge => SyntaxError::new(error.wrong, expression),
        _ => error,
    })
}

/// Returns whether an expression matches an empty text.
pub fn takes_empty(hir: &Hir) -> bool {
    use regex_syntax::hir::Look;
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Literal(_) | HirKind::Class(_) => false,
        // An empty text has no word boundary; all other assertions hold in it.
        HirKind::Look(look) => !matches!(look, Look::WordAscii),
        HirKind::Repetition(repeated) => repeated.min == 0 || takes_empty(&repeated.sub),
        HirKind::Capture(group) => takes_empty(&group.sub),
        HirKind::Concat(parts) => parts.iter().all(takes_empty),
        HirKind::Alternation(branches) => branches.iter().any(takes_empty),
    }
}

#[cfg(test)]
mod tests;

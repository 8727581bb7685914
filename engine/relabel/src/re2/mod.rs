//! Regular expressions in RE2's syntax, as Go's package `regexp/syntax` reads them with its flags
//! `Perl`: the one reader of all expressions that users write.
//!
//! It builds what `regex-automata` compiles. The library's own syntax differs in more than a
//! translation of the text could mend: `{` alone is a letter here, an escape such as `\<` or a
//! repetition such as `a**` is an error, `\w` and `\b` know ASCII alone, a class has no operators,
//! and `(?U)` or `(?x)` mean other things.
//!
//! Where it differs from Go: expressions nest at most [`NESTING_MAX`] deep (Go: 1000), because what
//! compiles them recurses on the small stack of a sandbox; scripts have their short names and those
//! of several words, too; and the tables are those of a newer Unicode.
//!
//! Sources: RE2's page "Syntax", and the behaviour of Go's package, which `tests/re2.rs` compares
//! with.

mod class;
mod cursor;
mod error;
mod escape;
mod parser;

pub use error::{SyntaxError, Wrong};

use regex_syntax::hir::{Hir, HirKind};

/// How deep an expression may be nested.
pub const NESTING_MAX: u32 = 250;

/// How often the innermost part of nested repetitions may be repeated.
const REPEATS_MAX: u32 = 1000;

/// What a dot matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dot {
    /// Any character, as in matchers and rules.
    Any,
    /// Any but a newline.
    NoNewline,
}

/// An expression that was read.
#[derive(Debug)]
pub struct Parsed {
    /// What is compiled. Its groups have numbers and no names: Go allows names that come twice.
    pub hir: Hir,
    /// Names of groups, with their numbers, in the order in which they begin.
    pub names: Vec<(String, usize)>,
}

/// Reads an expression by itself, so that one like `a)(b` cannot close a group around it.
pub fn parse(expression: &str, dot: Dot) -> Result<Parsed, SyntaxError> {
    parser::Parser::new(expression, dot).parsed().map_err(|error| match error.wrong {
        Wrong::TooLarge => SyntaxError::new(error.wrong, expression),
        _ => error,
    })
}

/// Whether an expression matches the empty text if that is all there is.
pub fn takes_empty(hir: &Hir) -> bool {
    use regex_syntax::hir::Look;
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Literal(_) | HirKind::Class(_) => false,
        HirKind::Look(look) => !matches!(look, Look::WordAscii),
        HirKind::Repetition(repeated) => repeated.min == 0 || takes_empty(&repeated.sub),
        HirKind::Capture(group) => takes_empty(&group.sub),
        HirKind::Concat(parts) => parts.iter().all(takes_empty),
        HirKind::Alternation(branches) => branches.iter().any(takes_empty),
    }
}

#[cfg(test)]
mod tests;

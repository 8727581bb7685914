//! A single expression that matches whole texts.

use crate::globs::Globs;
use crate::literals::{literals, text_bytes};
use crate::prefixes::{prefixes, takes_any_text};
use crate::re2::{self, Dot, Parsed};
use crate::{REGEX_BYTES_MAX, REGEX_COMPILED_BYTES_MAX};
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Hir, Look};

/// An expression in RE2's syntax that matches whole texts. Its dot matches a newline.
///
/// Most expressions are texts, or texts with gaps; such expressions are not compiled.
#[derive(Debug)]
pub struct Pattern(Kind);

#[derive(Debug)]
enum Kind {
    /// An alternation of fixed strings, sorted.
    AnyOf(Vec<String>),
    Anything,
    Something,
    Other {
        test: Test,
        /// Every match begins with one of these prefixes.
        prefixes: Option<Vec<String>>,
    },
}

#[derive(Debug)]
enum Test {
    Globs(Globs),
    Regex(Box<Regex>),
}

impl Pattern {
    /// Parses an expression, and compiles it if necessary. The error describes what is wrong.
    pub fn new(expression: &str) -> Result<Pattern, String> {
        Pattern::with_limit(expression, REGEX_COMPILED_BYTES_MAX)
    }

    /// Like [`Pattern::new`]; also fails if the compiled expression needs more memory than
    /// `compiled_bytes_max`.
    pub fn with_limit(expression: &str, compiled_bytes_max: usize) -> Result<Pattern, String> {
        let hir = read(expression, Dot::Any)?.hir;
        // Cheap forms come first; the compiled expression is the last resort.
        if let Some(mut values) = literals(&hir) {
            values.sort_unstable();
            values.dedup();
            return Ok(Pattern(Kind::AnyOf(values)));
        }
        match takes_any_text(&hir) {
            Some(0) => return Ok(Pattern(Kind::Anything)),
            Some(_) => return Ok(Pattern(Kind::Something)),
            None => {}
        }
        let prefixes = prefixes(&hir);
        let test = match Globs::of(&hir) {
            Some(globs) => Test::Globs(globs),
            None => {
                // Groups are not needed, and finding them takes memory and time for each group.
                let regex = anchored(hir, compiled_bytes_max, WhichCaptures::Implicit)?;
                Test::Regex(Box::new(regex))
            }
        };
        Ok(Pattern(Kind::Other { test, prefixes }))
    }

    /// Returns whether the whole text matches.
    pub fn is_match(&self, text: &str) -> bool {
        match &self.0 {
            Kind::AnyOf(wanted) => wanted.binary_search_by(|w| w.as_str().cmp(text)).is_ok(),
            Kind::Anything => true,
            Kind::Something => !text.is_empty(),
            Kind::Other { test: Test::Globs(globs), .. } => globs.is_match(text),
            Kind::Other { test: Test::Regex(regex), .. } => regex.is_match(text),
        }
    }

    /// Returns whether every text matches.
    pub fn takes_all(&self) -> bool {
        matches!(self.0, Kind::Anything)
    }

    /// Returns the only texts that match, ascending, if they are few and known.
    pub fn literals(&self) -> Option<&[String]> {
        match &self.0 {
            Kind::AnyOf(values) => Some(values),
            Kind::Anything | Kind::Something | Kind::Other { .. } => None,
        }
    }

    /// Returns prefixes of all matching texts, ascending; no prefix begins with another prefix. An
    /// empty prefix means that nothing is known.
    pub fn prefixes(&self) -> &[String] {
        const UNKNOWN: &[String] = &[String::new()];
        match &self.0 {
            Kind::Other { prefixes: Some(prefixes), .. } => prefixes,
            _ => UNKNOWN,
        }
    }

    /// Returns the memory of the pattern in bytes.
    pub fn bytes(&self) -> usize {
        let texts = |texts: &[String]| size_of_val(texts) + text_bytes(texts);
        match &self.0 {
            Kind::AnyOf(values) => texts(values),
            Kind::Anything | Kind::Something => 0,
            Kind::Other { test, prefixes } => {
                let test = match test {
                    Test::Globs(globs) => globs.bytes(),
                    Test::Regex(regex) => regex.memory_usage(),
                };
                test + prefixes.as_deref().map_or(0, texts)
            }
        }
    }
}

/// Parses an expression of limited length. The error describes what is wrong.
pub(crate) fn read(expression: &str, dot: Dot) -> Result<Parsed, String> {
    if expression.len() > REGEX_BYTES_MAX {
        return Err(format!("error parsing regexp: it has more than {REGEX_BYTES_MAX} bytes"));
    }
    re2::parse(expression, dot).map_err(|error| error.to_string())
}

/// Compiles an expression that has to match whole texts.
pub(crate) fn anchored(
    hir: Hir,
    compiled_bytes_max: usize,
    groups: WhichCaptures,
) -> Result<Regex, String> {
    // Anchors are added to the tree, not to the text, in which `a|b` would need a group.
    let anchored = Hir::concat(vec![Hir::look(Look::Start), hir, Hir::look(Look::End)]);
    compiled(&anchored, compiled_bytes_max, groups)
}

pub(crate) fn compiled(
    hir: &Hir,
    compiled_bytes_max: usize,
    groups: WhichCaptures,
) -> Result<Regex, String> {
    let config = Regex::config().nfa_size_limit(Some(compiled_bytes_max)).which_captures(groups);
    let regex = Regex::builder().configure(config).build_from_hir(hir);
    regex.map_err(|error| format!("error parsing regexp: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_texts_match() {
        let expression = "(?P<head>a.)(b|)";
        let pattern = Pattern::new(expression).expect("an expression");
        assert!(pattern.is_match("a\nb") && !pattern.is_match("xa-b"));
        for wrong in ["(", "a)(b"] {
            assert!(Pattern::new(wrong).is_err(), "{wrong}");
        }
        assert!(Pattern::with_limit("[a-z]{100}", 1000).is_err());
    }
}

//! Expressions that match anywhere in bytes, which need not be UTF-8, as in Go.

use crate::REGEX_COMPILED_BYTES_MAX;
use crate::pattern::{compiled, read};
use crate::re2::Dot;
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::WhichCaptures;
use std::borrow::Cow;

/// An expression in RE2's syntax that matches anywhere. Its dot does not match a newline.
#[derive(Clone, Debug)]
pub struct Search(Regex);

impl Search {
    /// Compiles an expression. The error describes what is wrong.
    pub fn new(expression: &str) -> Result<Search, String> {
        let hir = read(expression, Dot::NoNewline)?.hir;
        compiled(&hir, REGEX_COMPILED_BYTES_MAX, WhichCaptures::Implicit).map(Search)
    }

    /// Returns whether the expression matches anywhere. Bytes that are not UTF-8 count as U+FFFD.
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        // `Regex::is_match` (0.4.18) stops at the first end of a match, which may be an empty match
        // of `\B` within a character. It then returns false, even if an earlier match exists.
        self.0.find(&*text(bytes)).is_some()
    }
}

/// Returns the bytes as text, with one U+FFFD for each byte that is not UTF-8.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_matches_anywhere_in_bytes() {
        let search = |text: &str| Search::new(text).expect("an expression");
        assert!(search("b.d").is_match(b"abcde"));
        assert!(!search("^b").is_match(b"abcde"));
        assert!(!search("b.d").is_match(b"b\nd"));
        assert!(search("(?i)OK$").is_match(b"\xff\xfe ok"));
        assert!(search("^a..b$").is_match(b"a\xe2\x82b"));
        assert!(search(r"x??[\pL-]{2}|\B").is_match("0ςb".as_bytes()));
        assert!(Search::new("(").is_err());
    }
}

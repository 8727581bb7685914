//! Regular expressions over headers and bodies, as Go has them: RE2's syntax, anywhere in the
//! bytes.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde::Deserialize;
use std::fmt;
use tidepool_relabel::re2::translated;

/// Largest compiled expression, in bytes.
const BYTES_MAX: usize = 10 << 20;

/// An expression.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    expression: String,
    regex: Regex,
}

impl Pattern {
    /// Whether it matches anywhere.
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        self.regex.is_match(bytes)
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(expression: String) -> Result<Pattern, String> {
        // Bytes that are no text match as bytes do.
        let regex = Regex::builder()
            .configure(Regex::config().utf8_empty(false).nfa_size_limit(Some(BYTES_MAX)))
            .syntax(syntax::Config::new().utf8(false))
            .build(&translated(&expression))
            .map_err(|error| match error.syntax_error() {
                Some(error) => format!("no regular expression: {error}"),
                None => format!("no regular expression: {error}"),
            })?;
        Ok(Pattern { expression, regex })
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.expression == other.expression
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.fmt(f)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_matches_anywhere_in_bytes() {
        let pattern = |text: &str| Pattern::try_from(text.to_owned()).expect("an expression");
        assert!(pattern("b.d").is_match(b"abcde"));
        assert!(!pattern("^b").is_match(b"abcde"));
        assert!(pattern("(?i)OK$").is_match(b"\xff\xfe ok"));
        assert!(Pattern::try_from("(".to_owned()).is_err());
    }
}

//! Regular expressions for headers and bodies. Syntax and semantics are those of Go's `regexp`
//! (RE2); a match may be anywhere in the bytes.

use serde::Deserialize;
use std::fmt;
use tidepool_relabel::Search;

#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    expression: String,
    search: Search,
}

impl Pattern {
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        self.search.is_match(bytes)
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(expression: String) -> Result<Pattern, String> {
        let wrong = |error| format!("no regular expression: {error}");
        let search = Search::new(&expression).map_err(wrong)?;
        Ok(Pattern { expression, search })
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

//! An expression by itself, for callers that match and replace as rules do.

use crate::{compiled, expanded};
use regex_automata::meta::Regex;

/// An expression in RE2's syntax that matches whole texts. Its dot matches a newline.
#[derive(Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles an expression. The error says what is wrong with it.
    pub fn new(expression: &str) -> Result<Pattern, String> {
        compiled(expression).map(Pattern)
    }

    /// Whether the whole text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.memory_usage()
    }

    /// The template with the groups of the match (`$1`, `${1}`, `$name`); none if the text does not
    /// match.
    pub fn replaced(&self, text: &str, template: &str) -> Option<String> {
        let mut captures = self.0.create_captures();
        self.0.captures(text, &mut captures);
        captures.is_match().then(|| expanded(&captures, text, template))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_texts_match() {
        let pattern = Pattern::new("(?P<head>a.)(b|)").expect("an expression");
        assert!(pattern.is_match("a\nb") && !pattern.is_match("xa-b"));
        assert_eq!(pattern.replaced("a-b", "$2${1}c$head").as_deref(), Some("ba-ca-"));
        assert_eq!(pattern.replaced("ab-", "$1"), None);
        assert!(Pattern::new("(").is_err());
    }
}

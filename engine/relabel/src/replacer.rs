//! An expression with groups that a template refers to, for rules and `label_replace`.

use crate::REGEX_COMPILED_BYTES_MAX;
use crate::pattern::{anchored, read};
use crate::re2::Dot;
use crate::template::insert_groups;
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::captures::Captures;

/// An expression that matches whole texts and finds its groups.
#[derive(Debug)]
pub struct Replacer {
    regex: Regex,
    /// Names of groups with their numbers; a name may occur twice.
    names: Vec<(String, usize)>,
}

impl Replacer {
    /// Compiles an expression. The error describes what is wrong.
    pub fn new(expression: &str) -> Result<Replacer, String> {
        let parsed = read(expression, Dot::Any)?;
        let regex = anchored(parsed.hir, REGEX_COMPILED_BYTES_MAX, WhichCaptures::All)?;
        Ok(Replacer { regex, names: parsed.names })
    }

    /// Returns the memory of the compiled expression in bytes.
    pub fn bytes(&self) -> usize {
        self.regex.memory_usage()
    }

    /// Returns the template with the groups of the match inserted (`$1`, `${1}`, `$name`); `None`
    /// if the text does not match as a whole.
    pub fn replaced(&self, text: &str, template: &str) -> Option<String> {
        let mut captures = self.captures();
        self.find(text, &mut captures).then(|| self.expanded(&captures, text, template))
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    pub(crate) fn captures(&self) -> Captures {
        self.regex.create_captures()
    }

    /// Returns whether the whole text matches, and records the groups.
    pub(crate) fn find(&self, text: &str, captures: &mut Captures) -> bool {
        self.regex.captures(text, captures);
        captures.is_match()
    }

    /// Returns a template with the groups of a match of `text` inserted.
    pub(crate) fn expanded(&self, captures: &Captures, text: &str, template: &str) -> String {
        let mut out = String::new();
        insert_groups(template, &self.names, captures, text, |piece| out.push_str(piece));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_replaced_by_number_and_by_name() {
        let replacer = Replacer::new("(?P<head>a.)(b|)").expect("an expression");
        assert_eq!(replacer.replaced("a-b", "$2${1}c$head").as_deref(), Some("ba-ca-"));
        assert_eq!(replacer.replaced("ab-", "$1"), None);
        let twice = Replacer::new("(?P<n>a)|(?<n>b)").expect("an expression");
        assert_eq!(twice.replaced("b", "<$n>").as_deref(), Some("<b>"));
    }
}

//! An expression whose matches in a text are replaced, for templates of alerts.

use crate::pattern::{compiled, read};
use crate::re2::Dot;
use crate::template::insert_groups;
use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::WhichCaptures;

/// An expression in RE2's syntax that matches anywhere, and finds its groups. Its dot does not
/// match a newline.
#[derive(Debug)]
pub struct Substitution {
    regex: Regex,
    /// Names of groups with their numbers; a name may occur twice.
    names: Vec<(String, usize)>,
}

impl Substitution {
    /// Compiles an expression to at most `compiled_bytes_max`. The error describes what is wrong.
    pub fn new(expression: &str, compiled_bytes_max: usize) -> Result<Substitution, String> {
        let parsed = read(expression, Dot::NoNewline)?;
        let regex = compiled(&parsed.hir, compiled_bytes_max, WhichCaptures::All)?;
        Ok(Substitution { regex, names: parsed.names })
    }

    /// Returns the memory of the compiled expression in bytes.
    pub fn bytes(&self) -> usize {
        self.regex.memory_usage()
    }

    pub fn is_match(&self, text: &str) -> bool {
        // As in `Search`: `Regex::is_match` may miss matches behind an empty one.
        self.regex.find(text).is_some()
    }

    /// Returns the text with every match replaced by the template (`$1`, `${1}`, `$name`), as Go's
    /// `ReplaceAllString`; `None` if the result has more than `bytes_max`.
    pub fn replaced(&self, text: &str, template: &str, bytes_max: usize) -> Option<String> {
        let mut captures = self.regex.create_captures();
        let mut input = Input::new(text);
        let mut out = String::new();
        // End of what is copied, and of the last match.
        let (mut copied, mut matched) = (0, None);
        loop {
            self.regex.search_captures(&input, &mut captures);
            let Some(found) = captures.get_match() else { break };
            // An empty match right behind another match counts as part of it.
            if !found.is_empty() || matched != Some(found.end()) {
                out.push_str(text.get(copied..found.start())?);
                insert_groups(template, &self.names, &captures, text, |piece| {
                    if out.len() <= bytes_max {
                        out.push_str(piece);
                    }
                });
                copied = found.end();
                matched = Some(found.end());
            }
            if out.len() > bytes_max {
                return None;
            }
            let next = match found.is_empty() {
                true => {
                    let letter = text.get(found.end()..).and_then(|rest| rest.chars().next());
                    let Some(letter) = letter else { break };
                    found.end() + letter.len_utf8()
                }
                false => found.end(),
            };
            input.set_start(next);
        }
        out.push_str(text.get(copied..)?);
        (out.len() <= bytes_max).then_some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from Go's `regexp`.
    #[test]
    fn matches_are_replaced_as_in_go() {
        for (expression, text, template, expected) in [
            ("(a)b", "ab", "x$1", "xa"),
            ("a*", "baaac", "-", "-b-c-"),
            ("", "añb", "-", "-a-ñ-b-"),
            ("^a", "aaa", "b", "baa"),
            (r"\bx", "xx x", "y", "yx y"),
            ("(?P<host>[^:]+):(?P<port>.*)", "a:1", "${port}-$host", "1-a"),
            ("(.*)", "ab", "<$1>", "<ab>"),
            ("(.*)", "a\nb", "<$1>", "<a>\n<b>"),
            ("x|", "axb", "$$1", "$1a$1b$1"),
            ("b", "aaa", "c", "aaa"),
            (r"\B", "äb", "|", "|äb"),
        ] {
            let found = Substitution::new(expression, 1 << 20).expect("an expression");
            let replaced = found.replaced(text, template, 100);
            assert_eq!(replaced.as_deref(), Some(expected), "{expression} {text}");
        }
    }

    #[test]
    fn results_are_bounded() {
        let all = Substitution::new("a", 1 << 20).expect("an expression");
        assert!(all.is_match("bab") && !all.is_match("b"));
        assert_eq!(all.replaced(&"a".repeat(10), "xxxxx", 50).map(|text| text.len()), Some(50));
        assert_eq!(all.replaced(&"a".repeat(10), "xxxxx", 49), None);
        assert!(Substitution::new("[a-z]{100}", 1000).is_err());
    }
}

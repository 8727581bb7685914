//! Label matchers, as PromQL and remote read use them.
//!
//! A missing label has the value of the empty string, so a matcher that matches the empty string
//! selects series without the label.

use tidepool_model::MatchOp;
use tidepool_relabel::{Pattern, REGEX_BYTES_MAX};

/// Memory limit in bytes of a regular expression that is compiled while other work waits.
const REGEX_SMALL_BYTES_MAX: usize = 64 * 1024;

/// A matcher as a client writes it, before its expression is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatcherSpec {
    /// Name of the label to compare.
    pub name: String,
    /// Operator that compares the label's value.
    pub op: MatchOp,
    /// The value, or the regular expression in RE2 syntax.
    pub value: String,
}

/// A compiled matcher of one label.
pub struct Matcher {
    name: String,
    negated: bool,
    test: Test,
}

/// Reasons why a matcher cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MatcherError {
    /// The expression does not parse, or is too large once compiled.
    #[error("invalid regular expression {expression:?} for label {name:?}: {reason}")]
    InvalidRegex {
        /// Name of the matcher's label.
        name: String,
        /// The expression as the client wrote it.
        expression: String,
        /// The parser's description of the fault.
        reason: String,
    },
    /// The expression is longer than [`REGEX_BYTES_MAX`].
    #[error(
        "the regular expression for label {name:?} has {bytes} bytes; at most {REGEX_BYTES_MAX} are allowed"
    )]
    RegexTooLong {
        /// Name of the matcher's label.
        name: String,
        /// Length of the expression in bytes.
        bytes: usize,
    },
}

enum Test {
    Literal(String),
    Pattern(Pattern),
}

impl Matcher {
    /// Compiles a matcher; fails if its expression is invalid or too large.
    pub fn new(spec: &MatcherSpec) -> Result<Matcher, MatcherError> {
        Matcher::compiled(spec, Pattern::new)
    }

    /// Compiles a matcher that needs little memory and time; fails if the matcher needs more.
    pub fn new_small(spec: &MatcherSpec) -> Result<Matcher, MatcherError> {
        Matcher::compiled(spec, |expression| Pattern::with_limit(expression, REGEX_SMALL_BYTES_MAX))
    }

    /// Returns whether an expression has neither Unicode classes nor flags, which take long to
    /// compile whatever the limit of memory is.
    pub fn is_quickly_compiled(expression: &str) -> bool {
        // `(?:` is a group without a flag.
        let has_flags = expression
            .match_indices("(?")
            .any(|(at, _)| !expression.get(at + 2..).is_some_and(|rest| rest.starts_with(':')));
        !has_flags && !expression.contains("\\p") && !expression.contains("\\P")
    }

    fn compiled(
        spec: &MatcherSpec,
        compile: impl FnOnce(&str) -> Result<Pattern, String>,
    ) -> Result<Matcher, MatcherError> {
        let (negated, regex) = match spec.op {
            MatchOp::Equal => (false, false),
            MatchOp::NotEqual => (true, false),
            MatchOp::Regex => (false, true),
            MatchOp::NotRegex => (true, true),
        };
        let MatcherSpec { name, value, .. } = spec;
        let test = if !regex {
            Test::Literal(value.clone())
        // The length is checked first, because parsing itself needs memory.
        } else if value.len() > REGEX_BYTES_MAX {
            return Err(MatcherError::RegexTooLong { name: name.clone(), bytes: value.len() });
        } else {
            let pattern = compile(value).map_err(|reason| MatcherError::InvalidRegex {
                name: name.clone(),
                expression: value.clone(),
                reason,
            })?;
            Test::Pattern(pattern)
        };
        Ok(Matcher { name: name.clone(), negated, test })
    }

    /// Estimates the memory of the matcher, in bytes.
    pub fn bytes(&self) -> usize {
        let test = match &self.test {
            Test::Literal(value) => value.len(),
            Test::Pattern(pattern) => pattern.bytes(),
        };
        size_of::<Matcher>() + self.name.len() + test
    }

    /// Returns the name of the matcher's label.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether a label with this value is selected; the empty string is a missing label.
    pub fn matches(&self, value: &str) -> bool {
        self.holds(value) != self.negated
    }

    /// Returns whether series without the label are selected.
    pub fn matches_empty(&self) -> bool {
        self.matches("")
    }

    /// Returns whether the operator is `!=` or `!~`.
    pub fn is_negated(&self) -> bool {
        self.negated
    }

    /// Returns the only values that [`Matcher::holds`] accepts, if they are few and known; then no
    /// scan over values is needed. A negated matcher selects all *other* values.
    pub fn literals(&self) -> Option<&[String]> {
        match &self.test {
            Test::Literal(value) => Some(std::slice::from_ref(value)),
            Test::Pattern(pattern) => pattern.literals(),
        }
    }

    /// Returns prefixes of all values that [`Matcher::holds`] accepts, ascending. No prefix begins
    /// with another. An empty prefix means that nothing is known.
    pub fn prefixes(&self) -> &[String] {
        match &self.test {
            Test::Literal(value) => std::slice::from_ref(value),
            Test::Pattern(pattern) => pattern.prefixes(),
        }
    }

    /// Returns whether a matcher selects all series or none; `None` if this depends on the value.
    pub fn constant(&self) -> Option<bool> {
        match &self.test {
            Test::Pattern(pattern) if pattern.takes_all() => Some(!self.negated),
            // No series has a label without a name.
            _ if self.name.is_empty() => Some(self.matches_empty()),
            _ => None,
        }
    }

    /// Returns whether `value` satisfies the comparison without its negation.
    pub fn holds(&self, value: &str) -> bool {
        match &self.test {
            Test::Literal(wanted) => wanted == value,
            Test::Pattern(pattern) => pattern.is_match(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(op: MatchOp, value: &str) -> Matcher {
        let spec = MatcherSpec { name: "x".into(), op, value: value.into() };
        Matcher::new(&spec).expect("valid matcher")
    }

    #[test]
    fn absence_is_the_empty_string() {
        assert!(matcher(MatchOp::Equal, "").matches_empty());
        assert!(matcher(MatchOp::NotEqual, "a").matches_empty());
        assert!(matcher(MatchOp::Regex, ".*").matches_empty());
        assert!(matcher(MatchOp::Regex, "|a").matches_empty());
        assert!(!matcher(MatchOp::Regex, ".+").matches_empty());
        assert!(!matcher(MatchOp::NotRegex, "|a").matches_empty());
    }

    #[test]
    fn regexes_are_anchored_and_the_dot_matches_newlines() {
        let regex = matcher(MatchOp::Regex, "a.c");
        assert!(regex.matches("a\nc"));
        assert!(!regex.matches("abcd") && !regex.matches("xabc"));
        assert!(matcher(MatchOp::Regex, "foo|bar.*").matches("barista"));
        assert!(!matcher(MatchOp::Regex, "foo|bar.*").matches("food"));
    }

    /// Like RE2's, which upstream uses.
    #[test]
    fn classes_of_perl_are_ascii() {
        let digits = matcher(MatchOp::Regex, r"\d+");
        assert!(digits.matches("42") && !digits.matches("٤٢"));
        let word = matcher(MatchOp::Regex, r".*\bé\W");
        assert!(word.matches("aé ") && !word.matches(" é "));
    }

    #[test]
    fn fixed_alternations_become_literal_sets() {
        let regex = matcher(MatchOp::Regex, "node-(a|b)[12]");
        assert_eq!(regex.literals().map(<[String]>::len), Some(4));
        assert!(regex.matches("node-b2") && !regex.matches("node-b3"));
        let folded = matcher(MatchOp::Regex, "(?i)ab");
        assert!(folded.matches("aB") && folded.matches("AB") && !folded.matches("ac"));
        assert!(matcher(MatchOp::Regex, "a+").literals().is_none());
    }

    #[test]
    fn alternations_of_any_length_are_literals_and_products_are_not() {
        let names: Vec<String> = (0..8_000).map(|number| format!("n{number}")).collect();
        let all = matcher(MatchOp::Regex, &names.join("|"));
        assert_eq!(all.literals().map(<[String]>::len), Some(8_000));
        assert!(all.matches("n7999") && !all.matches("n8000"));
        // Few strings, but long ones: 676 of 50 kB.
        let long = matcher(MatchOp::Regex, &format!("[a-z][a-z]{}", "x".repeat(50_000)));
        assert!(long.literals().is_none());
        let product = matcher(MatchOp::Regex, "[a-z][a-z][a-z][a-z]");
        assert!(product.literals().is_none() && product.matches("abcd"));
    }

    #[test]
    fn bad_expressions_say_what_is_wrong() {
        for bad in ["(", "a)(b", "[z-a]", "a{2,1}", r"(?P<n>a)\1"] {
            let spec = MatcherSpec { name: "x".into(), op: MatchOp::Regex, value: bad.into() };
            let error = Matcher::new(&spec).err().expect("must be refused").to_string();
            assert!(error.contains("label \"x\""), "{error}");
        }
        let bomb =
            MatcherSpec { name: "x".into(), op: MatchOp::Regex, value: r"(\w{1000}){1000}".into() };
        assert!(Matcher::new(&bomb).is_err());
    }

    /// Regression: groups of an expression were captured for each value; 5,000 took a second per
    /// value.
    #[test]
    fn groups_of_large_expressions_cost_nothing() {
        let alternatives: Vec<String> = (0..5_000).map(|n| format!("(x{n}.+|y)z")).collect();
        let regex = matcher(MatchOp::Regex, &alternatives.join("|"));
        let begun = std::time::Instant::now();
        for number in 0..100 {
            assert!(regex.matches(&format!("x{number}-z")));
            assert!(!regex.matches(&format!("metric_number_{number}_total")));
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}

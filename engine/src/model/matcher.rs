//! Label matchers, as PromQL and remote read use them.
//!
//! A missing label is the empty string: it is the matcher, not the label's presence, that decides
//! whether a series without the label is selected.

use super::prefixes::{prefixes, takes_any_text};
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::syntax;
use regex_syntax::hir::{Hir, HirKind};
use tidepool_relabel::re2;

/// Longest regular expression that is compiled, in bytes.
pub const REGEX_BYTES_MAX: usize = 64 * 1024;

/// Memory that one compiled regular expression may take, in bytes.
const REGEX_COMPILED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The same for an expression that is compiled while others wait.
const REGEX_SMALL_BYTES_MAX: usize = 64 * 1024;

/// Memory of the literal values that a regular expression is unfolded into, in bytes: room for any
/// alternation of fixed strings that is not too long as an expression.
const REGEX_LITERALS_BYTES_MAX: usize = 1024 * 1024;

/// The four ways to compare a label's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`, anchored at both ends; the dot matches a newline too.
    Regex,
    /// `!~`
    NotRegex,
}

/// A matcher as a client writes it, before its expression is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatcherSpec {
    /// The label's name.
    pub name: String,
    /// How its value is compared.
    pub op: MatchOp,
    /// The value or regular expression (RE2 syntax).
    pub value: String,
}

/// A matcher ready for use.
pub struct Matcher {
    name: String,
    negated: bool,
    test: Test,
}

/// Why a matcher cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MatcherError {
    /// The expression does not parse, or is too large once compiled.
    #[error("invalid regular expression {expression:?} for label {name:?}: {reason}")]
    InvalidRegex {
        /// The label it was meant for.
        name: String,
        /// The expression as given.
        expression: String,
        /// The parser's error.
        reason: String,
    },
    /// The expression is longer than [`REGEX_BYTES_MAX`].
    #[error(
        "the regular expression for label {name:?} has {bytes} bytes; at most {REGEX_BYTES_MAX} are allowed"
    )]
    RegexTooLong {
        /// The label it was meant for.
        name: String,
        /// Its length.
        bytes: usize,
    },
}

enum Test {
    Literal(String),
    /// An expression that is only an alternation of fixed strings, sorted.
    AnyOf(Vec<String>),
    /// `.*`
    Anything,
    /// `.+`
    Something,
    Regex {
        regex: Box<Regex>,
        /// Every match begins with one of these.
        prefixes: Option<Vec<String>>,
    },
}

impl Matcher {
    /// Compiles a matcher.
    pub fn new(spec: &MatcherSpec) -> Result<Matcher, MatcherError> {
        Matcher::compiled(spec, REGEX_COMPILED_BYTES_MAX)
    }

    /// Compiles a matcher that takes little memory and time; an error for all others.
    pub fn new_small(spec: &MatcherSpec) -> Result<Matcher, MatcherError> {
        Matcher::compiled(spec, REGEX_SMALL_BYTES_MAX)
    }

    /// Whether an expression has no classes of Unicode and no flags, which take long to compile
    /// whatever they are compiled into.
    pub fn is_quickly_compiled(expression: &str) -> bool {
        let has_flags = expression
            .match_indices("(?")
            .any(|(at, _)| !expression.get(at + 2..).is_some_and(|rest| rest.starts_with(':')));
        !has_flags && !expression.contains("\\p") && !expression.contains("\\P")
    }

    fn compiled(spec: &MatcherSpec, compiled_bytes_max: usize) -> Result<Matcher, MatcherError> {
        let (negated, regex) = match spec.op {
            MatchOp::Equal => (false, false),
            MatchOp::NotEqual => (true, false),
            MatchOp::Regex => (false, true),
            MatchOp::NotRegex => (true, true),
        };
        let test = if regex {
            compile(&spec.name, &spec.value, compiled_bytes_max)?
        } else {
            Test::Literal(spec.value.clone())
        };
        Ok(Matcher { name: spec.name.clone(), negated, test })
    }

    /// Memory that it takes, roughly.
    pub fn bytes(&self) -> usize {
        let texts = |texts: &[String]| size_of_val(texts) + text_bytes(texts);
        let test = match &self.test {
            Test::Literal(value) => value.len(),
            Test::AnyOf(values) => texts(values),
            Test::Anything | Test::Something => 0,
            Test::Regex { regex, prefixes } => {
                regex.memory_usage() + prefixes.as_deref().map_or(0, texts)
            }
        };
        size_of::<Matcher>() + self.name.len() + test
    }

    /// The label this looks at.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a label with this value is selected; the empty string stands for no label.
    pub fn matches(&self, value: &str) -> bool {
        self.holds(value) != self.negated
    }

    /// Whether series without the label are selected.
    pub fn matches_empty(&self) -> bool {
        self.matches("")
    }

    /// Whether this says which values are wanted (`=`, `=~`), not which are not.
    pub fn is_negated(&self) -> bool {
        self.negated
    }

    /// The only values that can hold, where they are few and known: no scan over a label's values
    /// is needed then. For a negated matcher these are the values that are *not* selected.
    pub fn literals(&self) -> Option<&[String]> {
        match &self.test {
            Test::Literal(value) => Some(std::slice::from_ref(value)),
            Test::AnyOf(values) => Some(values),
            Test::Anything | Test::Something | Test::Regex { .. } => None,
        }
    }

    /// Every value that holds begins with one of these: ascending, none begins with another. With
    /// an empty prefix nothing is known.
    pub fn prefixes(&self) -> &[String] {
        const UNKNOWN: &[String] = &[String::new()];
        match &self.test {
            Test::Literal(value) => std::slice::from_ref(value),
            Test::Regex { prefixes: Some(prefixes), .. } => prefixes,
            _ => UNKNOWN,
        }
    }

    /// For a matcher that looks at no value: whether it selects all series or none.
    pub fn constant(&self) -> Option<bool> {
        match &self.test {
            Test::Anything => Some(!self.negated),
            // No series has a label without a name.
            _ if self.name.is_empty() => Some(self.matches_empty()),
            _ => None,
        }
    }

    /// Whether `value` satisfies the un-negated comparison.
    pub fn holds(&self, value: &str) -> bool {
        match &self.test {
            Test::Literal(wanted) => wanted == value,
            Test::AnyOf(wanted) => wanted.binary_search_by(|w| w.as_str().cmp(value)).is_ok(),
            Test::Anything => true,
            Test::Something => !value.is_empty(),
            Test::Regex { regex, .. } => regex.is_match(value),
        }
    }
}

fn compile(name: &str, expression: &str, compiled_bytes_max: usize) -> Result<Test, MatcherError> {
    if expression.len() > REGEX_BYTES_MAX {
        return Err(MatcherError::RegexTooLong { name: name.to_owned(), bytes: expression.len() });
    }
    let invalid = |reason: String| MatcherError::InvalidRegex {
        name: name.to_owned(),
        expression: expression.to_owned(),
        reason,
    };
    // The expression is parsed alone first, so that one like `a)(b` cannot close our group.
    let syntax = syntax::Config::new().dot_matches_new_line(true);
    let hir = syntax::parse_with(&re2::translated(expression), &syntax);
    let hir = hir.map_err(|e| invalid(e.to_string()))?;
    if let Some(mut values) = literals(&hir) {
        values.sort_unstable();
        values.dedup();
        return Ok(Test::AnyOf(values));
    }
    match takes_any_text(&hir) {
        Some(0) => return Ok(Test::Anything),
        Some(_) => return Ok(Test::Something),
        None => {}
    }
    let prefixes = prefixes(&hir);
    let anchored = Hir::concat(vec![
        Hir::look(regex_syntax::hir::Look::Start),
        hir,
        Hir::look(regex_syntax::hir::Look::End),
    ]);
    // No one asks what groups match; to find it takes memory and time for each of them.
    let config = Regex::config()
        .nfa_size_limit(Some(compiled_bytes_max))
        .which_captures(WhichCaptures::Implicit);
    let regex = Regex::builder().configure(config).build_from_hir(&anchored);
    let regex = Box::new(regex.map_err(|e| invalid(e.to_string()))?);
    Ok(Test::Regex { regex, prefixes })
}

/// Unfolds an expression into the strings it matches, if those are few and fixed.
fn literals(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Empty => Some(vec![String::new()]),
        HirKind::Literal(literal) => Some(vec![String::from_utf8(literal.0.to_vec()).ok()?]),
        HirKind::Capture(capture) => literals(&capture.sub),
        HirKind::Class(class) => {
            let regex_syntax::hir::Class::Unicode(class) = class else { return None };
            let chars = class.iter().map(|range| range.len()).sum::<usize>();
            if chars > 64 {
                return None;
            }
            Some(class.iter().flat_map(|r| r.start()..=r.end()).map(String::from).collect())
        }
        HirKind::Concat(parts) => {
            let mut all = vec![String::new()];
            for part in parts {
                let tails = literals(part)?;
                let count = all.len().checked_mul(tails.len())?;
                let bytes = text_bytes(&all)
                    .checked_mul(tails.len())?
                    .checked_add(text_bytes(&tails).checked_mul(all.len())?)?;
                if !is_small(count, bytes) {
                    return None;
                }
                all =
                    all.iter().flat_map(|h| tails.iter().map(move |t| format!("{h}{t}"))).collect();
            }
            Some(all)
        }
        HirKind::Alternation(branches) => {
            let (mut all, mut count, mut bytes) = (Vec::new(), 0, 0);
            for branch in branches {
                let values = literals(branch)?;
                count += values.len();
                bytes += text_bytes(&values);
                if !is_small(count, bytes) {
                    return None;
                }
                all.extend(values);
            }
            Some(all)
        }
        HirKind::Repetition(_) | HirKind::Look(_) => None,
    }
}

fn text_bytes(values: &[String]) -> usize {
    values.iter().map(String::len).sum()
}

/// Whether so many strings of so many bytes together may be kept.
fn is_small(count: usize, bytes: usize) -> bool {
    let headers = count.saturating_mul(size_of::<String>());
    headers.saturating_add(bytes) <= REGEX_LITERALS_BYTES_MAX
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

    /// As RE2 has them, which upstream uses.
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

    /// Groups of an expression were found for each value, though no one asks for them: 5,000 of
    /// them took a second a value.
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

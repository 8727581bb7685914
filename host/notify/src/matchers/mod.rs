//! Matchers of labels, in Alertmanager's syntax.
//!
//! ```text
//! text ─┬─▶ utf8: names and values of any letters, Go's escapes ─┐
//!       └─▶ classic: the older syntax, values without quotes ────┴─▶ pieces ─▶ compiled matchers
//! ```
//!
//! A text is read by both parsers, as Alertmanager does without flags: the newer one decides,
//! except for a text that both read and understand differently, which keeps its older meaning.
//! Expressions match whole values; a label that is absent has an empty value. Unlike in
//! Alertmanager, the dot of an expression also matches a newline, as in PromQL.
//!
//! Source: prometheus/alertmanager, `matcher/compat`, `matcher/parse`, `pkg/labels`.

mod classic;
#[cfg(test)]
mod tests;
mod utf8;

use std::fmt;
use std::sync::Arc;
use tidepool_model::MatchOp;
use tidepool_relabel::Pattern;
use tidepool_rules::labels::LabelSet;

/// Maximum length of a text with matchers.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Maximum memory of one compiled expression: room for any that a person writes.
const COMPILED_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchersError {
    #[error("bad matcher format: {text} (column {column}: {what})")]
    Format {
        text: String,
        /// In characters, from 1.
        column: usize,
        what: &'static str,
    },
    #[error("matcher value contains unescaped double quote: {0}")]
    Quote(String),
    #[error("unexpected open or close brace: {0}")]
    Brace(String),
    #[error("expected 1 matcher, found {0}")]
    Count(usize),
    #[error("invalid label name {0:?}")]
    Name(String),
    #[error("invalid regular expression {value:?}: {why}")]
    Expression { value: String, why: String },
    #[error("matchers of {bytes} bytes; at most {TEXT_BYTES_MAX} are allowed")]
    TooLong { bytes: usize },
}

/// What a label's value must be, or must not be. Clones share the compiled expression.
#[derive(Clone)]
pub struct Matcher {
    name: Arc<str>,
    op: MatchOp,
    value: Arc<str>,
    /// Of an operator with an expression.
    pattern: Option<Arc<Pattern>>,
}

/// Matchers of which all must match. None match everything.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Matchers(Arc<[Matcher]>);

/// A matcher that is read, but not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    name: String,
    op: MatchOp,
    value: String,
}

impl Matchers {
    /// Parses one matcher, or a list of matchers with or without braces.
    pub fn parse(text: &str) -> Result<Matchers, MatchersError> {
        check_length(text)?;
        let matchers = decide(text, utf8::pieces(text), classic::pieces(text))?;
        Ok(Matchers::of(matchers))
    }

    pub fn of(matchers: impl IntoIterator<Item = Matcher>) -> Matchers {
        Matchers(matchers.into_iter().collect())
    }

    pub fn matches(&self, labels: &LabelSet) -> bool {
        self.iter().all(|matcher| matcher.matches(labels.get(&matcher.name)))
    }

    /// Returns whether a matcher demands a value of this label: one with `=` or `=~` that does not
    /// also match alerts without the label.
    pub fn asks_for(&self, name: &str) -> bool {
        let demands = |op| matches!(op, MatchOp::Equal | MatchOp::Regex);
        self.iter()
            .any(|matcher| &*matcher.name == name && demands(matcher.op) && !matcher.matches(""))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Matcher> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the memory of compiled expressions.
    pub fn compiled_bytes(&self) -> usize {
        let patterns = self.iter().filter_map(|matcher| matcher.pattern.as_deref());
        patterns.map(Pattern::bytes).sum()
    }
}

impl Matcher {
    pub fn new(op: MatchOp, name: &str, value: &str) -> Result<Matcher, MatchersError> {
        if name.is_empty() {
            return Err(MatchersError::Name(name.to_owned()));
        }
        let bytes = name.len().max(value.len());
        if bytes > TEXT_BYTES_MAX {
            return Err(MatchersError::TooLong { bytes });
        }
        let pattern = match op {
            MatchOp::Equal | MatchOp::NotEqual => None,
            MatchOp::Regex | MatchOp::NotRegex => {
                let pattern = Pattern::with_limit(value, COMPILED_BYTES_MAX);
                let failed = |why| MatchersError::Expression { value: value.to_owned(), why };
                Some(Arc::new(pattern.map_err(failed)?))
            }
        };
        Ok(Matcher { name: name.into(), op, value: value.into(), pattern })
    }

    /// Parses one matcher without braces.
    pub fn parse(text: &str) -> Result<Matcher, MatchersError> {
        check_length(text)?;
        if text.starts_with('{') || text.ends_with('}') {
            return Err(MatchersError::Brace(text.to_owned()));
        }
        let only = |pieces: Vec<Piece>| match pieces.len() {
            1 => Ok(pieces),
            found => Err(MatchersError::Count(found)),
        };
        let read = utf8::pieces(text).and_then(only);
        let mut matchers = decide(text, read, classic::piece(text).map(|piece| vec![piece]))?;
        matchers.pop().ok_or(MatchersError::Count(0))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn op(&self) -> MatchOp {
        self.op
    }

    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns whether a label's value matches; that of an absent label is empty.
    pub fn matches(&self, value: &str) -> bool {
        let is_match = match &self.pattern {
            Some(pattern) => pattern.is_match(value),
            None => *value == *self.value,
        };
        is_match != matches!(self.op, MatchOp::NotEqual | MatchOp::NotRegex)
    }
}

fn check_length(text: &str) -> Result<(), MatchersError> {
    match text.len() {
        bytes if bytes > TEXT_BYTES_MAX => Err(MatchersError::TooLong { bytes }),
        _ => Ok(()),
    }
}

/// Compiles what one of the parsers read.
fn decide(
    text: &str,
    read: Result<Vec<Piece>, MatchersError>,
    classic: Result<Vec<Piece>, MatchersError>,
) -> Result<Vec<Matcher>, MatchersError> {
    match (read, classic) {
        (Ok(read), Ok(classic)) if read != classic => {
            // An expression that is wrong in the older meaning leaves only the newer one.
            let matchers = compiled(&classic).or_else(|_| compiled(&read))?;
            tracing::debug!(text, "matchers with two meanings; the older one holds");
            Ok(matchers)
        }
        (Ok(pieces), _) | (Err(_), Ok(pieces)) => compiled(&pieces),
        // The newer parser knows the place of the mistake.
        (Err(error @ MatchersError::Format { .. }), Err(MatchersError::Format { .. })) => {
            Err(error)
        }
        (Err(_), Err(error)) => Err(error),
    }
}

fn compiled(pieces: &[Piece]) -> Result<Vec<Matcher>, MatchersError> {
    pieces.iter().map(|Piece { name, op, value }| Matcher::new(*op, name, value)).collect()
}

/// Returns whether a character ends a name or value without quotes.
fn is_reserved(letter: char) -> bool {
    letter.is_whitespace() || "{}!=~,\\\"'`".contains(letter)
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Matcher) -> bool {
        // The expression follows from the value.
        (&self.name, self.op, &self.value) == (&other.name, other.op, &other.value)
    }
}

impl Eq for Matcher {}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names are quoted only if needed, because the older parser knows no quoted names.
        match self.name.contains(is_reserved) {
            true => write_quoted(f, &self.name)?,
            false => f.write_str(&self.name)?,
        }
        f.write_str(self.op.name())?;
        write_quoted(f, &self.value)
    }
}

fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
    write!(f, "\"{text}\"")
}

impl fmt::Display for Matchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (place, matcher) in self.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{matcher}")?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Matchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

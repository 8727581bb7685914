//! Parses series selectors of PromQL: `up{job="x",instance=~"a.*"}`, or with quoted names of any
//! characters, `{"my.metric","my.label"="x"}`.
//!
//! Offsets, ranges and functions are refused. Names and quotes follow upstream's rules
//! (`promql/parser/lex.go` and `util/strutil/quote.go` in prometheus/prometheus); the engine checks
//! the expressions of `=~` and `!~`.

use super::selection::{SelectionCount, SelectionError};
use tidepool_relabel::REGEX_BYTES_MAX;
use tidepool_relabel::re2::{self, Dot};
use tidepool_runtime::{MatchOp, Matcher};

/// Label that holds the metric's name.
const METRIC_NAME: &str = "__name__";

/// Faults of a series selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    #[error("1:{column}: parse error: {reason}")]
    Syntax {
        /// Position in bytes, from 1.
        column: usize,
        reason: String,
    },
    #[error(transparent)]
    TooMuch(#[from] SelectionError),
}

/// Parses a selector; `{}` has no matchers.
pub fn parse_selector(text: &str) -> Result<Vec<Matcher>, SelectorError> {
    parse_counted(text, &mut SelectionCount::default())
}

/// Parses one of several selectors of a request; `count` limits all selectors together.
pub fn parse_counted(
    text: &str,
    count: &mut SelectionCount,
) -> Result<Vec<Matcher>, SelectorError> {
    count.selector()?;
    let mut parser = Parser { text, at: 0, count };
    let mut matchers = Vec::new();
    parser.skip_space();
    if let Some(name) = parser.take_name(is_metric_char) {
        parser.count.matcher()?;
        matchers.push(metric_name(name.to_owned()));
        parser.skip_space();
    }
    match parser.peek() {
        Some('{') => parser.matchers(&mut matchers)?,
        None if matchers.is_empty() => return Err(parser.error("unexpected end of input")),
        None => {}
        Some(found) => return Err(parser.unexpected(found, "after the metric name")),
    }
    parser.skip_space();
    if let Some(found) = parser.peek() {
        return Err(parser.unexpected(found, "after the selector"));
    }
    Ok(matchers)
}

struct Parser<'a, 'c> {
    text: &'a str,
    at: usize,
    count: &'c mut SelectionCount,
}

impl<'a> Parser<'a, '_> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take_if(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    /// Skips space and comments, which reach to the end of their line.
    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn take_name(&mut self, is_inside: fn(char) -> bool) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c| !is_inside(c)).unwrap_or(rest.len());
        let name = rest.get(..end).filter(|name| !name.is_empty())?;
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.at += end;
        Some(name)
    }

    /// Parses the braces and the matchers between them.
    fn matchers(&mut self, matchers: &mut Vec<Matcher>) -> Result<(), SelectorError> {
        self.take_if('{');
        loop {
            self.skip_space();
            if self.take_if('}') {
                return Ok(());
            }
            // Counted before parsing, so that excess matchers cost no work.
            self.count.matcher()?;
            matchers.push(self.matcher()?);
            self.skip_space();
            match self.peek() {
                Some(',') => self.at += 1,
                Some('}') => {}
                Some(found) => return Err(self.unexpected(found, "expected \",\" or \"}\"")),
                None => return Err(self.error("unexpected end of input inside braces")),
            }
        }
    }

    fn matcher(&mut self) -> Result<Matcher, SelectorError> {
        let (name, is_quoted) = match self.peek() {
            None => return Err(self.error("unexpected end of input inside braces")),
            Some('"' | '\'' | '`') => (self.quoted()?, true),
            Some(found) => match self.take_name(is_label_char) {
                Some(name) => (name.to_owned(), false),
                None => return Err(self.unexpected(found, "expected a label name or \"}\"")),
            },
        };
        self.skip_space();
        let op = match self.rest().as_bytes() {
            [b'=', b'~', ..] => MatchOp::Regex,
            [b'!', b'~', ..] => MatchOp::NotRegex,
            [b'!', b'=', ..] => MatchOp::NotEqual,
            [b'=', ..] => MatchOp::Equal,
            // A quoted text without an operator is the metric's name.
            [b',' | b'}', ..] if is_quoted => return Ok(metric_name(name)),
            [] => return Err(self.error("unexpected end of input inside braces")),
            _ => return Err(self.error("expected one of \"=\", \"!=\", \"=~\" and \"!~\"")),
        };
        self.at += if op == MatchOp::Equal { 1 } else { 2 };
        self.skip_space();
        match self.peek() {
            Some('"' | '\'' | '`') => Ok(Matcher { name, op, value: self.quoted()? }),
            Some(found) => Err(self.unexpected(found, "expected a quoted value")),
            None => Err(self.error("unexpected end of input inside braces")),
        }
    }

    /// Parses a text in quotes of any of the three kinds.
    fn quoted(&mut self) -> Result<String, SelectorError> {
        let begin = self.at;
        let at_begin =
            |reason: &str| SelectorError::Syntax { column: begin + 1, reason: reason.to_owned() };
        let unterminated = || at_begin("unterminated quoted string");
        let quote = self.take().ok_or_else(unterminated)?;
        // Collected as bytes, because escapes may encode a character byte by byte.
        let mut bytes = Vec::new();
        loop {
            match self.take().ok_or_else(unterminated)? {
                end if end == quote => break,
                '\\' if quote != '`' => self.escape(quote, &mut bytes)?,
                '\n' if quote != '`' => return Err(unterminated()),
                other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        String::from_utf8(bytes).map_err(|_| at_begin("the quoted string is not UTF-8"))
    }

    /// Parses the escape after a backslash. Octal and hexadecimal numbers are bytes; numbers after
    /// `u` and `U` are characters.
    fn escape(&mut self, quote: char, bytes: &mut Vec<u8>) -> Result<(), SelectorError> {
        let begin = self.at;
        let wrong = |reason: String| SelectorError::Syntax { column: begin + 1, reason };
        let escape = self.take().ok_or_else(|| wrong("escape sequence not terminated".into()))?;
        let (digits, radix) = match escape {
            'x' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            '0'..='7' => {
                // The digit is part of the number, so it is read again.
                self.at = begin;
                (3, 8)
            }
            _ => {
                bytes.push(match escape {
                    'a' => 0x07,
                    'b' => 0x08,
                    'f' => 0x0c,
                    'n' => b'\n',
                    'r' => b'\r',
                    't' => b'\t',
                    'v' => 0x0b,
                    '\\' => b'\\',
                    _ if escape == quote => escape as u8,
                    _ => return Err(wrong(format!("unknown escape sequence \\{escape}"))),
                });
                return Ok(());
            }
        };
        let number = self.rest().get(..digits).filter(|n| n.chars().all(|c| c.is_digit(radix)));
        let number = number.and_then(|number| u32::from_str_radix(number, radix).ok());
        let number = number.ok_or_else(|| wrong(format!("\\{escape} needs {digits} digits")))?;
        self.at += digits;
        match escape {
            'u' | 'U' => match char::from_u32(number) {
                Some(char) => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
                None => return Err(wrong("the escape sequence is no character".into())),
            },
            _ => match u8::try_from(number) {
                Ok(byte) => bytes.push(byte),
                Err(_) => return Err(wrong("the escape sequence is no byte".into())),
            },
        }
        Ok(())
    }

    fn error(&self, reason: impl Into<String>) -> SelectorError {
        SelectorError::Syntax { column: self.at + 1, reason: reason.into() }
    }

    fn unexpected(&self, found: char, expected: &str) -> SelectorError {
        self.error(format!("unexpected {found:?}, {expected}"))
    }
}

/// Returns whether a matcher selects series without its label; false for an invalid expression,
/// which the engine reports. Only parses the expression.
pub fn matches_empty(matcher: &Matcher) -> bool {
    let read = || re2::parse(&matcher.value, Dot::Any).ok();
    let takes_empty = || {
        // The engine refuses longer expressions, so parsing them is not needed.
        let parsed = (matcher.value.len() <= REGEX_BYTES_MAX).then(read).flatten()?;
        Some(re2::takes_empty(&parsed.hir))
    };
    match matcher.op {
        MatchOp::Equal => matcher.value.is_empty(),
        MatchOp::NotEqual => !matcher.value.is_empty(),
        MatchOp::Regex => takes_empty() == Some(true),
        MatchOp::NotRegex => takes_empty() == Some(false),
    }
}

fn metric_name(value: String) -> Matcher {
    Matcher { name: METRIC_NAME.to_owned(), op: MatchOp::Equal, value }
}

fn is_label_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_metric_char(c: char) -> bool {
    is_label_char(c) || c == ':'
}

#[cfg(test)]
mod tests;

//! Scans the text of one line or series from its beginning.

use crate::error::TextPosition;
use std::borrow::Cow;

/// One of the two text formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// OpenMetrics, with timestamps in seconds.
    Openmetrics,
    /// Prometheus' classic text format, with timestamps in milliseconds.
    Prometheus,
}

/// Fault of a line, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineError {
    pub what: &'static str,
    /// Byte offset in the text, from 0.
    pub offset: usize,
}

/// Fault of an unclosed quoted string. In the classic format the string may end on a later line.
pub(crate) const OPEN_STRING: &str = "a string does not end";

impl LineError {
    /// Converts the offset to a position; the text begins at `start`.
    pub fn place(&self, start: TextPosition, text: &[u8]) -> TextPosition {
        let before = text.get(..self.offset).unwrap_or(text);
        // Label values may contain line breaks, so the fault may be on a later line.
        match memchr::memrchr(b'\n', before) {
            None => TextPosition { column: start.column + self.offset, ..start },
            Some(last) => {
                let breaks = memchr::memchr_iter(b'\n', before).count() as u64;
                TextPosition { line: start.line + breaks, column: self.offset - last }
            }
        }
    }
}

pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub fn error(&self, what: &'static str) -> LineError {
        LineError { what, offset: self.at }
    }

    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    /// Skips blanks; returns whether at least one was skipped.
    pub fn skip_blanks(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.at > start
    }

    /// Takes everything up to the next blank.
    pub fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let (word, _) = rest.split_at(rest.find([' ', '\t']).unwrap_or(rest.len()));
        self.at += word.len();
        word
    }

    /// Takes an unquoted name, which may be empty.
    fn name(&mut self, is_part: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let begins_with_digit = rest.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        let end = match begins_with_digit {
            true => 0,
            false => rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len()),
        };
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    pub fn metric_name(&mut self) -> &'a str {
        self.name(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':'))
    }

    pub fn label_name(&mut self) -> &'a str {
        self.name(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// Takes a quoted string at the current position; returns its content with escapes.
    pub fn quoted(&mut self) -> Result<&'a str, LineError> {
        let start = self.at + 1;
        let end = string_end(self.text.as_bytes(), self.at)?;
        self.at = end;
        Ok(self.text.get(start..end - 1).unwrap_or_default())
    }

    /// Takes labels in braces at the current position, and passes them to `push`. If `name` is
    /// given, the metric's name may be among the labels.
    pub fn labels(
        &mut self,
        format: TextFormat,
        mut name: Option<&mut Cow<'a, str>>,
        mut push: impl FnMut(Cow<'a, str>, Cow<'a, str>),
    ) -> Result<(), LineError> {
        self.at += 1;
        loop {
            self.skip_lax(format);
            if self.take("}") {
                return Ok(());
            }
            // Created before the label is taken, so that it points at the label's beginning.
            let start = self.error("a label name or } is missing");
            let is_quoted = self.peek() == Some(b'"');
            let label = match is_quoted {
                true => unescape(self.quoted()?),
                false => Cow::Borrowed(self.label_name()),
            };
            self.skip_lax(format);
            let is_label = self.take("=");
            if is_label {
                if label.is_empty() {
                    return Err(start);
                }
                self.skip_lax(format);
                if self.peek() != Some(b'"') {
                    return Err(self.error("a quoted value is missing"));
                }
                push(label, unescape(self.quoted()?));
            // A quoted text without a value is the metric's name, as UTF-8 names are written.
            } else if is_quoted && let Some(name) = name.as_deref_mut() {
                if !name.is_empty() || label.is_empty() {
                    return Err(LineError { what: "the metric name is not given once", ..start });
                }
                *name = label;
            } else {
                return Err(if label.is_empty() { start } else { self.error("a = is missing") });
            }
            self.skip_lax(format);
            // The classic format requires no comma after a value.
            let is_lax = format == TextFormat::Prometheus && is_label;
            if !self.take(",") && self.peek() != Some(b'}') && !is_lax {
                return Err(self.error("a comma or } is missing"));
            }
        }
    }

    fn skip_lax(&mut self, format: TextFormat) {
        if format == TextFormat::Prometheus {
            self.skip_blanks();
        }
    }
}

/// Returns the offset after the closing quote of the string whose opening quote is at `open`.
pub(crate) fn string_end(text: &[u8], open: usize) -> Result<usize, LineError> {
    let mut at = open + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return Ok(at + 1),
            // An escaped byte does not end the string, but a line break must not be escaped.
            b'\\' if text.get(at + 1) == Some(&b'\n') => {
                return Err(LineError { what: "a line break behind a backslash", offset: at });
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    Err(LineError { what: OPEN_STRING, offset: open })
}

/// Replaces the escapes `\\`, `\"` and `\n`; keeps other backslashes.
pub(crate) fn unescape(text: &str) -> Cow<'_, str> {
    replace(text, |escaped| match escaped {
        b'\\' => Some('\\'),
        b'"' => Some('"'),
        b'n' => Some('\n'),
        _ => None,
    })
}

/// Replaces the escapes `\\` and `\n` of help texts in the classic format.
pub(crate) fn unescape_help(text: &str) -> Cow<'_, str> {
    replace(text, |escaped| match escaped {
        b'\\' => Some('\\'),
        b'n' => Some('\n'),
        _ => None,
    })
}

fn replace(text: &str, stands_for: impl Fn(u8) -> Option<char>) -> Cow<'_, str> {
    // Most texts have no escapes, and are not copied.
    let Some(first) = memchr::memchr(b'\\', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut plain = String::with_capacity(text.len());
    let (before, mut rest) = text.split_at(first);
    plain.push_str(before);
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (before, after) = rest.split_at(at);
        plain.push_str(before);
        let replaced = after.as_bytes().get(1).and_then(|escaped| stands_for(*escaped));
        // An unknown escape keeps its backslash, and the byte after it is read as plain text.
        plain.push(replaced.unwrap_or('\\'));
        rest = after.get(if replaced.is_some() { 2 } else { 1 }..).unwrap_or_default();
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

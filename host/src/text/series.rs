//! A series as it is written: `name{label="value",…}` or `{"name",label="value",…}`.

use super::{LineError, TextFormat};

/// Labels by ascending name.
pub type LabelPairs = Vec<(String, String)>;

const METRIC_NAME: &str = "__name__";

/// Reads a text from the front.
pub(super) struct Scanner<'a> {
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

    pub fn at(&self) -> usize {
        self.at
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

    /// Takes blanks; gives whether there were any.
    pub fn skip_blanks(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.at > start
    }

    /// What there is up to the next blank.
    pub fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let (word, _) = rest.split_at(rest.find([' ', '\t']).unwrap_or(rest.len()));
        self.at += word.len();
        word
    }

    /// A name without quotes, which may be empty.
    pub fn name(&mut self, is_mark: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let begins = |byte: u8| byte.is_ascii_alphabetic() || is_mark(byte);
        let is_part = |(at, byte): (usize, u8)| begins(byte) || (at > 0 && byte.is_ascii_digit());
        let end = rest.bytes().enumerate().position(|part| !is_part(part)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// The inside of a quoted string, escapes included. The quote that opens it comes next.
    pub fn quoted(&mut self) -> Result<&'a str, LineError> {
        let open = self.error("a string does not end");
        self.at += 1;
        let rest = self.rest();
        let mut bytes = rest.bytes().enumerate();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.at += at + 1;
                    return Ok(rest.get(..at).unwrap_or_default());
                }
                // Whatever is escaped does not end the string.
                b'\\' => drop(bytes.next()),
                _ => {}
            }
        }
        Err(open)
    }

    /// Passes over a series without looking at its labels.
    pub fn skip_series(&mut self) -> Result<&'a str, LineError> {
        let start = self.at;
        self.metric_name();
        if self.peek() == Some(b'{') {
            loop {
                match self.peek() {
                    None => return Err(self.error("the braces are not closed")),
                    Some(b'"') => drop(self.quoted()?),
                    Some(b'}') => break,
                    Some(_) => self.at += 1,
                }
            }
            self.at += 1;
        }
        match self.at == start {
            true => Err(self.error("a metric name is missing")),
            false => Ok(self.text.get(start..self.at).unwrap_or_default()),
        }
    }

    pub fn metric_name(&mut self) -> &'a str {
        self.name(|byte| matches!(byte, b'_' | b':'))
    }

    /// What stands in braces; the brace that opens them comes next. With `name`, the metric's name
    /// may be among it.
    pub fn labels(
        &mut self,
        format: TextFormat,
        mut name: Option<&mut String>,
    ) -> Result<LabelPairs, LineError> {
        let mut labels = LabelPairs::new();
        self.at += 1;
        loop {
            self.skip_lax(format);
            if self.take("}") {
                return Ok(labels);
            }
            let start = self.error("a label name or } is missing");
            let is_quoted = self.peek() == Some(b'"');
            let label = match is_quoted {
                true => unescape(self.quoted()?),
                false => self.name(|byte| byte == b'_').to_owned(),
            };
            self.skip_lax(format);
            if self.take("=") {
                if label.is_empty() {
                    return Err(start);
                }
                self.skip_lax(format);
                if self.peek() != Some(b'"') {
                    return Err(self.error("a quoted value is missing"));
                }
                labels.push((label, unescape(self.quoted()?)));
            } else if is_quoted && let Some(name) = name.as_deref_mut() {
                if !name.is_empty() || label.is_empty() {
                    return Err(LineError { what: "the metric name is not given once", ..start });
                }
                *name = label;
            } else {
                return Err(if label.is_empty() { start } else { self.error("a = is missing") });
            }
            self.skip_lax(format);
            if !self.take(",") && self.peek() != Some(b'}') {
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

/// The labels of a series, the metric's name among them.
pub(super) fn parse_series(text: &str, format: TextFormat) -> Result<LabelPairs, LineError> {
    let mut scanner = Scanner::new(text);
    let mut name = scanner.metric_name().to_owned();
    let mut labels = LabelPairs::new();
    if scanner.peek() == Some(b'{') {
        labels = scanner.labels(format, Some(&mut name))?;
    }
    if name.is_empty() {
        return Err(scanner.error("the series has no metric name"));
    }
    labels.push((METRIC_NAME.to_owned(), name));
    labels.sort();
    if labels.windows(2).any(|pair| matches!(pair, [a, b] if a.0 == b.0)) {
        return Err(scanner.error("a label name occurs twice"));
    }
    labels.retain(|(_, value)| !value.is_empty());
    Ok(labels)
}

/// Replaces the three escapes there are; other backslashes stand for themselves.
pub(super) fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, after) = rest.split_at(at);
        plain.push_str(before);
        let (replaced, used) = match after.as_bytes().get(1) {
            Some(b'\\') => ('\\', 2),
            Some(b'"') => ('"', 2),
            Some(b'n') => ('\n', 2),
            _ => ('\\', 1),
        };
        plain.push(replaced);
        rest = after.get(used..).unwrap_or_default();
    }
    plain.push_str(rest);
    plain
}

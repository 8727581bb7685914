//! Scans a line byte by byte, with upstream's messages for faults.

use crate::quote::quoted;

/// Error text for a faulty line, in upstream's words.
pub(super) type Wrong = String;

/// Kind of a name, which determines the allowed characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    Metric,
    Label,
}

/// Scans one line with its line break. The line break is required.
pub(super) struct Scanner<'l> {
    bytes: &'l [u8],
    at: usize,
}

impl NameKind {
    fn begins(self, byte: u8) -> bool {
        byte.is_ascii_alphabetic()
            || matches!(byte, b'_' | b'"')
            || (self == NameKind::Metric && byte == b':')
    }

    fn continues(self, byte: u8, is_quoted: bool) -> bool {
        is_quoted || self.begins(byte) || byte.is_ascii_digit()
    }

    fn word(self) -> &'static str {
        match self {
            NameKind::Metric => "metric",
            NameKind::Label => "label",
        }
    }
}

impl<'l> Scanner<'l> {
    pub fn new(bytes: &'l [u8]) -> Scanner<'l> {
        Scanner { bytes, at: 0 }
    }

    /// Returns the next byte without taking it.
    pub fn byte(&self) -> Result<u8, Wrong> {
        self.bytes.get(self.at).copied().ok_or_else(|| "unexpected end of input stream".to_owned())
    }

    pub fn advance(&mut self) {
        self.at += 1;
    }

    /// Skips blanks; returns the byte after the blanks.
    pub fn skip_blanks(&mut self) -> Result<u8, Wrong> {
        while is_blank(self.byte()?) {
            self.advance();
        }
        self.byte()
    }

    /// Skips a byte and the blanks after it; returns the next byte.
    pub fn skip(&mut self) -> Result<u8, Wrong> {
        self.advance();
        self.skip_blanks()
    }

    /// Takes everything up to a blank or the end of the line.
    pub fn word(&mut self) -> Result<&'l [u8], Wrong> {
        let start = self.at;
        loop {
            let byte = self.byte()?;
            if is_blank(byte) || byte == b'\n' {
                return Ok(&self.bytes[start..self.at]);
            }
            self.advance();
        }
    }

    /// Takes the rest of the line and removes its backslashes, as upstream does.
    pub fn rest(&mut self) -> Result<Vec<u8>, Wrong> {
        let mut text = Vec::new();
        while self.byte()? != b'\n' {
            text.push(self.byte()?);
            self.advance();
        }
        text.retain(|byte| *byte != b'\\');
        Ok(text)
    }

    /// Skips the rest of the line.
    pub fn skip_rest(&mut self) -> Result<(), Wrong> {
        while self.byte()? != b'\n' {
            self.advance();
        }
        Ok(())
    }

    /// Skips the rest of the line; an invalid escape is an error.
    pub fn skip_help(&mut self) -> Result<(), Wrong> {
        loop {
            match self.byte()? {
                b'\n' => return Ok(()),
                b'\\' => {
                    self.advance();
                    unescaped(self.byte()?)?;
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// Takes a name, quoted or not; returns an empty name if there is none.
    pub fn name(&mut self, kind: NameKind) -> Result<Vec<u8>, Wrong> {
        let mut name = Vec::new();
        let mut is_quoted = false;
        if !kind.begins(self.byte()?) {
            return Ok(name);
        }
        loop {
            match self.byte()? {
                b'"' if is_quoted => {
                    self.advance();
                    // A name must not end the line, because upstream always reads one more byte.
                    self.byte()?;
                    return Ok(name);
                }
                b'"' => is_quoted = true,
                b'\n' => {
                    let (word, name) = (kind.word(), quoted(&name));
                    return Err(format!("{word} name {name} contains unescaped new-line"));
                }
                b'\\' => {
                    self.advance();
                    name.push(unescaped(self.byte()?)?);
                }
                byte => name.push(byte),
            }
            self.advance();
            if !kind.continues(self.byte()?, is_quoted) {
                return Ok(name);
            }
        }
    }

    /// Takes a label value from its opening quote up to and including its closing quote.
    pub fn label_value(&mut self) -> Result<Vec<u8>, Wrong> {
        let mut value = Vec::new();
        loop {
            self.advance();
            match self.byte()? {
                b'"' => {
                    self.advance();
                    return Ok(value);
                }
                b'\n' => {
                    let value = quoted(&value);
                    return Err(format!("label value {value} contains unescaped new-line"));
                }
                b'\\' => {
                    self.advance();
                    value.push(unescaped(self.byte()?)?);
                }
                byte => value.push(byte),
            }
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns the byte for the character after a backslash.
fn unescaped(byte: u8) -> Result<u8, Wrong> {
    match byte {
        b'\\' | b'"' => Ok(byte),
        b'n' => Ok(b'\n'),
        _ => Err(format!("invalid escape sequence '\\{}'", char::from(byte))),
    }
}

//! The newer syntax: `{name="value", "a name with spaces"=~"v.*"}`, braces and quotes optional.
//!
//! Names and values without quotes have no spaces and none of ``{}!=~,\"'` ``. Those in quotes have
//! the escapes of a string in Go.

use super::{MatchersError, Piece, is_reserved};
use std::iter::Peekable;
use std::str::CharIndices;
use tidepool_model::MatchOp;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Comma,
    Op(MatchOp),
    Text(String),
}

/// A mistake: column of the character, from 1, and what is expected there.
type Mistake = (usize, &'static str);

pub fn pieces(text: &str) -> Result<Vec<Piece>, MatchersError> {
    let parsed = tokens(text).and_then(|tokens| Parser { tokens: &tokens, text }.list());
    parsed.map_err(|(column, what)| MatchersError::Format { text: text.to_owned(), column, what })
}

struct Parser<'a> {
    /// What is left, with columns.
    tokens: &'a [(usize, Token)],
    text: &'a str,
}

impl Parser<'_> {
    fn list(mut self) -> Result<Vec<Piece>, Mistake> {
        let is_open = self.takes(&Token::Open);
        let mut pieces = Vec::new();
        while let Some((_, token)) = self.tokens.first() {
            if *token == Token::Close {
                break;
            }
            pieces.push(self.piece()?);
            match self.tokens.first() {
                None | Some((_, Token::Close)) => {}
                Some((_, Token::Comma)) => self.tokens = &self.tokens[1..],
                Some((column, _)) => return Err((*column, "expected a comma or close brace")),
            }
        }
        let column = self.column();
        match (is_open, self.takes(&Token::Close)) {
            (true, false) => return Err((column, "expected close brace")),
            (false, true) => return Err((column, "expected opening brace")),
            _ => {}
        }
        match self.tokens.is_empty() {
            true => Ok(pieces),
            false => Err((self.column(), "expected end of input")),
        }
    }

    fn piece(&mut self) -> Result<Piece, Mistake> {
        let name = self.text("expected label name")?;
        let column = self.column();
        let op = match self.tokens.split_first() {
            Some(((_, Token::Op(op)), rest)) => {
                self.tokens = rest;
                *op
            }
            _ => return Err((column, "expected an operator such as '=', '!=', '=~' or '!~'")),
        };
        let value = self.text("expected label value")?;
        Ok(Piece { name, op, value })
    }

    fn text(&mut self, expected: &'static str) -> Result<String, Mistake> {
        match self.tokens.split_first() {
            Some(((_, Token::Text(text)), rest)) => {
                self.tokens = rest;
                Ok(text.clone())
            }
            _ => Err((self.column(), expected)),
        }
    }

    fn takes(&mut self, token: &Token) -> bool {
        let is_next = self.tokens.first().is_some_and(|(_, found)| found == token);
        if is_next {
            self.tokens = &self.tokens[1..];
        }
        is_next
    }

    /// Returns the column of the next token, or that after the end.
    fn column(&self) -> usize {
        self.tokens.first().map_or_else(|| self.text.chars().count() + 1, |(column, _)| *column)
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Mistake> {
    let mut letters = Letters { letters: text.char_indices().peekable(), column: 0 };
    let mut tokens = Vec::new();
    while let Some((at, letter)) = letters.next() {
        let column = letters.column;
        let token = match letter {
            '{' => Token::Open,
            '}' => Token::Close,
            ',' => Token::Comma,
            '=' if letters.takes('~') => Token::Op(MatchOp::Regex),
            '=' => Token::Op(MatchOp::Equal),
            '!' if letters.takes('=') => Token::Op(MatchOp::NotEqual),
            '!' if letters.takes('~') => Token::Op(MatchOp::NotRegex),
            '!' => return Err((column + 1, "expected one of '=~'")),
            '"' => Token::Text(quoted(&mut letters)?),
            letter if letter.is_whitespace() => continue,
            letter if is_reserved(letter) => return Err((column, "invalid input")),
            _ => {
                let mut end = at + letter.len_utf8();
                while let Some((at, letter)) = letters.next_if(|letter| !is_reserved(letter)) {
                    end = at + letter.len_utf8();
                }
                Token::Text(text[at..end].to_owned())
            }
        };
        tokens.push((column, token));
    }
    Ok(tokens)
}

/// Reads a text up to its closing quote.
fn quoted(letters: &mut Letters<'_>) -> Result<String, Mistake> {
    let begin = letters.column;
    let unclosed = (begin, "missing end \"");
    // Bytes, because an escape may stand for a part of a character.
    let mut bytes = Vec::new();
    loop {
        let (_, letter) = letters.next().ok_or(unclosed)?;
        match letter {
            '"' => break,
            '\n' => return Err((letters.column, "a newline in quotes is written \\n")),
            '\\' => escape(letters, &mut bytes)?,
            letter => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    String::from_utf8(bytes).map_err(|_| (begin, "the text in quotes is not valid UTF-8"))
}

/// Reads an escape of a string in Go, behind its backslash.
fn escape(letters: &mut Letters<'_>, bytes: &mut Vec<u8>) -> Result<(), Mistake> {
    let mistake = (letters.column, "invalid escape sequence");
    let (_, letter) = letters.next().ok_or(mistake)?;
    let byte = match letter {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' | '"' => letter as u8,
        'x' => letters.number(16, 2, 0).and_then(|code| u8::try_from(code).ok()).ok_or(mistake)?,
        '0'..='7' => {
            let first = u32::from(letter as u8 - b'0');
            let code = letters.number(8, 2, first).and_then(|code| u8::try_from(code).ok());
            code.ok_or(mistake)?
        }
        'u' | 'U' => {
            let digits = if letter == 'u' { 4 } else { 8 };
            let code = letters.number(16, digits, 0).and_then(char::from_u32).ok_or(mistake)?;
            bytes.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(());
        }
        _ => return Err(mistake),
    };
    bytes.push(byte);
    Ok(())
}

struct Letters<'a> {
    letters: Peekable<CharIndices<'a>>,
    /// Column of the last character, from 1.
    column: usize,
}

impl Letters<'_> {
    fn next(&mut self) -> Option<(usize, char)> {
        self.next_if(|_| true)
    }

    fn next_if(&mut self, is_wanted: impl FnOnce(char) -> bool) -> Option<(usize, char)> {
        let found = self.letters.next_if(|(_, letter)| is_wanted(*letter));
        self.column += usize::from(found.is_some());
        found
    }

    fn takes(&mut self, letter: char) -> bool {
        self.next_if(|found| found == letter).is_some()
    }

    /// Reads exactly this many digits, which follow those of `first`.
    fn number(&mut self, radix: u32, digits: usize, first: u32) -> Option<u32> {
        (0..digits).try_fold(first, |number, _| {
            let digit = self.next()?.1.to_digit(radix)?;
            number.checked_mul(radix)?.checked_add(digit)
        })
    }
}

//! Lexing of strings, numbers and durations.

use super::{Lexer, Read, is_name_part};
use crate::syntax::token::TokenKind;
use crate::syntax::{ParseError, quote};

impl Lexer<'_> {
    /// Reads the rest of a quoted string with escapes.
    pub(super) fn string(&mut self, mark: char) -> Read {
        loop {
            match self.bump() {
                Some('\\') => self.escape(mark)?,
                // Upstream cannot distinguish this letter from invalid UTF-8, and refuses both.
                Some(char::REPLACEMENT_CHARACTER) => return Err(self.error("invalid UTF-8 rune")),
                None | Some('\n') => return Err(self.error("unterminated quoted string")),
                Some(letter) if letter == mark => return Ok(TokenKind::Text),
                Some(_) => {}
            }
        }
    }

    /// Checks the rest of an escape sequence, including its code point.
    fn escape(&mut self, mark: char) -> Result<(), ParseError> {
        const UNENDED: &str = "escape sequence not terminated";
        let Some(letter) = self.bump() else { return Err(self.error(UNENDED)) };
        let (count, base, max) = match letter {
            'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' => return Ok(()),
            _ if letter == mark => return Ok(()),
            '0'..='7' => {
                // The digit that was read is the first of the three.
                self.at -= 1;
                (3, 8, 255)
            }
            'x' => (2, 16, 255),
            'u' => (4, 16, char::MAX as u32),
            'U' => (8, 16, char::MAX as u32),
            other => return Err(self.error(format!("unknown escape sequence {}", code_of(other)))),
        };
        let mut code = 0u32;
        for _ in 0..count {
            let Some(letter) = self.bump() else { return Err(self.error(UNENDED)) };
            let Some(digit) = letter.to_digit(base) else {
                let text = format!("illegal character {} in escape sequence", code_of(letter));
                return Err(self.error(text));
            };
            // Eight hexadecimal digits fill 32 bits, so nothing wraps.
            code = code.wrapping_mul(base).wrapping_add(digit);
        }
        match code > max || (0xd800..0xe000).contains(&code) {
            true => Err(self.error("escape sequence is an invalid Unicode code point")),
            false => Ok(()),
        }
    }

    pub(super) fn raw_string(&mut self) -> Read {
        loop {
            match self.bump() {
                Some(char::REPLACEMENT_CHARACTER) => return Err(self.error("invalid UTF-8 rune")),
                None => return Err(self.error("unterminated raw string")),
                Some('`') => return Ok(TokenKind::Text),
                Some(_) => {}
            }
        }
    }

    pub(super) fn peek_is_digit(&self) -> bool {
        self.peek().is_some_and(|letter| letter.is_ascii_digit())
    }

    pub(super) fn number_or_duration(&mut self) -> Read {
        // A duration begins like a number, so both are tried from the first letter.
        self.at = self.start;
        if self.number() {
            return Ok(TokenKind::Number);
        }
        if self.duration_units() {
            return Ok(TokenKind::Duration);
        }
        let text = quote::quoted(&self.text[self.start..self.at]);
        Err(self.error(format!("bad number or duration syntax: {text}")))
    }

    /// Reads a number; false if other characters follow. The value may still be invalid.
    fn number(&mut self) -> bool {
        let is_hex = self.eat(|letter| letter == '0') && self.eat(|letter| "xX".contains(letter));
        if is_hex {
            // The shape is that of upstream's `scanNumber`; the parser checks the value.
            self.eat(|letter| letter == '_');
        }
        let is_digit = |letter: char| letter.is_digit(if is_hex { 16 } else { 10 });
        let is_power = |letter: char| !is_hex && matches!(letter, 'e' | 'E');
        self.eat(|letter| letter == '.');
        self.eat(is_digit);
        let (mut has_dot, mut has_power) = (false, false);
        while let Some(letter) = self.peek() {
            match letter {
                '.' => {
                    self.at += 1;
                    if has_dot || self.eat(|next| "_.".contains(next)) || is_hex {
                        return false;
                    }
                    has_dot = true;
                }
                _ if is_power(letter) => {
                    self.at += 1;
                    if has_power {
                        return false;
                    }
                    has_power = true;
                    self.eat(|sign| "+-".contains(sign));
                    // Upstream refuses an exponent or an underscore at the end of the text.
                    if self.eat(|next| "._eE".contains(next)) || self.peek().is_none() {
                        return false;
                    }
                }
                '_' => {
                    self.at += 1;
                    if self.eat(|next| "._eE".contains(next)) || self.peek().is_none() {
                        return false;
                    }
                }
                _ if is_digit(letter) => while self.eat(is_digit) {},
                _ => break,
            }
        }
        !self.peek().is_some_and(is_name_part)
    }

    /// Reads the rest of a duration after its first number; false for other letters.
    fn duration_units(&mut self) -> bool {
        if !self.eat(|letter| "smhdwy".contains(letter)) {
            return false;
        }
        // `ms` has two letters; other units with an `s` are refused by the parser.
        self.eat(|letter| letter == 's');
        while self.eat(|letter| letter.is_ascii_digit()) {
            while self.eat(|letter| letter.is_ascii_digit()) {}
            // Years can only be the first unit.
            if !self.eat(|letter| "smhdw".contains(letter)) {
                return false;
            }
            self.eat(|letter| letter == 's');
        }
        let ends = !self.peek().is_some_and(is_name_part);
        if !ends {
            // Upstream's error shows the first wrong letter.
            self.bump();
        }
        ends
    }
}

/// Formats a letter as upstream does in errors about escapes.
fn code_of(letter: char) -> String {
    format!("U+{:04X} '{letter}'", letter as u32)
}

//! Splits a template into tokens.

use super::token::{Token, TokenKind, Word};
use crate::template::format::quoted;

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// Tokens of a template. The last one is the end, or an error whose text is `error`.
#[derive(Debug)]
pub struct Tokens<'t> {
    pub tokens: Vec<Token<'t>>,
    pub error: String,
}

struct Lexer<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    /// Offset of the token that is read, and of the next byte.
    start: usize,
    at: usize,
    /// Line of `start`.
    line: usize,
    open_parentheses: usize,
}

type Lexed<T> = Result<T, String>;

pub fn tokens(text: &str) -> Tokens<'_> {
    let tokens = Vec::new();
    let mut lexer = Lexer { text, tokens, start: 0, at: 0, line: 1, open_parentheses: 0 };
    match lexer.run() {
        Ok(()) => Tokens { tokens: lexer.tokens, error: String::new() },
        Err(error) => {
            lexer.at = lexer.start;
            lexer.push(TokenKind::Error);
            Tokens { tokens: lexer.tokens, error }
        }
    }
}

impl<'t> Lexer<'t> {
    fn run(&mut self) -> Lexed<()> {
        while let Some(found) = self.rest().find(LEFT) {
            let text = &self.rest()[..found];
            let trims = trims_left(&self.rest()[found + LEFT.len()..]);
            let kept = if trims { text.trim_end_matches(SPACES) } else { text };
            self.at += kept.len();
            if !kept.is_empty() {
                self.push(TokenKind::Text);
            }
            self.at += found - kept.len();
            self.skip();
            let marker = if trims { 2 } else { 0 };
            if self.rest()[LEFT.len() + marker..].starts_with("/*") {
                self.at += LEFT.len() + marker;
                self.skip();
                self.comment()?;
                continue;
            }
            self.at += LEFT.len();
            self.push(TokenKind::LeftDelimiter);
            self.at += marker;
            self.skip();
            self.action()?;
        }
        self.at = self.text.len();
        if self.at > self.start {
            self.push(TokenKind::Text);
        }
        self.push(TokenKind::End);
        Ok(())
    }

    fn comment(&mut self) -> Lexed<()> {
        let end = self.rest()[2..].find("*/").ok_or("unclosed comment")?;
        self.at += 2 + end + 2;
        let trims = self.right_delimiter().ok_or("comment ends before closing delimiter")?;
        self.end_action(trims);
        Ok(())
    }

    /// Reads the tokens of an action, and the delimiter that ends it.
    fn action(&mut self) -> Lexed<()> {
        self.open_parentheses = 0;
        loop {
            if let Some(trims) = self.right_delimiter() {
                if self.open_parentheses > 0 {
                    return Err("unclosed left paren".into());
                }
                if trims {
                    self.at += 2;
                    self.skip();
                }
                self.at += RIGHT.len();
                self.push(TokenKind::RightDelimiter);
                if trims {
                    self.skip_spaces();
                }
                return Ok(());
            }
            let kind = self.token()?;
            self.push(kind);
        }
    }

    /// Skips the delimiter at the end of a comment, and spaces if it trims them.
    fn end_action(&mut self, trims: bool) {
        self.at += RIGHT.len() + if trims { 2 } else { 0 };
        if trims {
            self.skip_spaces();
        }
        self.skip();
    }

    fn token(&mut self) -> Lexed<TokenKind> {
        let Some(first) = self.next() else { return Err("unclosed action".into()) };
        match first {
            _ if SPACES.contains(&first) => {
                let rest = self.rest();
                let spaces = rest.len() - rest.trim_start_matches(SPACES).len();
                self.at += spaces;
                // The last space may belong to a delimiter that trims.
                if spaces > 0 && is_trimming(&self.text[self.at - 1..]) {
                    self.at -= 1;
                }
                Ok(TokenKind::Space)
            }
            '=' => Ok(TokenKind::Assign),
            ':' => match self.next() {
                Some('=') => Ok(TokenKind::Declare),
                _ => Err("expected :=".into()),
            },
            '|' => Ok(TokenKind::Pipe),
            '"' => self.quoted('"', "unterminated quoted string", TokenKind::Quoted),
            '\'' => self.quoted('\'', "unterminated character constant", TokenKind::Rune),
            '`' => {
                let end = self.rest().find('`').ok_or("unterminated raw quoted string")?;
                self.at += end + 1;
                Ok(TokenKind::Quoted)
            }
            '$' => self.name(TokenKind::Variable, TokenKind::Variable),
            '.' if !self.peek().is_some_and(|next| next.is_ascii_digit()) => {
                self.name(TokenKind::Field, TokenKind::Word(Word::Dot))
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.at = self.start;
                self.number()
            }
            _ if is_of_name(first) => self.word(),
            '(' => {
                self.open_parentheses += 1;
                Ok(TokenKind::LeftParenthesis)
            }
            ')' => match self.open_parentheses.checked_sub(1) {
                Some(open) => {
                    self.open_parentheses = open;
                    Ok(TokenKind::RightParenthesis)
                }
                None => Err("unexpected right paren".into()),
            },
            ' '..='~' => Ok(TokenKind::Character),
            _ => Err(format!("unrecognized character in action: {}", code_point(first))),
        }
    }

    fn quoted(&mut self, mark: char, error: &str, kind: TokenKind) -> Lexed<TokenKind> {
        loop {
            match self.next() {
                Some('\\') if !matches!(self.next(), None | Some('\n')) => {}
                Some('\\' | '\n') | None => return Err(error.into()),
                Some(letter) if letter == mark => return Ok(kind),
                Some(_) => {}
            }
        }
    }

    /// Reads the name behind a dot or dollar, which is `alone` without one.
    fn name(&mut self, kind: TokenKind, alone: TokenKind) -> Lexed<TokenKind> {
        if self.is_at_terminator() {
            return Ok(alone);
        }
        self.skip_name()?;
        Ok(kind)
    }

    fn skip_name(&mut self) -> Lexed<()> {
        let rest = self.rest();
        self.at += rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
        match self.peek() {
            Some(letter) if !self.is_at_terminator() => {
                Err(format!("bad character {}", code_point(letter)))
            }
            _ => Ok(()),
        }
    }

    fn word(&mut self) -> Lexed<TokenKind> {
        self.skip_name()?;
        Ok(match &self.text[self.start..self.at] {
            "true" | "false" => TokenKind::Bool,
            "block" => TokenKind::Word(Word::Block),
            "break" => TokenKind::Word(Word::Break),
            "continue" => TokenKind::Word(Word::Continue),
            "define" => TokenKind::Word(Word::Define),
            "else" => TokenKind::Word(Word::Else),
            "end" => TokenKind::Word(Word::End),
            "if" => TokenKind::Word(Word::If),
            "nil" => TokenKind::Word(Word::Nil),
            "range" => TokenKind::Word(Word::Range),
            "template" => TokenKind::Word(Word::Template),
            "with" => TokenKind::Word(Word::With),
            _ => TokenKind::Identifier,
        })
    }

    fn number(&mut self) -> Lexed<TokenKind> {
        let wrong = |lexer: &Lexer<'_>| {
            format!("bad number syntax: {}", quoted(&lexer.text[lexer.start..lexer.at]))
        };
        if !self.one_number() {
            return Err(wrong(self));
        }
        if !matches!(self.peek(), Some('+' | '-')) {
            return Ok(TokenKind::Number);
        }
        match self.one_number() && self.text[..self.at].ends_with('i') {
            true => Ok(TokenKind::Complex),
            false => Err(wrong(self)),
        }
    }

    /// Skips what looks like a number; returns whether nothing of a name follows.
    fn one_number(&mut self) -> bool {
        self.skip_one("+-");
        let (digits, exponent) = match self.skip_one("0") {
            true if self.skip_one("xX") => ("0123456789abcdefABCDEF_", "pP"),
            true if self.skip_one("oO") => ("01234567_", ""),
            true if self.skip_one("bB") => ("01_", ""),
            _ => ("0123456789_", "eE"),
        };
        self.skip_all(digits);
        if self.skip_one(".") {
            self.skip_all(digits);
        }
        if self.skip_one(exponent) {
            self.skip_one("+-");
            self.skip_all("0123456789_");
        }
        self.skip_one("i");
        match self.peek() {
            Some(letter) if is_of_name(letter) => {
                self.at += letter.len_utf8();
                false
            }
            _ => true,
        }
    }

    fn skip_one(&mut self, of: &str) -> bool {
        let found = self.peek().is_some_and(|letter| of.contains(letter));
        // All sets are ASCII.
        self.at += usize::from(found);
        found
    }

    fn skip_all(&mut self, of: &str) {
        while self.skip_one(of) {}
    }

    /// Returns whether an action may end here, and whether the end trims spaces.
    fn right_delimiter(&self) -> Option<bool> {
        let rest = self.rest();
        match is_trimming(rest) {
            true => Some(true),
            false => rest.starts_with(RIGHT).then_some(false),
        }
    }

    /// Returns whether a name may end here.
    fn is_at_terminator(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(letter) => SPACES.contains(&letter) || self.rest().starts_with(RIGHT),
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn push(&mut self, kind: TokenKind) {
        let text = &self.text[self.start..self.at];
        self.tokens.push(Token { kind, at: self.start, line: self.line, text });
        self.skip();
    }

    fn skip(&mut self) {
        self.line += self.text[self.start..self.at].matches('\n').count();
        self.start = self.at;
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(SPACES).len();
        self.skip();
    }
}

fn is_of_name(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

fn trims_left(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| rest.starts_with(SPACES))
}

fn is_trimming(text: &str) -> bool {
    let marker = text.strip_prefix(SPACES).and_then(|rest| rest.strip_prefix('-'));
    marker.is_some_and(|rest| rest.starts_with(RIGHT))
}

/// Formats as Go's `%#U`.
fn code_point(letter: char) -> String {
    match crate::template::format::is_printable(letter) {
        true => format!("U+{:04X} '{letter}'", u32::from(letter)),
        false => format!("U+{:04X}", u32::from(letter)),
    }
}

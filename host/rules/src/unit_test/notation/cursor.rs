//! A place in a text.

use super::NotationError;

pub struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    pub fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes a letter if it comes next.
    pub fn take(&mut self, letter: char) -> bool {
        let is_next = self.peek() == Some(letter);
        if is_next {
            self.at += letter.len_utf8();
        }
        is_next
    }

    /// Takes a text if it comes next.
    pub fn take_text(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// Takes the letters for which the test holds.
    pub fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|letter| !test(letter)).unwrap_or(rest.len());
        self.skip(end)
    }

    /// Takes a number of bytes, which end with a letter.
    pub fn skip(&mut self, bytes: usize) -> &'t str {
        let taken = self.rest().get(..bytes).unwrap_or_default();
        self.at += taken.len();
        taken
    }

    /// Takes blanks; false if there are none.
    pub fn skip_blanks(&mut self) -> bool {
        !self.take_while(is_blank).is_empty()
    }

    pub fn skip_blanks_and_comments(&mut self) {
        self.skip_blanks();
        while self.peek() == Some('#') {
            self.take_while(|letter| letter != '\n');
            self.skip_blanks();
        }
    }

    pub fn error(&self, what: impl Into<String>) -> NotationError {
        let before = self.text.get(..self.at).unwrap_or_default();
        NotationError { column: before.chars().count() + 1, what: what.into() }
    }
}

pub fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r')
}

pub fn is_name_start(letter: char) -> bool {
    letter == '_' || letter.is_ascii_alphabetic()
}

pub fn is_name_part(letter: char) -> bool {
    letter == '_' || letter.is_ascii_alphanumeric()
}

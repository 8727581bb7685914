//! A place in an expression.

use super::{SyntaxError, Wrong};

/// What of an expression is not read yet.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'e> {
    whole: &'e str,
    at: usize,
}

impl<'e> Cursor<'e> {
    pub(super) fn new(whole: &'e str) -> Cursor<'e> {
        Cursor { whole, at: 0 }
    }

    pub(super) fn whole(&self) -> &'e str {
        self.whole
    }

    /// In bytes from the beginning.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'e str {
        &self.whole[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    /// Goes past a text, if it comes next.
    pub(super) fn skip(&mut self, text: &str) -> bool {
        let comes = self.rest().starts_with(text);
        if comes {
            self.at += text.len();
        }
        comes
    }

    /// What comes before a text, and goes past both; `None` if the text does not come.
    pub(super) fn until(&mut self, text: &str) -> Option<&'e str> {
        let (before, _) = self.rest().split_once(text)?;
        self.at += before.len() + text.len();
        Some(before)
    }

    /// All that is left.
    pub(super) fn take_rest(&mut self) -> &'e str {
        let rest = self.rest();
        self.at = self.whole.len();
        rest
    }

    /// An error about what was read since `start`.
    pub(super) fn wrong_since(&self, start: usize, wrong: Wrong) -> SyntaxError {
        SyntaxError::new(wrong, &self.whole[start..self.at])
    }
}

//! A reading position in an expression.

use super::{SyntaxError, Wrong};

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

    /// Returns the position in bytes from the beginning.
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

    /// Skips `text` if it is next, and returns whether it was skipped.
    pub(super) fn skip(&mut self, text: &str) -> bool {
        let comes = self.rest().starts_with(text);
        if comes {
            self.at += text.len();
        }
        comes
    }

    /// Returns the text before `text` and skips both; `None` if `text` does not follow.
    pub(super) fn until(&mut self, text: &str) -> Option<&'e str> {
        let (before, _) = self.rest().split_once(text)?;
        self.at += before.len() + text.len();
        Some(before)
    }

    pub(super) fn take_rest(&mut self) -> &'e str {
        let rest = self.rest();
        self.at = self.whole.len();
        rest
    }

    /// Makes an error about the part that was read since `start`.
    pub(super) fn wrong_since(&self, start: usize, wrong: Wrong) -> SyntaxError {
        SyntaxError::new(wrong, &self.whole[start..self.at])
    }
}

//! Tokens of templates, and how errors show them.

use crate::template::format::quoted;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Error,
    Assign,
    Bool,
    /// A printable character that no other token begins with, such as a comma.
    Character,
    Complex,
    Declare,
    End,
    Field,
    Identifier,
    LeftDelimiter,
    LeftParenthesis,
    Number,
    Pipe,
    RightDelimiter,
    RightParenthesis,
    Rune,
    Space,
    Text,
    /// A string with its quotes, of which raw ones are backquotes.
    Quoted,
    Variable,
    Word(Word),
}

/// Words with a meaning of their own. As in Go, the dot is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Block,
    Break,
    Continue,
    Define,
    Dot,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

#[derive(Clone, Copy, Debug)]
pub struct Token<'t> {
    pub kind: TokenKind,
    /// Offset of its first byte.
    pub at: usize,
    /// Line of its first byte, from 1.
    pub line: usize,
    pub text: &'t str,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TokenKind::End => f.write_str("EOF"),
            TokenKind::Word(_) => write!(f, "<{}>", self.text),
            _ if self.text.len() > 10 => {
                let end = self.text.char_indices().nth(10).map_or(self.text.len(), |(at, _)| at);
                write!(f, "{}...", quoted(&self.text[..end]))
            }
            _ => f.write_str(&quoted(self.text)),
        }
    }
}

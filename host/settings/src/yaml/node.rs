//! The values of a YAML text, with their positions.

use std::rc::Rc;

/// Beginning of a key or value, as line and column, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: u32,
    /// The column, counted in characters.
    pub column: u32,
}

#[derive(Debug)]
pub struct Node {
    /// Position of the value; for an alias, the position of its anchor.
    pub place: Position,
    pub data: Data,
    /// Number of values in this node: itself and all nested values.
    pub(super) values: usize,
}

#[derive(Debug)]
pub enum Data {
    /// No value, as in `key:`, `~` or `null`.
    Nothing,
    /// Text without quotes, which may also be a number, `true` or `false`.
    Plain(String),
    /// Text in quotes or with the tag `!!str`, which is never a number, `true` or `false`.
    Quoted(String),
    List(Vec<Rc<Node>>),
    /// Keys with values in the order of the file, without duplicates.
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub place: Position,
    pub key: String,
    pub value: Rc<Node>,
}

impl Node {
    /// Returns a scalar's text as written, `""` for no value, `None` for a list or a mapping.
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Nothing => Some(""),
            Data::Plain(text) | Data::Quoted(text) => Some(text),
            Data::List(_) | Data::Map(_) => None,
        }
    }
}

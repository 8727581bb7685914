//! The values of a YAML text, with their places.

use std::rc::Rc;

/// Where something begins; both are counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The character of the line.
    pub column: u32,
}

/// A value and its place.
#[derive(Debug)]
pub struct Node {
    /// Where it begins; of what an alias stands for, where its anchor is.
    pub place: Place,
    /// What it is.
    pub data: Data,
    /// How many values it is, those inside of it included.
    pub(super) values: usize,
}

/// A value.
#[derive(Debug)]
pub enum Data {
    /// Nothing, as in `key:`, `~` or `null`.
    Nothing,
    /// Text without quotes, which may be a number, or `true` or `false`.
    Plain(String),
    /// Text that can be nothing else.
    Quoted(String),
    /// A list.
    List(Vec<Rc<Node>>),
    /// Keys with values in the file's order, each key once.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where the key begins.
    pub place: Place,
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Rc<Node>,
}

impl Node {
    /// The text of a plain value as it was written; nothing is the empty text. `None` for a list or
    /// a mapping.
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Nothing => Some(""),
            Data::Plain(text) | Data::Quoted(text) => Some(text),
            Data::List(_) | Data::Map(_) => None,
        }
    }
}

//! Errors in a YAML text, with their position.

use super::Position;
use serde::de::{Expected, Unexpected};
use std::fmt::{self, Display};

/// An error with its position and key. It never quotes a value, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// `None` until a caller that knows the position adds it.
    place: Option<Position>,
    /// The path of keys, as in `remote_write[0].url`; empty for the whole document.
    key: String,
    what: String,
    /// Whether the last key of the path is unknown.
    is_unknown_key: bool,
}

impl Error {
    /// Makes an error at a position; `key` is empty for the whole document.
    pub fn new(place: Position, key: impl Into<String>, what: impl Display) -> Error {
        Error { place: Some(place), key: key.into(), what: what.to_string(), is_unknown_key: false }
    }

    pub fn place(&self) -> Position {
        self.place.unwrap_or(Position { line: 1, column: 1 })
    }

    /// Path of the keys, as in `remote_write[0].url`; empty for the whole document.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is wrong, without place and key.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Memory that the error takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Error>() + self.key.len() + self.what.len()
    }

    /// Adds an outer key, or a list's item such as `[0]`. A known position stays: it is more exact.
    pub(super) fn within(mut self, place: Position, key: &str) -> Error {
        self.place.get_or_insert(place);
        let is_joined = !key.is_empty() && !self.key.is_empty() && !self.key.starts_with('[');
        let dot = if is_joined { "." } else { "" };
        self.key = format!("{key}{dot}{}", self.key);
        self
    }

    /// Adds the keys of another part of the section to a message about an unknown key.
    pub(super) fn knowing_more_keys(mut self, keys: &[&str]) -> Error {
        // A longer path leads to a nested mapping, which has other keys.
        if self.is_unknown_key && !self.key.contains(['.', '[']) {
            self.what = format!("{}, {}", self.what, keys.join(", "));
        }
        self
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.place();
        let colon = if self.key.is_empty() { "" } else { ": " };
        write!(f, "{line}:{column}: {}{colon}{}", self.key, self.what)
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: Display>(what: T) -> Error {
        Error { place: None, key: String::new(), what: what.to_string(), is_unknown_key: false }
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Error {
        // The message omits the value that was found, which may be a secret.
        Error::custom(format_args!("expected {expected}"))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Error {
        Error::custom(format_args!("expected {expected}"))
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Error {
        Error::custom(format_args!("expected one of {}", known.join(", ")))
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Error {
        let what = format!("there is no such key; there are {}", known.join(", "));
        Error { is_unknown_key: true, ..Error::custom(what) }
    }

    fn missing_field(key: &'static str) -> Error {
        Error::custom(format_args!("{key} is missing"))
    }
}

//! Errors of a YAML text, with their place.

use super::Place;
use serde::de::{Expected, Unexpected};
use std::fmt::{self, Display};

/// What is wrong, at which place and key. It quotes no values: they may be secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where; `None` until the caller that knows it adds it.
    place: Option<Place>,
    /// The keys that lead there, as in `remote_write[0].url`; empty if it concerns the whole.
    key: String,
    what: String,
    /// Whether the last of the keys is unknown.
    is_unknown_key: bool,
}

impl Error {
    /// Something that is wrong at a place, under a key or at the top.
    pub fn new(place: Place, key: impl Into<String>, what: impl Display) -> Error {
        Error { place: Some(place), key: key.into(), what: what.to_string(), is_unknown_key: false }
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        self.place.unwrap_or(Place { line: 1, column: 1 })
    }

    /// The same, known to be inside of a key or, as in `[0]`, of an item of a list. A place that is
    /// known already is more exact.
    pub(super) fn within(mut self, place: Place, key: &str) -> Error {
        self.place.get_or_insert(place);
        let is_joined = !key.is_empty() && !self.key.is_empty() && !self.key.starts_with('[');
        let dot = if is_joined { "." } else { "" };
        self.key = format!("{key}{dot}{}", self.key);
        self
    }

    /// The same of a mapping that has these keys, too.
    pub(super) fn knowing_more_keys(mut self, keys: &[&str]) -> Error {
        if self.is_unknown_key && !self.key.contains(['.', '[']) {
            self.what = format!("{}, {}", self.what, keys.join(", "));
        }
        self
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place();
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

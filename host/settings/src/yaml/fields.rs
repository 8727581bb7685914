//! Functions for `#[serde(deserialize_with = "…")]`, and helpers for writing more of them.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use std::fmt::{self, Display};
use std::marker::PhantomData;

/// Reads a plain value with a function that parses its text.
pub fn parsed<'de, D: Deserializer<'de>, T, E: Display>(
    deserializer: D,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    read(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Reads a section as `S` and converts it to the type that validates it.
pub fn checked<'de, D, S, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    S: Deserialize<'de>,
    T: TryFrom<S, Error = &'static str>,
{
    let section = S::deserialize(deserializer)?;
    T::try_from(section).map(Some).map_err(D::Error::custom)
}

/// Reads a whole number from `MIN` to `MAX`, both included; `T` must be able to hold both.
pub fn number<'de, D: Deserializer<'de>, T: TryFrom<u64>, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<T, D::Error> {
    let wrong = || D::Error::custom(format_args!("expected a whole number from {MIN} to {MAX}"));
    // One message for every fault, because it contains the bounds.
    let number = u64::deserialize(deserializer).map_err(|_| wrong())?;
    let number = Some(number).filter(|number| (MIN..=MAX).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(wrong)
}

/// Reads all keys of a mapping with their values, in the file's order.
pub fn pairs<'de, D, K, V>(deserializer: D) -> Result<Vec<(K, V)>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de>,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(Pairs(PhantomData))
}

struct Pairs<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Pairs<K, V> {
    type Value = Vec<(K, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lines of the form `key: value`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<(K, V)>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

//! YAML for configuration: text becomes nodes that know their place, and nodes become the types of
//! the features that own them, by serde. Errors name line, column and key, and never contain a
//! value, which may be a secret.
//!
//! As strict as Prometheus' own reading: a key twice, an unknown key or a value of another kind is
//! an error. Anchors, aliases and merge keys are read; what aliases may expand to has a bound.
//!
//! Begin with `node`, then `load`, `scalar`, `de` and `fields`. Knows nothing of any section.

mod de;
mod error;
mod fields;
mod load;
mod node;
mod scalar;

pub use de::{At, Part, With};
pub use error::Error;
pub use fields::{checked, number, pairs, parsed};
pub use load::{Take, load, load_counted};
pub use node::{Data, Entry, Node, Place};

use serde::de::{DeserializeOwned, DeserializeSeed};

/// The value that a node stands for. Errors call it by this key.
pub fn read<T: DeserializeOwned>(key: &str, node: &Node) -> Result<T, Error> {
    T::deserialize(de::Reader(node)).map_err(|error| error.within(node.place, key))
}

/// What a seed makes of a node. Errors call it by this key.
pub fn read_seed<T>(
    key: &str,
    node: &Node,
    seed: impl for<'de> DeserializeSeed<'de, Value = T>,
) -> Result<T, Error> {
    seed.deserialize(de::Reader(node)).map_err(|error| error.within(node.place, key))
}

#[cfg(test)]
mod tests;

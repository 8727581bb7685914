//! YAML for configuration: text is parsed into nodes with positions, and serde deserializes nodes
//! into the types of the features. Errors contain line, column and key, but never a value, which
//! may be a secret.
//!
//! As strict as Prometheus: a duplicate key, an unknown key or a value of another type is an error.
//! Anchors, aliases and merge keys are supported; the expansion of aliases is limited.
//!
//! Begin with `node`, then `load`, `scalar`, `de` and `fields`. This module knows no section.

mod de;
mod error;
mod fields;
mod load;
mod node;
mod scalar;

pub use de::{At, Part, With};
pub use error::Error;
pub use fields::{checked, number, pairs, parsed};
pub use load::{First, Take, load, load_counted, load_first};
pub use node::{Data, Entry, Node, Position};

use serde::de::{DeserializeOwned, DeserializeSeed};

/// Deserializes the value of a node. Errors begin with `key`.
pub fn read<T: DeserializeOwned>(key: &str, node: &Node) -> Result<T, Error> {
    T::deserialize(de::Reader(node)).map_err(|error| error.within(node.place, key))
}

/// Deserializes a node with a seed. Errors begin with `key`.
pub fn read_seed<T>(
    key: &str,
    node: &Node,
    seed: impl for<'de> DeserializeSeed<'de, Value = T>,
) -> Result<T, Error> {
    seed.deserialize(de::Reader(node)).map_err(|error| error.within(node.place, key))
}

#[cfg(test)]
mod tests;

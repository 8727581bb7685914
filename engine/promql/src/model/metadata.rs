//! Labels that describe a metric: name, type and unit.

use super::Labels;

const METADATA: [&str; 2] = ["__type__", "__unit__"];

pub const NAME: &str = "__name__";

pub fn is_metadata(name: &str) -> bool {
    name == NAME || METADATA.contains(&name)
}

pub fn drop_metadata(labels: &mut Labels) {
    labels.retain(|name, _| !is_metadata(name));
}

/// Returns whether a label set has a type or a unit.
pub fn has_metadata(labels: &Labels) -> bool {
    METADATA.iter().any(|name| !labels.get(name).is_empty())
}

/// Returns whether the first label after the name sorts after type and unit. All series that follow
/// in label order have neither, so series of one name differ in other labels.
pub fn begins_behind_metadata(labels: &Labels) -> bool {
    let first = labels.iter().map(|(name, _)| name).find(|name| *name != NAME);
    first.is_some_and(|first| METADATA.iter().all(|name| first > *name))
}

//! Labels that say what a metric is: its name, type and unit.

use super::Labels;

/// Labels that say what a metric is, beside its name.
const METADATA: [&str; 2] = ["__type__", "__unit__"];

/// The metric's name.
pub const NAME: &str = "__name__";

/// Whether a label is the metric's name, type or unit.
pub fn is_metadata(name: &str) -> bool {
    name == NAME || METADATA.contains(&name)
}

/// Takes name, type and unit out.
pub fn drop_metadata(labels: &mut Labels) {
    labels.retain(|name, _| !is_metadata(name));
}

/// Whether there is a type or a unit.
pub fn has_metadata(labels: &Labels) -> bool {
    METADATA.iter().any(|name| !labels.get(name).is_empty())
}

/// Whether the first label beside the name comes behind type and unit. In the order of labels all
/// that follow have neither, so that series of one name differ in other labels.
pub fn begins_behind_metadata(labels: &Labels) -> bool {
    let first = labels.iter().map(|(name, _)| name).find(|name| *name != NAME);
    first.is_some_and(|first| METADATA.iter().all(|name| first > *name))
}

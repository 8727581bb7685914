//! A label set, packed into one text that clones share.
//!
//! ```text
//! 8:__name__2:up3:job4:node
//! ```
//!
//! Each name and value follows its length in bytes. Names ascend by their bytes without duplicates
//! and no value is empty, so that equal sets are equal texts. Sets have the order of their texts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub const METRIC_NAME: &str = "__name__";

pub const ALERT_NAME: &str = "alertname";

#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelSet(Arc<str>);

impl LabelSet {
    /// Packs labels in any order; the last value of a name wins, and an empty one removes it.
    pub fn new<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> LabelSet {
        LabelSet::sorted(labels.into_iter().collect::<BTreeMap<_, _>>())
    }

    /// Packs labels that ascend by name without duplicates; those with an empty value are dropped.
    pub fn sorted<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> LabelSet {
        use fmt::Write as _;
        let mut text = String::new();
        for (name, value) in labels.into_iter().filter(|(_, value)| !value.is_empty()) {
            // Writing to a string does not fail.
            let _ = write!(text, "{}:{name}{}:{value}", name.len(), value.len());
        }
        LabelSet(text.into())
    }

    pub fn of(map: &BTreeMap<String, String>) -> LabelSet {
        LabelSet::sorted(map.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Sets labels; an empty value removes one.
    #[must_use]
    pub fn with<'a>(&'a self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> LabelSet {
        LabelSet::new(self.iter().chain(labels))
    }

    #[must_use]
    pub fn without(&self, name: &str) -> LabelSet {
        LabelSet::sorted(self.iter().filter(|(found, _)| *found != name))
    }

    /// Returns the value of a label, or an empty text if the label is absent.
    pub fn get(&self, name: &str) -> &str {
        self.iter().find(|(found, _)| *found == name).map_or("", |(_, value)| value)
    }

    /// Yields names and values, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || Some((piece(&mut rest)?, piece(&mut rest)?)))
    }

    /// Returns the memory of the text, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Splits off the next name or value. All texts come from `sorted`, so none ends within one.
fn piece<'a>(text: &mut &'a str) -> Option<&'a str> {
    let (length, rest) = text.split_once(':')?;
    let (piece, rest) = rest.split_at_checked(length.parse().ok()?)?;
    *text = rest;
    Some(piece)
}

/// Prints a set as Prometheus does: `{__name__="up", job="node"}`.
impl fmt::Display for LabelSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        let mut comma = "";
        for (name, value) in self.iter() {
            write!(f, "{comma}{name}={value:?}")?;
            comma = ", ";
        }
        f.write_str("}")
    }
}

impl fmt::Debug for LabelSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_value_removes_a_label() {
        let set = LabelSet::new([("job", "node"), ("a", "1"), ("job", ""), ("b", "2")]);
        assert_eq!(set.to_string(), r#"{a="1", b="2"}"#);
        assert_eq!(set.with([("a", ""), ("c", "3")]), LabelSet::new([("c", "3"), ("b", "2")]));
        assert_eq!(set.with([("a", ""), ("b", "")]), LabelSet::default());
        assert_eq!((set.get("b"), set.get("job")), ("2", ""));
        assert_eq!(set.without("a"), LabelSet::new([("b", "2")]));
    }

    proptest! {
        #[test]
        fn a_set_is_the_map_that_it_was_made_of(
            map in prop::collection::btree_map(".{0,6}", ".{1,6}", 0..5)
        ) {
            prop_assert_eq!(LabelSet::of(&map).to_map(), map);
        }
    }
}

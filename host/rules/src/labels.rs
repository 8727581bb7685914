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

/// Length of the text of most sets.
const USUAL_BYTES: usize = 128;

#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelSet(Arc<str>);

impl LabelSet {
    /// Packs labels in any order; the last value of a name wins, and an empty one removes it.
    pub fn new<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> LabelSet {
        LabelSet::sorted(labels.into_iter().collect::<BTreeMap<_, _>>())
    }

    /// Packs labels that ascend by name without duplicates; those with an empty value are dropped.
    pub fn sorted<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> LabelSet {
        let mut text = String::with_capacity(USUAL_BYTES);
        for (name, value) in labels.into_iter().filter(|(_, value)| !value.is_empty()) {
            push_piece(&mut text, name);
            push_piece(&mut text, value);
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
        let mut new: Vec<(&str, &str)> = labels.into_iter().collect();
        // The sort is stable, and the last value of a name wins.
        new.sort_by_key(|(name, _)| *name);
        let (mut old, mut new) = (self.iter().peekable(), new.into_iter().peekable());
        LabelSet::sorted(std::iter::from_fn(|| {
            let Some((name, _)) = new.peek().copied() else { return old.next() };
            if let Some(before) = old.next_if(|(other, _)| *other < name) {
                return Some(before);
            }
            old.next_if(|(other, _)| *other == name);
            let mut last = new.next();
            while let Some(again) = new.next_if(|(other, _)| *other == name) {
                last = Some(again);
            }
            last
        }))
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

/// Appends a name or value behind its length. Not by `write!`, which takes longer than the rest.
fn push_piece(text: &mut String, piece: &str) {
    let (mut digits, mut begin, mut left) = ([b'0'; 20], 19, piece.len());
    while left >= 10 {
        digits[begin] += (left % 10) as u8;
        left /= 10;
        begin -= 1;
    }
    digits[begin] += left as u8;
    text.extend(digits[begin..].iter().map(|digit| char::from(*digit)));
    text.push(':');
    text.push_str(piece);
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

        #[test]
        fn labels_of_a_set_are_set_as_those_of_a_map(
            mut map in prop::collection::btree_map("[a-f]{1,2}", ".{1,12}", 0..5),
            new in prop::collection::vec(("[a-f]{1,2}", ".{0,12}"), 0..6),
        ) {
            let pairs = new.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let set = LabelSet::of(&map).with(pairs);
            map.extend(new.clone());
            map.retain(|_, value| !value.is_empty());
            prop_assert_eq!(set, LabelSet::of(&map));
        }
    }
}

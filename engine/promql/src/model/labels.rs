//! A label set in compact form.

use crate::syntax::{push_name, push_quoted};
use std::cmp::Ordering;
use std::fmt;

/// Overhead of an allocation in bytes, roughly.
const ALLOCATION_BYTES: usize = 12;

/// Number of labels for which a new set has room.
const LABELS_USUAL: usize = 8;

/// A label set in the order of names, without repeated names or empty values. One string has all
/// texts, so that a set needs two allocations, however many labels it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels {
    /// Texts in the order name, value, name, value, …
    text: String,
    /// Ends of name and value of each label in `text`.
    ends: Vec<Ends>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ends {
    name: u32,
    value: u32,
}

impl Labels {
    /// Makes a set of labels in any order. The last value of a name wins; empty values are dropped.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(labels: impl IntoIterator<Item = (N, V)>) -> Labels {
        let labels = labels.into_iter();
        let ends = Vec::with_capacity(labels.size_hint().0);
        let mut set = Labels { text: String::new(), ends };
        for (name, value) in labels {
            set.set(name.as_ref(), value.as_ref());
        }
        set
    }

    /// Makes a set of sorted labels without empty values; reserves `bytes` for their texts.
    pub fn from_sorted<'a>(
        bytes: usize,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Labels {
        let (text, ends) = (String::with_capacity(bytes), Vec::with_capacity(LABELS_USUAL));
        let mut set = Labels { text, ends };
        labels.into_iter().for_each(|(name, value)| set.push(name, value));
        set
    }

    /// Returns the value of a label; empty if the label is missing.
    pub fn get(&self, name: &str) -> &str {
        match self.place(name) {
            Ok(place) => self.label(place).1,
            Err(_) => "",
        }
    }

    /// Sets a label; an empty value removes the label.
    pub fn set(&mut self, name: &str, value: &str) {
        let last = self.ends.len().checked_sub(1);
        // Labels usually arrive in order; appending needs no search and moves nothing.
        if last.is_none_or(|last| self.label(last).0 < name) {
            if !value.is_empty() {
                self.push(name, value);
            }
            return;
        }
        match (self.place(name), value.is_empty()) {
            (Ok(place), true) => self.replace(place..place + 1, None),
            (Ok(place), false) => self.replace(place..place + 1, Some((name, value))),
            (Err(_), true) => {}
            (Err(place), false) => self.replace(place..place, Some((name, value))),
        }
    }

    /// Removes a label, if it exists.
    pub fn remove(&mut self, name: &str) {
        self.set(name, "");
    }

    /// Keeps the labels for which the test holds.
    pub fn retain(&mut self, mut test: impl FnMut(&str, &str) -> bool) {
        // From the end, so that a removal does not move labels that are still to be tested.
        for place in (0..self.ends.len()).rev() {
            let (name, value) = self.label(place);
            if !test(name, value) {
                self.replace(place..place + 1, None);
            }
        }
    }

    /// Returns a copy of the labels whose names pass the test.
    pub fn filtered(&self, test: impl Fn(&str) -> bool) -> Labels {
        Labels::new(self.iter().filter(|(name, _)| test(name)))
    }

    /// Iterates over the labels by ascending name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        (0..self.ends.len()).map(|place| self.label(place))
    }

    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Estimates the memory of the set in bytes, with its allocations.
    pub fn bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<Ends>() + 2 * ALLOCATION_BYTES
    }

    /// Returns the offset in `text` at which a label begins.
    fn start(&self, place: usize) -> usize {
        place
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .map_or(0, |e| e.value as usize)
    }

    fn label(&self, place: usize) -> (&str, &str) {
        let Some(ends) = self.ends.get(place) else { return ("", "") };
        let (name_end, value_end) = (ends.name as usize, ends.value as usize);
        (&self.text[self.start(place)..name_end], &self.text[name_end..value_end])
    }

    fn push(&mut self, name: &str, value: &str) {
        self.text.push_str(name);
        let name_end = self.text.len() as u32;
        self.text.push_str(value);
        self.ends.push(Ends { name: name_end, value: self.text.len() as u32 });
    }

    fn replace(&mut self, places: std::ops::Range<usize>, label: Option<(&str, &str)>) {
        let (start, end) = (self.start(places.start), self.start(places.end));
        let (name, value) = label.unwrap_or_default();
        let name_end = start + name.len();
        let value_end = name_end + value.len();
        self.text.replace_range(start..end, name);
        self.text.insert_str(name_end, value);
        for ends in &mut self.ends[places.end..] {
            // The addition comes first, because the difference may be negative.
            ends.name = (ends.name as usize + value_end - end) as u32;
            ends.value = (ends.value as usize + value_end - end) as u32;
        }
        let ends = Ends { name: name_end as u32, value: value_end as u32 };
        self.ends.splice(places, label.map(|_| ends));
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        // The start of a label is the end of the previous one, so `binary_search` does not apply.
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.label(middle).0.cmp(name) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }
}

impl Ord for Labels {
    fn cmp(&self, other: &Labels) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Labels) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Labels {
    /// As upstream prints label sets: `{a="b", c="d"}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::from("{");
        for (i, (name, value)) in self.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            push_name(name, &mut out);
            out.push('=');
            push_quoted(value, &mut out);
        }
        out.push('}');
        f.write_str(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_set_is_a_sorted_map_without_empty_values(
            changes in prop::collection::vec(("[a-dé]{1,2}", "[xyß]{0,3}"), 0..20),
            kept in "[a-d]",
        ) {
            let (mut set, mut map) = (Labels::default(), BTreeMap::new());
            for (name, value) in &changes {
                set.set(name, value);
                match value.is_empty() {
                    true => map.remove(name),
                    false => map.insert(name.clone(), value.clone()),
                };
                prop_assert_eq!(set.get(name), value);
            }
            let pairs = |map: &BTreeMap<String, String>| Vec::from_iter(map.clone());
            let labels = |set: &Labels| -> Vec<(String, String)> {
                set.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
            };
            prop_assert_eq!(labels(&set), pairs(&map));
            prop_assert_eq!(&Labels::new(map.iter().rev()), &set);
            let sorted = map.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            prop_assert_eq!(&Labels::from_sorted(0, sorted), &set);
            prop_assert_eq!(Labels::new(&map).cmp(&set), Ordering::Equal);
            let filtered = set.filtered(|name| name.starts_with(&kept));
            let before = set.clone();
            set.retain(|name, value| name.starts_with(&kept) && !value.starts_with('x'));
            map.retain(|name, value| name.starts_with(&kept) && !value.starts_with('x'));
            prop_assert_eq!(labels(&set), pairs(&map));
            prop_assert_eq!(before.cmp(&filtered), labels(&before).cmp(&labels(&filtered)));
        }
    }
}

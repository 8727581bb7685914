//! Keys of groups and joins: parts of label sets, numbered.

use crate::model::{KeyLabels, Labels, hash_labels};
use crate::plan::Grid;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use tidepool_model::sort;

/// Numbers keys in the order of their first appearance.
#[derive(Debug, Default)]
pub struct KeyIndex {
    first: HashMap<u64, u32, BuildHasherDefault<Identity>>,
    keys: Vec<Key>,
    bytes: usize,
}

#[derive(Debug)]
struct Key {
    labels: Labels,
    next: Option<u32>,
}

impl KeyIndex {
    /// Returns the number of the key of `labels`, and whether the key is new.
    pub fn insert(&mut self, by: &KeyLabels, labels: &Labels) -> (usize, bool) {
        self.enter(by.hash(labels), |key| by.is_key(key, labels), || by.of(labels))
    }

    pub fn clear(&mut self) {
        self.first.clear();
        self.keys.clear();
        self.bytes = 0;
    }

    /// Returns the number of a whole label set, and whether the set is new.
    pub fn insert_all(&mut self, labels: &Labels) -> (usize, bool) {
        self.enter(hash_labels(labels.iter()), |key| key == labels, || labels.clone())
    }

    /// Returns the number of the key of `labels`, if the key is known.
    pub fn find(&self, by: &KeyLabels, labels: &Labels) -> Option<usize> {
        self.search(by.hash(labels), |key| by.is_key(key, labels)).ok()
    }

    /// Returns the number of a whole label set, if the set is known.
    pub fn find_all(&self, labels: &Labels) -> Option<usize> {
        self.search(hash_labels(labels.iter()), |key| key == labels).ok()
    }

    pub fn labels(&self, number: usize) -> &Labels {
        &self.keys[number].labels
    }

    /// All keys in the order of their numbers.
    pub fn into_labels(self) -> impl Iterator<Item = Labels> {
        self.keys.into_iter().map(|key| key.labels)
    }

    /// Pairs all keys with their groups, for a range query in the order of labels: which series is
    /// first depends on the start of the range, but the order of the answer must not.
    pub fn into_groups<T>(self, groups: Vec<T>, grid: Grid) -> Vec<(Labels, T)> {
        let mut all: Vec<(Labels, T)> = self.into_labels().zip(groups).collect();
        if grid.is_of_range() {
            sort::sort_by(&mut all, |(a, _), (b, _)| a.cmp(b));
        }
        all
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of a key, or if it is unknown, the last number with the same hash.
    fn search(&self, hash: u64, is_it: impl Fn(&Labels) -> bool) -> Result<usize, Option<usize>> {
        let mut at = self.first.get(&hash).copied();
        let mut last = None;
        // Keys of one hash form a list, so equal hashes do not mix groups.
        while let Some(number) = at {
            let key = &self.keys[number as usize];
            if is_it(&key.labels) {
                return Ok(number as usize);
            }
            last = Some(number as usize);
            at = key.next;
        }
        Err(last)
    }

    fn enter(
        &mut self,
        hash: u64,
        is_it: impl Fn(&Labels) -> bool,
        make: impl Fn() -> Labels,
    ) -> (usize, bool) {
        let last = match self.search(hash, is_it) {
            Ok(number) => return (number, false),
            Err(last) => last,
        };
        // A key needs dozens of bytes, so memory is full long before the number exceeds 32 bits.
        let number = self.keys.len();
        match last {
            Some(last) => self.keys[last].next = Some(number as u32),
            None => drop(self.first.insert(hash, number as u32)),
        }
        let labels = make();
        self.bytes += labels.bytes() + size_of::<Key>() + 16;
        self.keys.push(Key { labels, next: None });
        (number, true)
    }
}

/// A hasher for values that are hashes already.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// A set of label hashes that were seen before.
pub type HashSet = std::collections::HashSet<u64, BuildHasherDefault<Identity>>;

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().copied())
    }

    #[test]
    fn keys_are_numbered_as_they_come() {
        let by = KeyLabels::with(&["b".into(), "a".into()]);
        let mut index = KeyIndex::default();
        assert_eq!(index.insert(&by, &labels(&[("a", "1"), ("x", "1")])), (0, true));
        assert_eq!(index.insert(&by, &labels(&[("a", "1"), ("b", "2")])), (1, true));
        assert_eq!(index.insert(&by, &labels(&[("a", "1"), ("x", "2")])), (0, false));
        assert_eq!(index.labels(1), &labels(&[("a", "1"), ("b", "2")]));
        assert_eq!(index.find(&by, &labels(&[("b", "2")])), None);
    }

    #[test]
    fn a_key_without_labels_has_no_name() {
        let by = KeyLabels::without(&["x".into()]);
        let mut index = KeyIndex::default();
        index.insert(&by, &labels(&[("__name__", "m"), ("a", "1"), ("x", "1")]));
        assert_eq!(index.labels(0), &labels(&[("a", "1")]));
        assert_eq!(index.find(&by, &labels(&[("__name__", "n"), ("a", "1")])), Some(0));
    }
}

//! A sorted list that merges in new items a few at a time: sorting a million items at once would
//! delay writes for seconds.

use std::cmp::Ordering;
use std::rc::Rc;
use tidepool_model::sort;

/// Sorted items, and new ones that are not merged in yet. No two items compare as equal.
pub struct Sorted<T> {
    /// Shared with the readers that walk over it.
    sorted: Rc<Vec<T>>,
    new: Vec<T>,
}

impl<T: Copy> Sorted<T> {
    pub fn of(items: Vec<T>) -> Sorted<T> {
        Sorted { sorted: Rc::default(), new: items }
    }

    pub fn insert(&mut self, item: T) {
        self.new.push(item);
    }

    pub fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        // Readers that share the list keep it as it is: the list is copied then.
        Rc::make_mut(&mut self.sorted).retain(&mut keeps);
        self.new.retain(&mut keeps);
    }

    /// Merges in at most `count_max` new items. Returns all items in order if no new ones are left;
    /// otherwise the next call continues.
    pub fn all(
        &mut self,
        count_max: usize,
        compare: impl Fn(T, T) -> Ordering,
    ) -> Option<Rc<Vec<T>>> {
        if !self.new.is_empty() {
            let mut some = self.new.split_off(self.new.len().saturating_sub(count_max));
            sort::sort_by(&mut some, |a, b| compare(*a, *b));
            self.merge(&some, compare);
            if self.new.is_empty() {
                // Frees the buffer, which may have held all items.
                self.new = Vec::new();
            }
        }
        self.new.is_empty().then(|| Rc::clone(&self.sorted))
    }

    /// Merges sorted new items in, finding the position of each by binary search.
    fn merge(&mut self, new: &[T], compare: impl Fn(T, T) -> Ordering) {
        // With room for the items still new: lists of equal size can reuse each other's memory.
        let mut merged = Vec::with_capacity(self.sorted.len() + new.len() + self.new.len());
        let mut rest = self.sorted.as_slice();
        for item in new {
            let is_before = |other: &T| compare(*other, *item) == Ordering::Less;
            let (before, after) = rest.split_at(rest.partition_point(is_before));
            merged.extend_from_slice(before);
            merged.push(*item);
            rest = after;
        }
        merged.extend_from_slice(rest);
        self.sorted = Rc::new(merged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Items come and go between calls, and few are sorted in at a time.
        #[test]
        fn order_is_that_of_sorting(
            steps in proptest::collection::vec((0..4, 0u32..200, 1u32..200), 1..60),
            count_max in 1usize..40,
        ) {
            let mut held: Vec<u32> = Vec::new();
            let mut sorted = Sorted::of(Vec::new());
            let key = |item: u32| item.wrapping_mul(2_654_435_761);
            for (kind, number, every) in steps {
                match kind {
                    0 | 1 if !held.contains(&number) => {
                        held.push(number);
                        sorted.insert(number);
                    }
                    2 => {
                        let keeps = |other: &u32| other % every != number % every;
                        held.retain(keeps);
                        sorted.retain(keeps);
                    }
                    _ => {
                        let mut calls = 0;
                        let got = loop {
                            calls += 1;
                            let compare = |a, b| key(a).cmp(&key(b));
                            if let Some(all) = sorted.all(count_max, compare) {
                                break all;
                            }
                        };
                        let mut expected = held.clone();
                        expected.sort_by_key(|item| key(*item));
                        prop_assert_eq!(got.as_slice(), expected.as_slice());
                        prop_assert!(calls <= held.len() / count_max + 1);
                    }
                }
            }
        }
    }
}

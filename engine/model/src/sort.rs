//! A stable sort that is compiled once for all types.
//!
//! The standard library's sorts are compiled for each type and each order, at about 6 kB of
//! WebAssembly each: they were a ninth of the engine. Sorts that run once for a query, a block or a
//! page use this module, which sorts positions. Sorts of samples and rows use the library's.

use std::cmp::Ordering;

/// Sorts `items`. Equal items keep their order.
///
/// Needs a `usize` of memory for each item, unless `items` are in order already.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    if let Some(order) = sorted_positions(items.len(), &mut |a, b| compare(&items[a], &items[b])) {
        arrange(items, order);
    }
}

/// Sorts `items` by a key, which is computed for each comparison.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts `items` by their own order.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Returns the indexes of the items in sorted order, or `None` if all items are in order already.
#[inline(never)]
fn sorted_positions(
    len: usize,
    compare: &mut dyn FnMut(usize, usize) -> Ordering,
) -> Option<Vec<usize>> {
    if (1..len).all(|i| compare(i - 1, i).is_le()) {
        return None;
    }
    let mut positions: Vec<usize> = (0..len).collect();
    positions.sort_by(|a, b| compare(*a, *b));
    Some(positions)
}

/// Moves each item to its sorted position, one cycle of the permutation after the other.
fn arrange<T>(items: &mut [T], mut positions: Vec<usize>) {
    for start in 0..positions.len() {
        let mut to = start;
        // Each position is set to itself once its item has arrived, so each cycle is walked once.
        loop {
            let from = std::mem::replace(&mut positions[to], to);
            if from == start {
                break;
            }
            items.swap(to, from);
            to = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_standard_library(
            items in prop::collection::vec((0..9u8, any::<u16>()), 0..200),
        ) {
            let (mut ours, mut expected) = (items.clone(), items);
            sort_by_key(&mut ours, |(key, _)| *key);
            expected.sort_by_key(|(key, _)| *key);
            prop_assert_eq!(&ours, &expected);
            sort(&mut ours);
            expected.sort();
            prop_assert_eq!(ours, expected);
        }
    }

    #[test]
    fn items_in_order_are_compared_once_each() {
        let mut comparisons = 0;
        sort_by(&mut [1, 2, 2, 3], |a, b| {
            comparisons += 1;
            a.cmp(b)
        });
        assert_eq!(comparisons, 3);
    }
}

//! Operations on ascending lists without duplicates, as postings are.

/// If one list is this many times longer, that list is searched instead of scanned.
const SEARCH_RATIO: usize = 16;

/// Returns the elements that both lists have.
pub fn intersection<T: Copy + Ord>(a: &[T], b: &[T]) -> Vec<T> {
    let (short, mut long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut both = Vec::with_capacity(short.len());
    // A search for each element pays only in a list that is much longer.
    let search = long.len() / SEARCH_RATIO > short.len();
    for element in short {
        long = skip_to(long, element, search);
        match long.first() {
            None => break,
            Some(first) if first == element => both.push(*element),
            Some(_) => {}
        }
    }
    both
}

/// Returns the elements of `a` that `b` does not have.
pub fn difference<T: Copy + Ord>(a: &[T], mut b: &[T]) -> Vec<T> {
    let mut left = Vec::with_capacity(a.len());
    let search = b.len() / SEARCH_RATIO > a.len();
    for element in a {
        b = skip_to(b, element, search);
        if b.first() != Some(element) {
            left.push(*element);
        }
    }
    left
}

/// Returns whether two ascending lists share an element.
pub fn intersects<T: Copy + Ord>(a: &[T], b: &[T]) -> bool {
    let (short, mut long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    for element in short {
        long = skip_to(long, element, true);
        match long.first() {
            None => return false,
            Some(first) if first == element => return true,
            Some(_) => {}
        }
    }
    false
}

/// Sorts concatenated lists into one without duplicates. This costs less than a merge of many
/// lists, and hardly more than a merge of two.
pub(super) fn sort_union<T: Copy + Ord>(all: &mut Vec<T>) {
    // The stable sort detects that each of the lists is an ascending run.
    all.sort();
    all.dedup();
}

/// Returns the part of a list from `element` on.
#[inline]
fn skip_to<'a, T: Ord>(list: &'a [T], element: &T, search: bool) -> &'a [T] {
    let below = if search {
        // Doubling steps first: the next element is rarely far.
        let mut bound = 1;
        while list.get(bound).is_some_and(|other| other < element) {
            bound *= 2;
        }
        let (near, _) = list.split_at(list.len().min(bound + 1));
        near.partition_point(|other| other < element)
    } else {
        list.iter().position(|other| other >= element).unwrap_or(list.len())
    };
    list.get(below..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(values_below: u32, len: usize) -> impl Strategy<Value = BTreeSet<u32>> {
        prop::collection::btree_set(0..values_below, 0..len)
    }

    fn list(set: &BTreeSet<u32>) -> Vec<u32> {
        set.iter().copied().collect()
    }

    proptest! {
        #[test]
        fn agree_with_sets(a in set(300, 100), b in set(300, 100), c in set(4000, 2000), few in set(4000, 9)) {
            for (x, y) in [(&a, &b), (&few, &c), (&c, &few), (&a, &c)] {
                let (lx, ly) = (list(x), list(y));
                prop_assert_eq!(intersection(&lx, &ly), x.intersection(y).copied().collect::<Vec<_>>());
                prop_assert_eq!(difference(&lx, &ly), x.difference(y).copied().collect::<Vec<_>>());
                prop_assert_eq!(intersects(&lx, &ly), !x.is_disjoint(y));
                let mut both = [lx, ly].concat();
                sort_union(&mut both);
                prop_assert_eq!(both, x.union(y).copied().collect::<Vec<_>>());
            }
        }
    }
}

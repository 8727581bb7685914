//! Series in the order of their labels. To bring many in order costs more than all else that the head
//! does for a read, and writes wait meanwhile: so the order is kept from one read to the next.

use super::postings::SlotSet;
use super::series::Slot;
use std::cell::RefCell;
use std::cmp::Ordering;

/// A selection of at least this part of all series makes use of the order of all.
const PART: usize = 16;

/// The order of all series.
#[derive(Default)]
pub struct LabelOrder {
    /// Kept from the first time that somebody asks for many series.
    kept: RefCell<Option<Kept>>,
}

struct Kept {
    sorted: Vec<Slot>,
    /// Series that came since they were sorted.
    new: Vec<Slot>,
}

impl LabelOrder {
    /// There is another series.
    pub fn insert(&mut self, slot: Slot) {
        if let Some(kept) = self.kept.get_mut() {
            kept.new.push(slot);
        }
    }

    /// Some series are gone.
    pub fn remove(&mut self, gone: &SlotSet) {
        if let Some(Kept { sorted, new }) = self.kept.get_mut() {
            sorted.retain(|slot| !gone.contains(*slot));
            new.retain(|slot| !gone.contains(*slot));
        }
    }

    /// Gives the memory back; the next one who asks pays for it.
    pub fn clear(&mut self) {
        self.kept.take();
    }

    /// Brings some of all series in order. No two of them compare as equal.
    pub fn sort(
        &self,
        slots: &mut Vec<Slot>,
        all: &[Slot],
        compare: impl Fn(Slot, Slot) -> Ordering,
    ) {
        if slots.len() * PART < all.len() {
            slots.sort_by(|a, b| compare(*a, *b));
            return;
        }
        let mut kept = self.kept.borrow_mut();
        let kept = kept.get_or_insert_with(|| Kept { sorted: Vec::new(), new: all.to_vec() });
        kept.take_in_new(compare);
        let wanted = SlotSet::of(slots);
        slots.clear();
        slots.extend(kept.sorted.iter().filter(|slot| wanted.contains(**slot)));
    }
}

impl Kept {
    /// Looks for the place of each new one, and compares no others.
    fn take_in_new(&mut self, compare: impl Fn(Slot, Slot) -> Ordering) {
        let Kept { sorted, new } = self;
        if new.is_empty() {
            return;
        }
        new.sort_by(|a, b| compare(*a, *b));
        let mut merged = Vec::with_capacity(sorted.len() + new.len());
        let mut rest = sorted.as_slice();
        for slot in std::mem::take(new) {
            let is_before = |other: &Slot| compare(*other, slot) == Ordering::Less;
            let (before, after) = rest.split_at(rest.partition_point(is_before));
            merged.extend_from_slice(before);
            merged.push(slot);
            rest = after;
        }
        merged.extend_from_slice(rest);
        *sorted = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::slab::Place as _;
    use proptest::prelude::*;

    proptest! {
        /// Whatever comes and goes in between, some of all are in the order that sorting gives.
        #[test]
        fn order_is_that_of_sorting(
            steps in proptest::collection::vec((0..4, 0u32..200, 1u32..200), 1..60),
        ) {
            let mut order = LabelOrder::default();
            let mut all: Vec<Slot> = Vec::new();
            let key = |slot: Slot| slot.number().wrapping_mul(2_654_435_761);
            let compare = |a: Slot, b: Slot| key(a).cmp(&key(b));
            for (kind, number, every) in steps {
                let slot = Slot::of(number);
                match kind {
                    0 | 1 if !all.contains(&slot) => {
                        all.push(slot);
                        all.sort();
                        order.insert(slot);
                    }
                    2 => {
                        all.retain(|other| *other != slot);
                        order.remove(&SlotSet::of(&[slot]));
                    }
                    _ => {
                        let some = |slot: &Slot| slot.number() % every == number % every;
                        let mut slots: Vec<Slot> = all.iter().copied().filter(some).collect();
                        let mut expected = slots.clone();
                        expected.sort_by_key(|slot| key(*slot));
                        order.sort(&mut slots, &all, compare);
                        prop_assert_eq!(slots, expected);
                    }
                }
            }
        }
    }
}

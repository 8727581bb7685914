//! Tracks changes of the store: the time of the oldest sample stored after a given [`Moment`].
//!
//! For a moment only the oldest sample of all later writes matters. So a write is dropped from the
//! list once a later write has an older sample, and the list ascends by write and by sample time. A
//! full list joins neighbours, which may report an older time than the true one, but never a newer.

use std::collections::VecDeque;

/// Maximum number of writes in the list.
const REMEMBERED_MAX: usize = 256;

/// A point in the history of the store: the numbers of writes and of other changes until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    generation: u64,
    writes: u64,
}

#[derive(Default)]
pub struct Changes {
    /// Number of changes other than writes, such as deletions.
    generation: u64,
    writes: u64,
    /// Number of a write, and the oldest sample time of the writes since the previous entry.
    oldest: VecDeque<(u64, i64)>,
}

impl Changes {
    /// Records a write whose oldest sample has this time.
    pub fn stored(&mut self, oldest_ms: i64) {
        self.writes += 1;
        while self.oldest.pop_back_if(|(_, other_ms)| *other_ms >= oldest_ms).is_some() {}
        self.oldest.push_back((self.writes, oldest_ms));
        if self.oldest.len() > REMEMBERED_MAX {
            self.coarsen();
        }
    }

    /// Records a change that may affect any sample.
    pub fn changed(&mut self) {
        self.generation += 1;
        // For moments of an older generation the answer is `None`, so their entries are not needed.
        self.oldest.clear();
    }

    pub fn now(&self) -> Moment {
        Moment { generation: self.generation, writes: self.writes }
    }

    /// Returns the time before which no sample has changed since a moment; `None` if any may have.
    pub fn unchanged_before_ms(&self, since: Moment) -> Option<i64> {
        if since.generation != self.generation {
            return None;
        }
        // The list ascends by both, so the first entry after the moment has the oldest sample.
        let later = self.oldest.partition_point(|(write, _)| *write <= since.writes);
        Some(self.oldest.get(later).map_or(i64::MAX, |(_, oldest_ms)| *oldest_ms))
    }

    /// Joins pairs of entries in the older half, because old moments need less precision.
    fn coarsen(&mut self) {
        let mut place = 0;
        self.oldest.make_contiguous();
        let (older, _) = self.oldest.as_mut_slices();
        for at in (0..REMEMBERED_MAX / 2).step_by(2) {
            // The later number and the older time may report too much change, never too little.
            older[place] = (older[at + 1].0, older[at].1);
            place += 1;
        }
        self.oldest.drain(place..REMEMBERED_MAX / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a list of all writes: never newer than that, exact for recent moments.
        #[test]
        fn the_oldest_since_a_moment(
            times in prop::collection::vec((0..2000i64, any::<bool>()), 1..3 * REMEMBERED_MAX)
        ) {
            let mut changes = Changes::default();
            let (mut all, mut moments) = (Vec::new(), vec![changes.now()]);
            for (place, (time_ms, is_late)) in (0..).zip(times) {
                // Most come in order.
                let time_ms = if is_late { time_ms } else { place * 10 };
                all.push(time_ms);
                changes.stored(time_ms);
                moments.push(changes.now());
                prop_assert!(changes.oldest.len() <= REMEMBERED_MAX);
            }
            for (done, moment) in moments.iter().enumerate() {
                let expected = all[done..].iter().copied().min().unwrap_or(i64::MAX);
                let found = changes.unchanged_before_ms(*moment).expect("no deletion");
                prop_assert!(found <= expected, "{found} {expected}");
                if all.len() - done < REMEMBERED_MAX / 2 {
                    prop_assert_eq!(found, expected);
                }
            }
            changes.changed();
            prop_assert_eq!(changes.unchanged_before_ms(moments[0]), None);
            prop_assert_eq!(changes.unchanged_before_ms(changes.now()), Some(i64::MAX));
        }
    }
}

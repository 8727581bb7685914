//! Tracks changes of the store: the time of the oldest sample stored since a moment.
//!
//! Of all writes since a moment only the oldest sample counts, so a write is dropped from the list
//! once a later one has an older sample. The list ascends by write and by sample time. When it is
//! full, neighbours are joined, which may report an older sample than the true one, never a newer.

use std::collections::VecDeque;

/// Maximum number of writes that are remembered.
const REMEMBERED_MAX: usize = 256;

/// State of the store at a moment: the writes and the other changes until then.
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
    /// Number of a write, and the time of the oldest sample since the previous entry.
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

    /// Records a change that may concern any sample.
    pub fn changed(&mut self) {
        self.generation += 1;
        // No moment of an older generation is answered, so its entries are useless.
        self.oldest.clear();
    }

    pub fn now(&self) -> Moment {
        Moment { generation: self.generation, writes: self.writes }
    }

    /// Returns the time before which nothing changed since a moment; `None` if anything may have.
    pub fn unchanged_before_ms(&self, since: Moment) -> Option<i64> {
        if since.generation != self.generation {
            return None;
        }
        // The list ascends in both, so the first entry after the moment has the oldest sample.
        let later = self.oldest.partition_point(|(write, _)| *write <= since.writes);
        Some(self.oldest.get(later).map_or(i64::MAX, |(_, oldest_ms)| *oldest_ms))
    }

    /// Joins pairs of entries in the older half: old moments need no precision.
    fn coarsen(&mut self) {
        let mut place = 0;
        self.oldest.make_contiguous();
        let (older, _) = self.oldest.as_mut_slices();
        for at in (0..REMEMBERED_MAX / 2).step_by(2) {
            // The later number with the older time may report too much change, never too little.
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

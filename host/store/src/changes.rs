//! What changed in the store: how old the samples were that were stored since a moment.
//!
//! Of all writes since a moment only the oldest sample counts, so a write whose oldest sample is
//! newer than that of a later write need not be remembered: what is left is ascending in both, the
//! writes and their samples. When there are too many, neighbours become one; that says of some
//! moments that older samples came than did, never the reverse.

use std::collections::VecDeque;

/// Writes that are remembered.
const REMEMBERED_MAX: usize = 256;

/// A moment: what was stored until then, and what was not deleted or lost until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    generation: u64,
    writes: u64,
}

/// All that changed.
#[derive(Default)]
pub struct Changes {
    /// How often something changed other than by writes.
    generation: u64,
    /// How many writes there were.
    writes: u64,
    /// Numbers of writes, and the time of the oldest sample since the one before it in this list.
    oldest: VecDeque<(u64, i64)>,
}

impl Changes {
    /// Samples were stored, of which this is the oldest time.
    pub fn stored(&mut self, oldest_ms: i64) {
        self.writes += 1;
        while self.oldest.pop_back_if(|(_, other_ms)| *other_ms >= oldest_ms).is_some() {}
        self.oldest.push_back((self.writes, oldest_ms));
        if self.oldest.len() > REMEMBERED_MAX {
            self.coarsen();
        }
    }

    /// Anything may have changed.
    pub fn changed(&mut self) {
        self.generation += 1;
        self.oldest.clear();
    }

    /// This moment.
    pub fn now(&self) -> Moment {
        Moment { generation: self.generation, writes: self.writes }
    }

    /// The time before which nothing changed since a moment; none if anything may have.
    pub fn unchanged_before_ms(&self, since: Moment) -> Option<i64> {
        if since.generation != self.generation {
            return None;
        }
        let later = self.oldest.partition_point(|(write, _)| *write <= since.writes);
        Some(self.oldest.get(later).map_or(i64::MAX, |(_, oldest_ms)| *oldest_ms))
    }

    /// Makes one of each two in the older half: moments far back need no precision.
    fn coarsen(&mut self) {
        let mut place = 0;
        self.oldest.make_contiguous();
        let (older, _) = self.oldest.as_mut_slices();
        for at in (0..REMEMBERED_MAX / 2).step_by(2) {
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
        /// Against a list of all writes: never newer than the truth, and exact for what is recent.
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

//! The newest sample of each series of a cursor, in four bytes a series.

use rustc_hash::FxHashMap;

/// Marks an age that is too large, so that the time is in `older`.
const OLDER: u32 = u32::MAX;

/// Times of the newest in-order samples of series, by the position of the series.
pub struct Newest {
    head_ms: i64,
    /// Time before `head_ms` in milliseconds, or [`OLDER`].
    ages: Vec<u32>,
    /// Times 49 days or more before `head_ms`, beyond the range of 32 bits.
    older: FxHashMap<u32, i64>,
}

impl Newest {
    pub fn new(head_ms: i64, count: usize) -> Newest {
        Newest { head_ms, ages: Vec::with_capacity(count), older: FxHashMap::default() }
    }

    /// Number of series whose time is known.
    pub fn len(&self) -> usize {
        self.ages.len()
    }

    pub fn push(&mut self, newest_ms: i64) {
        // In 128 bits, since the difference of two times may exceed 64 bits.
        let age = u32::try_from(i128::from(self.head_ms) - i128::from(newest_ms));
        let age = age.unwrap_or(OLDER);
        if age == OLDER {
            self.older.insert(self.ages.len() as u32, newest_ms);
        }
        self.ages.push(age);
    }

    /// Returns the newest time of a series, or `i64::MIN` if it has no sample.
    pub fn get(&self, at: usize) -> i64 {
        match self.ages.get(at) {
            None | Some(&OLDER) => self.older.get(&(at as u32)).copied().unwrap_or(i64::MIN),
            Some(age) => self.head_ms - i64::from(*age),
        }
    }

    /// Returns the times at some positions only, in that order.
    pub fn only(&self, positions: &[u32]) -> Newest {
        let mut kept = Newest::new(self.head_ms, positions.len());
        for at in positions {
            kept.push(self.get(*at as usize));
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn times_come_back_as_they_were(
            head_ms in any::<i64>(),
            ages in proptest::collection::vec(
                prop_oneof![0u64..10, (u64::from(u32::MAX) - 2)..(u64::from(u32::MAX) + 2), any::<u64>()],
                0..50,
            ),
        ) {
            let times: Vec<i64> =
                ages.iter().map(|age| head_ms.saturating_sub_unsigned(*age)).collect();
            let mut newest = Newest::new(head_ms, times.len());
            times.iter().for_each(|time| newest.push(*time));
            let positions: Vec<u32> = (0..times.len() as u32).step_by(2).collect();
            let only = newest.only(&positions);
            prop_assert_eq!(newest.len(), times.len());
            for (at, time) in times.iter().enumerate() {
                prop_assert_eq!(newest.get(at), *time);
            }
            for (at, position) in positions.iter().enumerate() {
                prop_assert_eq!(only.get(at), times[*position as usize]);
            }
        }
    }
}

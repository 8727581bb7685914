//! Resets of a counter, found once for the overlapping windows of one series.

use std::collections::VecDeque;

use crate::model::FloatPoint;

#[derive(Clone, Debug)]
pub(in crate::functions) struct Resets {
    /// Time of the last sample that was examined.
    seen_ms: i64,
    /// For each reset, the time of the first sample after it, and the value before it.
    found: VecDeque<(i64, f64)>,
}

impl Default for Resets {
    fn default() -> Resets {
        Resets { seen_ms: i64::MIN, found: VecDeque::new() }
    }
}

impl Resets {
    pub fn bytes(&self) -> usize {
        self.found.capacity() * size_of::<(i64, f64)>()
    }

    /// Records resets between neighbouring samples, which must be newer than the recorded resets.
    pub(super) fn look(&mut self, floats: &[FloatPoint]) {
        for pair in floats.windows(2) {
            if pair[1].value < pair[0].value {
                self.found.push_back((pair[1].time_ms, pair[0].value));
            }
        }
    }

    /// Marks all samples up to a time as examined.
    pub(super) fn see(&mut self, time_ms: i64) {
        self.seen_ms = time_ms;
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Drops resets up to a time; adds the values before all remaining resets to `change`.
    pub(super) fn add_lost_after(&mut self, time_ms: i64, change: &mut f64) {
        // A reset at the first sample is relative to a sample before the window.
        while self.found.front().is_some_and(|(reset_ms, _)| *reset_ms <= time_ms) {
            self.found.pop_front();
        }
        for (_, lost) in &self.found {
            *change += lost;
        }
    }

    /// Adds the values before resets within a window.
    pub(super) fn add_lost(&mut self, floats: &[FloatPoint], change: &mut f64) {
        let (Some(first), Some(last)) = (floats.first(), floats.last()) else {
            return;
        };
        if last.time_ms < self.seen_ms {
            // The caller moved windows back, so the window may contain resets that were dropped.
            *self = Resets::default();
        }
        let new = floats.iter().rev().take_while(|point| point.time_ms > self.seen_ms).count();
        // The first new pair begins with the last sample of the previous window.
        self.look(&floats[(floats.len() - new).saturating_sub(1)..]);
        self.seen_ms = last.time_ms;
        self.add_lost_after(first.time_ms, change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lost(floats: &[FloatPoint]) -> f64 {
        let pairs = floats.windows(2).filter(|pair| pair[1].value < pair[0].value);
        pairs.map(|pair| pair[0].value).sum()
    }

    proptest! {
        #[test]
        fn windows_that_overlap_give_what_each_gives_alone(
            values in prop::collection::vec(0..5u8, 1..40),
            mut windows in prop::collection::vec((0..40usize, 0..40usize), 1..20),
        ) {
            let point = |(i, value): (usize, &u8)| FloatPoint {
                time_ms: i as i64 * 10,
                value: f64::from(*value),
            };
            let floats: Vec<_> = values.iter().enumerate().map(point).collect();
            windows.sort_by_key(|(start, len)| (start + len, *start));
            let mut resets = Resets::default();
            let mut start_min = 0;
            for (start, len) in windows {
                let end = (start + len).min(floats.len());
                let start = start.max(start_min).min(end);
                start_min = start;
                let mut change = 0.0;
                resets.add_lost(&floats[start..end], &mut change);
                prop_assert_eq!(change, lost(&floats[start..end]));
            }
        }
    }
}

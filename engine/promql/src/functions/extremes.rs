//! Maxima and minima of overlapping windows; each sample is examined once.

use std::collections::VecDeque;

use crate::model::FloatPoint;

/// Samples that are or may become the extreme of this or a later window, for one function.
#[derive(Clone, Debug)]
pub(super) struct Extremes {
    /// Time of the last sample that was examined.
    seen_ms: i64,
    /// In time order; each sample is better than all later samples in the list.
    candidates: VecDeque<FloatPoint>,
}

impl Default for Extremes {
    fn default() -> Extremes {
        Extremes { seen_ms: i64::MIN, candidates: VecDeque::new() }
    }
}

impl Extremes {
    pub(super) fn bytes(&self) -> usize {
        self.candidates.capacity() * size_of::<FloatPoint>()
    }

    /// Returns the best value of a window; NaN if the window holds only NaN.
    pub(super) fn of(&mut self, floats: &[FloatPoint], is_better: fn(f64, f64) -> bool) -> f64 {
        let (Some(first), Some(last)) = (floats.first(), floats.last()) else {
            return f64::NAN;
        };
        if last.time_ms < self.seen_ms {
            // The caller moved windows back, so the window may contain samples that were dropped.
            *self = Extremes::default();
        }
        while self.candidates.front().is_some_and(|point| point.time_ms < first.time_ms) {
            self.candidates.pop_front();
        }
        let new = floats.iter().rev().take_while(|point| point.time_ms > self.seen_ms).count();
        // Upstream ignores NaN unless all values are NaN.
        for point in &floats[floats.len() - new..] {
            if point.value.is_nan() {
                continue;
            }
            // An older value that is not better leaves all windows before the newer value.
            while self.candidates.back().is_some_and(|other| !is_better(other.value, point.value)) {
                self.candidates.pop_back();
            }
            self.candidates.push_back(*point);
        }
        self.seen_ms = last.time_ms;
        self.candidates.front().map_or(f64::NAN, |point| point.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_that_overlap_give_what_each_gives_alone(
            values in prop::collection::vec(prop::option::of(-3..4i8), 1..40),
            mut windows in prop::collection::vec((0..40usize, 1..40usize), 1..20),
        ) {
            let point = |(i, value): (usize, &Option<i8>)| FloatPoint {
                time_ms: i as i64 * 10,
                value: value.map_or(f64::NAN, f64::from),
            };
            let floats: Vec<_> = values.iter().enumerate().map(point).collect();
            windows.sort_by_key(|(start, len)| (start + len, *start));
            let (mut largest, mut smallest) = (Extremes::default(), Extremes::default());
            let mut start_min = 0;
            for (start, len) in windows {
                let end = (start + len).min(floats.len());
                let start = start.max(start_min).min(end);
                start_min = start;
                let window = &floats[start..end];
                let numbers = || window.iter().map(|point| point.value);
                let max = numbers().fold(f64::NAN, f64::max);
                let min = numbers().fold(f64::NAN, f64::min);
                let found = [largest.of(window, |a, b| a > b), smallest.of(window, |a, b| a < b)];
                prop_assert_eq!(found.map(f64::to_bits), [max, min].map(f64::to_bits));
            }
        }
    }
}

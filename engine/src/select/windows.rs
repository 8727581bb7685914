//! Windows: the parts of a range that a reader needs.

use crate::model::TimeRange;

/// Windows of one width at equal distances; the last one ends with the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The range that has all windows.
    pub range: TimeRange,
    /// Milliseconds between the ends of two windows; 0 if the whole range is needed.
    pub step_ms: i64,
    /// Milliseconds from the start of a window, which is excluded, to its end, which is included.
    pub width_ms: i64,
}

impl Windows {
    /// Makes a single window of the whole range.
    pub fn whole(range: TimeRange) -> Windows {
        Windows { range, step_ms: 0, width_ms: 0 }
    }

    /// Returns whether a window has a time from `first_ms` to `last_ms`, both included.
    pub fn touch(&self, first_ms: i64, last_ms: i64) -> bool {
        let TimeRange { start_ms, end_ms } = self.range;
        if last_ms < start_ms || end_ms < first_ms {
            return false;
        }
        // Without gaps between windows, all of the range is needed.
        if self.step_ms <= 0 || self.width_ms >= self.step_ms {
            return true;
        }
        // Finds the first window that ends at `first_ms` or later. Differences may exceed 64 bits.
        let steps_back = i128::from(end_ms).abs_diff(i128::from(first_ms)) / self.step_ms as u128;
        let window_end = i128::from(end_ms) - steps_back as i128 * i128::from(self.step_ms);
        window_end - i128::from(self.width_ms) < i128::from(last_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_touch_what_shares_a_time_with_one_of_them() {
        let range = TimeRange { start_ms: -4, end_ms: 60 };
        for (step_ms, width_ms) in [(0, 0), (20, 5), (20, 1), (7, 3), (20, 20), (20, 30), (1, 1)] {
            let windows = Windows { range, step_ms, width_ms };
            let is_seen = |time_ms: i64| {
                let back = range.end_ms - time_ms;
                range.contains(time_ms) && (step_ms == 0 || back % step_ms < width_ms)
            };
            for first in -10..70 {
                for last in first..70 {
                    let expected = (first..=last).any(is_seen);
                    let touch = windows.touch(first, last);
                    assert!(touch || !expected, "{windows:?} {first} {last}");
                    // Before the first window there may be more, never within the range.
                    if range.contains(first) && first >= range.start_ms + width_ms {
                        assert_eq!(touch, expected, "{windows:?} {first} {last}");
                    }
                }
            }
        }
    }

    #[test]
    fn times_at_the_ends_do_no_harm() {
        let windows = Windows { range: TimeRange::ALL, step_ms: 1_000, width_ms: 1 };
        assert!(windows.touch(i64::MIN, i64::MAX));
        assert!(windows.touch(i64::MAX, i64::MAX));
        assert!(!windows.touch(i64::MAX - 500, i64::MAX - 400));
    }
}

//! When a group is evaluated: each interval, at an offset of its own.
//!
//! Offset and alignment are those of upstream, so that a node that changes over to tidepool keeps
//! the times of its samples. Upstream counts nanoseconds and stores milliseconds; both intervals
//! are whole milliseconds, so that rounding down here gives the same times.

use std::time::Duration;
use xxhash_rust::xxh64::xxh64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    interval_ms: i64,
    offset_ms: i64,
}

impl Slots {
    pub fn new(file: &str, group: &str, interval: Duration) -> Slots {
        let interval_ms = crate::clock::milliseconds(interval).max(1);
        let offset_ns = u128::from(hash(file, group)) % (interval_ms as u128 * 1_000_000);
        // Smaller than the interval.
        Slots { interval_ms, offset_ms: (offset_ns / 1_000_000) as i64 }
    }

    pub fn interval_ms(&self) -> i64 {
        self.interval_ms
    }

    /// Slot at a time, or the last one before it.
    pub fn at_or_before(&self, time_ms: i64) -> i64 {
        let since = time_ms.saturating_sub(self.offset_ms).rem_euclid(self.interval_ms);
        time_ms.saturating_sub(since)
    }

    /// First slot after a time.
    pub fn after(&self, time_ms: i64) -> i64 {
        self.at_or_before(time_ms).saturating_add(self.interval_ms)
    }

    /// Number of slots between two, without both.
    pub fn missed(&self, last_ms: i64, slot_ms: i64) -> u64 {
        let slots = slot_ms.saturating_sub(last_ms) / self.interval_ms;
        u64::try_from(slots.saturating_sub(1)).unwrap_or(0)
    }
}

/// Hash of the labels `file` and `name` in upstream's layout: each text follows its length, in one
/// byte, or in three after a byte of 255.
///
/// Source: `model/labels/labels_stringlabels.go`, whose layout the released binaries have.
fn hash(file: &str, group: &str) -> u64 {
    let mut data = Vec::new();
    for text in ["file", file, "name", group] {
        let length = text.len().to_le_bytes();
        match text.len() {
            0..255 => data.push(length[0]),
            _ => data.extend_from_slice(&[255, length[0], length[1], length[2]]),
        }
        data.extend_from_slice(text.as_bytes());
    }
    xxh64(&data, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_are_those_of_upstream() {
        // Of `Group.EvalTimestamp` at this time.
        let now_ms = 1_796_022_000_123;
        let long = "d/".repeat(200) + "x.yml";
        let ends = ["e".repeat(254), "e".repeat(255)];
        for (file, group, interval_ms, slot_ms) in [
            ("rules.yml", "node", 60_000, 1_796_021_946_170),
            ("/etc/prometheus/rules/a.yml", "alerts", 15_000, 1_796_021_995_206),
            ("", "", 1000, 1_796_021_999_739),
            (&long, "grüppe", 3_600_000, 1_796_021_436_199),
            ("f", "g", 1500, 1_796_021_998_688),
            ("f", "g", 604_800_000, 1_795_645_059_188),
            (&ends[0], "g", 3_600_000, 1_796_018_771_746),
            (&ends[1], "g", 3_600_000, 1_796_021_472_320),
        ] {
            let slots = Slots::new(file, group, Duration::from_millis(interval_ms));
            assert_eq!(slots.at_or_before(now_ms), slot_ms, "{group} of {file}");
        }
    }

    #[test]
    fn slots_between_two_are_missed() {
        let slots = Slots { interval_ms: 10, offset_ms: 3 };
        let missed = [(3, 13), (3, 33), (3, 3), (33, 3)].map(|(a, b)| slots.missed(a, b));
        assert_eq!(missed, [0, 2, 0, 0]);
        assert_eq!([2, 3, 4].map(|time_ms| slots.at_or_before(time_ms)), [-7, 3, 3]);
        assert_eq!([2, 3, 4].map(|time_ms| slots.after(time_ms)), [3, 13, 13]);
    }

    proptest! {
        #[test]
        fn a_time_lies_between_its_slots(
            time_ms in any::<i64>(), interval_ms in 1..i64::MAX, offset_ms in any::<i64>()
        ) {
            let slots = Slots { interval_ms, offset_ms: offset_ms.rem_euclid(interval_ms) };
            let slot_ms = slots.at_or_before(time_ms);
            prop_assert!(slot_ms <= time_ms && time_ms <= slots.after(time_ms));
        }
    }
}

//! Points of a series, as texts of their values. Times are stored as runs of steps.

use super::steps::Steps;

/// Marks a text of at least this length. Its length follows in four bytes, little-endian.
const LONG: u8 = u8::MAX;

/// Points of one series, by ascending time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Points {
    runs: Vec<Run>,
    /// Length and text of each point.
    texts: Vec<u8>,
}

/// Points at consecutive steps, without a gap between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first_ms: i64,
    count: u32,
    /// Offset in `texts` of the first point's text.
    begin: u32,
}

impl Points {
    /// Appends a point. Returns false if its time is not a later step, or the texts get too long.
    #[must_use]
    pub fn push(&mut self, time_ms: i64, text: &[u8], step_ms: i64) -> bool {
        // Offsets have 32 bits. An answer with more text is not cached.
        let (Ok(begin), Ok(length)) = (u32::try_from(self.texts.len()), u32::try_from(text.len()))
        else {
            return false;
        };
        match self.runs.last_mut() {
            Some(run) => {
                let next_ms = run.first_ms + i64::from(run.count) * step_ms;
                if time_ms < next_ms || (time_ms - next_ms) % step_ms != 0 {
                    return false;
                }
                // After a gap, such as a failed scrape, a new run starts.
                if time_ms == next_ms {
                    run.count += 1;
                } else {
                    self.runs.push(Run { first_ms: time_ms, count: 1, begin });
                }
            }
            None => self.runs.push(Run { first_ms: time_ms, count: 1, begin }),
        }
        if length < u32::from(LONG) {
            self.texts.push(length as u8);
        } else {
            self.texts.push(LONG);
            self.texts.extend_from_slice(&length.to_le_bytes());
        }
        self.texts.extend_from_slice(text);
        true
    }

    /// Calls `give` with the time and text of each point at the given steps.
    pub fn each(&self, steps: Steps, mut give: impl FnMut(i64, &[u8])) {
        let first = self.runs.partition_point(|run| run.last_ms(steps) < steps.first_ms);
        for run in &self.runs[first..] {
            let mut time_ms = run.first_ms;
            let mut texts = &self.texts[run.begin as usize..];
            for _ in 0..run.count {
                if time_ms > steps.last_ms {
                    return;
                }
                let (text, rest) = split(texts);
                texts = rest;
                if time_ms >= steps.first_ms {
                    give(time_ms, text);
                }
                time_ms += steps.step_ms;
            }
        }
    }

    /// Returns whether any of the given steps has a point.
    pub fn has_any(&self, steps: Steps) -> bool {
        let first = self.runs.partition_point(|run| run.last_ms(steps) < steps.first_ms);
        self.runs.get(first).is_some_and(|run| run.first_ms <= steps.last_ms)
    }

    pub fn bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>() + self.texts.capacity()
    }

    pub fn shrink(&mut self) {
        self.runs.shrink_to_fit();
        self.texts.shrink_to_fit();
    }
}

impl Run {
    fn last_ms(&self, steps: Steps) -> i64 {
        self.first_ms + i64::from(self.count - 1) * steps.step_ms
    }
}

/// Splits off the first text, and returns it with the rest.
fn split(texts: &[u8]) -> (&[u8], &[u8]) {
    match texts {
        [LONG, a, b, c, d, rest @ ..] => {
            rest.split_at(u32::from_le_bytes([*a, *b, *c, *d]) as usize)
        }
        [length, rest @ ..] => rest.split_at(usize::from(*length)),
        [] => (&[], &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn points_come_back(
            all in prop::collection::btree_map(0..60i64, prop_oneof!["[0-9.]{1,20}", "x{250,260}"], 0..60),
            first in 0..60i64,
            count in 0..60i64,
        ) {
            let (start_ms, step_ms) = (-170, 10);
            let time = |step: i64| start_ms + step * step_ms;
            let mut points = Points::default();
            for (step, text) in &all {
                prop_assert!(points.push(time(*step), text.as_bytes(), step_ms));
            }
            points.shrink();
            let steps = Steps { first_ms: time(first), last_ms: time(first + count), step_ms };
            let mut found = BTreeMap::new();
            points.each(steps, |time_ms, text| {
                found.insert(time_ms, String::from_utf8_lossy(text).into_owned());
            });
            let expected: BTreeMap<_, _> = all
                .range(first..=first + count)
                .map(|(step, text)| (time(*step), text.clone()))
                .collect();
            prop_assert_eq!(points.has_any(steps), !expected.is_empty());
            prop_assert_eq!(found, expected);
            // Neither an earlier time nor one between two steps follows.
            if let Some((step, _)) = all.last_key_value() {
                prop_assert!(!points.push(time(*step), b"1", step_ms));
                prop_assert!(!points.push(time(*step) + 11, b"1", step_ms));
            }
        }
    }
}

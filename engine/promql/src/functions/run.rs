//! Windows of one series of floats, from step to step.
//!
//! If samples are as regular as steps, each window moves by as many samples as the previous window,
//! so this move is tried first. A function evaluates all steps in one call.

use super::Memory;
use crate::model::FloatPoint;

/// Evaluates a function at all steps of a run.
pub type RunFunction = fn(&mut Run<'_>, &mut Memory);

/// Consecutive steps of a series of floats without stale markers, with all samples in memory.
#[derive(Debug)]
pub struct Run<'a> {
    /// Samples of the series in time order.
    pub floats: &'a [FloatPoint],
    /// Indices of the steps that are evaluated.
    pub steps: std::ops::Range<usize>,
    /// End of the first step's window in milliseconds, included.
    pub end_ms: i64,
    /// Milliseconds from one step to the next.
    pub step_ms: i64,
    /// Width of a window in milliseconds.
    pub range_ms: i64,
    /// Index of the first sample of the last window.
    pub first: usize,
    /// Index after the last sample of the last window.
    pub behind: usize,
    /// Samples of all windows, counted once for each step.
    pub seen: u64,
    /// Results of the function by step.
    pub values: &'a mut [f64],
    /// A bit for each step with a value, the lowest of a word first.
    pub present: &'a mut [u64],
}

/// The window of one step, with at least one sample.
#[derive(Debug)]
pub struct Slide<'a> {
    all: &'a [FloatPoint],
    first: usize,
    behind: usize,
    /// Index after the last sample of the previous window.
    entered: usize,
    /// Start of the window in milliseconds, excluded.
    pub start_ms: i64,
    /// End of the window in milliseconds, included.
    pub end_ms: i64,
}

impl<'a> Slide<'a> {
    /// Returns all samples of the window.
    #[inline]
    pub fn floats(&self) -> &'a [FloatPoint] {
        &self.all[self.first..self.behind]
    }

    /// Returns the new samples and the sample before: all pairs that the previous window lacks.
    #[inline]
    pub fn new_pairs(&self) -> &'a [FloatPoint] {
        let first = self.entered.saturating_sub(1).max(self.first);
        &self.all[first..self.behind]
    }
}

impl Run<'_> {
    #[inline(always)]
    fn set(&mut self, step: usize, value: f64) {
        self.values[step] = value;
        self.present[step / 64] |= 1 << (step % 64);
    }

    /// Evaluates a function of the window at each step.
    #[inline(always)]
    pub fn each(&mut self, mut apply: impl FnMut(&Slide<'_>) -> Option<f64>) {
        let all = self.floats;
        let (mut first, mut behind, mut seen) = (self.first, self.behind, 0);
        let (mut left, mut came) = (0, 0);
        let mut end_ms = self.end_ms;
        for step in self.steps.clone() {
            // Saturates, because `@` allows evaluation at the ends of time.
            let start_ms = end_ms.saturating_sub(self.range_ms);
            let entered = behind;
            behind = behind_time(all, behind, end_ms, &mut came);
            first = behind_time(all, first, start_ms, &mut left);
            if first < behind {
                seen += behind - first;
                let window = Slide { all, first, behind, entered, start_ms, end_ms };
                if let Some(value) = apply(&window) {
                    self.set(step, value);
                }
            } else {
                // In a gap `first` may pass `behind`; a window must not end before its start.
                behind = first;
            }
            end_ms = end_ms.saturating_add(self.step_ms);
        }
        // Kept for the next run of this series, which continues with later samples.
        (self.first, self.behind) = (first, behind);
        self.seen += seen as u64;
    }

    /// Evaluates to the last sample of each window; only that sample counts as seen.
    pub fn last(&mut self) {
        let (mut behind, mut seen, mut came) = (self.behind, 0, 0);
        let mut end_ms = self.end_ms;
        for step in self.steps.clone() {
            behind = behind_time(self.floats, behind, end_ms, &mut came);
            let last = behind.checked_sub(1).and_then(|at| self.floats.get(at));
            if let Some(last) = last
                && last.time_ms > end_ms.saturating_sub(self.range_ms)
            {
                self.set(step, last.value);
                seen += 1;
            }
            end_ms = end_ms.saturating_add(self.step_ms);
        }
        (self.first, self.behind) = (behind.saturating_sub(1), behind);
        self.seen += seen;
    }
}

/// Returns the index after all samples up to a time, at least `from`; `moved` is the last move.
#[inline(always)]
fn behind_time(floats: &[FloatPoint], from: usize, time_ms: i64, moved: &mut usize) -> usize {
    // With regular samples the guess is always right, which one comparison on each side confirms.
    let guess = from + *moved;
    // Without a move the sample before `from` is already known to be in time.
    let is_before = *moved == 0 || floats.get(guess - 1).is_some_and(|p| p.time_ms <= time_ms);
    let is_behind = match floats.get(guess) {
        Some(point) => point.time_ms > time_ms,
        None => guess == floats.len(),
    };
    if is_before && is_behind {
        return guess;
    }
    let rest = floats.get(from..).unwrap_or_default();
    *moved = rest.iter().take_while(|point| point.time_ms <= time_ms).count();
    from + *moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotations::Annotations;
    use crate::functions::{Body, Context, TABLES, Window};
    use crate::model::Value;
    use crate::syntax::RangeBounds;
    use proptest::prelude::*;

    /// The value's bits. Which NaN an operation gives is left to the machine.
    fn bits(value: f64) -> u64 {
        if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
    }

    proptest! {
        #[test]
        fn windows_hold_what_lies_between_their_ends(
            gaps in prop::collection::vec(prop_oneof![4 => Just(15i64), 1 => 1..200i64], 0..80),
            steps in 0..40usize,
            end_ms in -50..300i64,
            step_ms in prop_oneof![Just(15i64), Just(60), 1..100i64],
            range_ms in 1..300i64,
        ) {
            let mut time_ms = 0;
            let floats: Vec<_> = gaps
                .iter()
                .map(|gap| {
                    time_ms += gap;
                    FloatPoint { time_ms, value: time_ms as f64 }
                })
                .collect();
            let none = || (vec![0.0; steps], vec![0; steps.div_ceil(64)]);
            let (mut sums, mut lasts, mut new) = (none(), none(), Vec::new());
            let floats = &floats;
            fn run<'a>(
                floats: &'a [FloatPoint],
                steps: usize,
                times: (i64, i64, i64),
                (values, present): &'a mut (Vec<f64>, Vec<u64>),
            ) -> Run<'a> {
                let (end_ms, step_ms, range_ms) = times;
                let (first, behind, seen, steps) = (0, 0, 0, 0..steps);
                Run {
                    floats, steps, end_ms, step_ms, range_ms, first, behind, seen, values, present,
                }
            }
            let value = |(values, present): &(Vec<f64>, Vec<u64>), step: usize| {
                (present[step / 64] >> (step % 64) & 1 == 1).then(|| values[step])
            };
            let times = (end_ms, step_ms, range_ms);
            let sum = |floats: &[FloatPoint]| floats.iter().map(|p| p.value).sum::<f64>();
            let mut all = run(floats, steps, times, &mut sums);
            all.each(|window| {
                new.extend(window.new_pairs().windows(2).map(|pair| pair[1].time_ms));
                Some(sum(window.floats()))
            });
            let seen = all.seen;
            run(floats, steps, times, &mut lasts).last();
            let mut expected_seen = 0;
            for step in 0..steps {
                let end_ms = end_ms + step as i64 * step_ms;
                let window: Vec<_> = floats
                    .iter()
                    .copied()
                    .filter(|p| p.time_ms > end_ms - range_ms && p.time_ms <= end_ms)
                    .collect();
                expected_seen += window.len() as u64;
                let expected = (!window.is_empty()).then(|| sum(&window));
                prop_assert_eq!(value(&sums, step), expected);
                prop_assert_eq!(value(&lasts, step), window.last().map(|p| p.value));
                // Each neighbour within a window was new once.
                for pair in window.windows(2) {
                    let times = new.iter().filter(|time_ms| **time_ms == pair[1].time_ms).count();
                    prop_assert_eq!(times, 1);
                }
            }
            prop_assert_eq!(seen, expected_seen);
        }

        #[test]
        fn the_short_way_gives_what_each_window_gives(
            samples in prop::collection::vec(
                (
                    prop_oneof![6 => Just(15_000i64), 1 => 1..200_000i64],
                    prop_oneof![
                        6 => (0..9u8).prop_map(f64::from),
                        2 => -1e9..1e9f64,
                        1 => any::<u64>().prop_map(f64::from_bits),
                    ],
                ),
                0..80,
            ),
            is_counter: bool,
            mut cuts in prop::collection::vec(0..40usize, 0..3),
            end_ms in -50_000..300_000i64,
            step_ms in prop_oneof![Just(15_000i64), Just(60_000), 1..100_000i64],
            range_ms in prop_oneof![Just(300_000i64), 1..300_000i64],
        ) {
            let (mut time_ms, mut sum) = (0, 0.0);
            let floats: Vec<_> = samples
                .iter()
                .map(|(gap_ms, value)| {
                    time_ms += gap_ms;
                    sum += value;
                    FloatPoint { time_ms, value: if is_counter { sum } else { *value } }
                })
                .collect();
            let steps = 40;
            cuts.push(steps);
            cuts.sort_unstable();
            for entry in TABLES.iter().copied().flatten() {
                let Body::Range(function) = entry.body else { continue };
                let Some(run) = function.run else { continue };
                let (mut values, mut present) = (vec![0.0; steps], vec![0; 1]);
                let (mut memory, mut first, mut behind, mut begin) = (Memory::default(), 0, 0, 0);
                for end in cuts.iter().copied() {
                    let mut part = Run {
                        floats: &floats,
                        steps: begin..end,
                        end_ms: end_ms + begin as i64 * step_ms,
                        step_ms,
                        range_ms,
                        first,
                        behind,
                        seen: 0,
                        values: &mut values,
                        present: &mut present,
                    };
                    run(&mut part, &mut memory);
                    (first, behind, begin) = (part.first, part.behind, end);
                }
                let mut annotations = Annotations::default();
                let mut memory = Memory::default();
                for (step, value) in values.iter().enumerate() {
                    let end_ms = end_ms + step as i64 * step_ms;
                    let start_ms = end_ms - range_ms;
                    let is_in = |p: &&FloatPoint| p.time_ms > start_ms && p.time_ms <= end_ms;
                    let floats: Vec<_> = floats.iter().filter(is_in).copied().collect();
                    let window = Window {
                        floats: &floats,
                        histograms: &[],
                        float_starts: &[],
                        histogram_starts: &[],
                        start_ms,
                        end_ms,
                        time_ms: end_ms,
                        bounds: RangeBounds::Samples,
                    };
                    let mut context =
                        Context::new(&mut annotations, &mut memory, "", &[]);
                    let expected = match floats.is_empty() {
                        true => None,
                        false => (function.window)(&window, &[], &mut context).expect("a value"),
                    };
                    let found = (present[0] >> step & 1 == 1).then(|| bits(*value));
                    let expected = expected.map(|value| match value {
                        Value::Float(value) => bits(value),
                        Value::Histogram(_) => unreachable!("there are floats only"),
                    });
                    prop_assert_eq!(found, expected, "{} at step {}", entry.name, step);
                }
            }
        }
    }
}

//! Rates of floats at all steps of a run.
//!
//! Where samples are regular, they are as far from the ends of each window as from those of the
//! window before: what follows from that is computed once, not divided out at each step.

use super::{Ends, Kind};
use crate::functions::{Memory, Run};
use crate::model::FloatPoint;

/// What a product of floats that is larger by this factor is larger by, whatever its roundings.
const SAFELY: f64 = 1.000_001;

/// Where samples lie in their window, in milliseconds, and what follows from that.
struct Place {
    sampled_ms: i64,
    before_ms: i64,
    after_ms: i64,
    samples: usize,
    ends: Ends,
    factor: f64,
}

/// `rate`, `increase` and `delta`: see [`super::extrapolated`].
pub(super) fn extrapolated(run: &mut Run<'_>, kind: Kind, memory: &mut Memory) {
    let resets = &mut memory.resets;
    let width = run.range_ms as f64 / 1000.0;
    let mut place: Option<Place> = None;
    run.each(|window| {
        // Hardly any sample is smaller than the one before: that is found out without branches.
        if kind.is_counter && has_decrease(window.new_pairs()) {
            resets.look(window.new_pairs());
        }
        let [first, .., last] = window.floats() else { return None };
        let samples = window.floats().len();
        let mut change = last.value - first.value;
        if !resets.is_empty() {
            resets.add_lost_after(first.time_ms, &mut change);
        }
        let sampled_ms = last.time_ms - first.time_ms;
        let before_ms = first.time_ms - window.start_ms;
        let after_ms = window.end_ms - last.time_ms;
        let is_same = |place: &&Place| {
            place.sampled_ms == sampled_ms
                && place.before_ms == before_ms
                && place.after_ms == after_ms
                && place.samples == samples
        };
        let place = match place.as_ref().filter(is_same) {
            Some(place) => place,
            None => {
                let times_ms = (first.time_ms, last.time_ms);
                let ends = Ends::new(times_ms, (window.start_ms, window.end_ms), samples);
                let factor = ends.factor(kind, width);
                &*place.insert(Place { sampled_ms, before_ms, after_ms, samples, ends, factor })
            }
        };
        let ends = place.ends;
        // Most counters were zero long before the window: no division is needed to see that.
        let is_far = first.value * ends.sampled > ends.before * change * SAFELY;
        if !kind.is_counter || is_far || change <= 0.0 || first.value < 0.0 {
            return Some(change * place.factor);
        }
        let before = ends.before.min(ends.to_zero(first.value, change));
        Some(change * Ends { before, ..ends }.factor(kind, width))
    });
    if let Some(last) = run.behind.checked_sub(1).and_then(|at| run.floats.get(at)) {
        resets.see(last.time_ms);
    }
}

#[inline]
fn has_decrease(floats: &[FloatPoint]) -> bool {
    floats.windows(2).fold(false, |any, pair| any | (pair[1].value < pair[0].value))
}

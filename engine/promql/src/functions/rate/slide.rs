//! Rates of floats at all steps of a `Run`: consecutive steps of one series.
//!
//! Regular samples have the same distances from the ends in each window, so the extrapolation is
//! computed once, without a division at each step.

use super::{Ends, Kind};
use crate::functions::{Memory, Run};
use crate::model::FloatPoint;

/// Factor by which a product must exceed another product to be larger despite rounding.
const SAFELY: f64 = 1.000_001;

/// Position of the samples in a window, in milliseconds, and the extrapolation for it.
struct WindowExtent {
    sampled_ms: i64,
    before_ms: i64,
    after_ms: i64,
    samples: usize,
    ends: Ends,
    factor: f64,
}

/// Computes `rate`, `increase` or `delta`: see [`super::extrapolated`].
pub(super) fn extrapolated(run: &mut Run<'_>, kind: Kind, memory: &mut Memory) {
    let resets = &mut memory.resets;
    let width = run.range_ms as f64 / 1000.0;
    let mut place: Option<WindowExtent> = None;
    run.each(|window| {
        // Decreases are rare: a first pass without branches finds out whether any exists.
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
        // The factor depends on nothing else, so windows with equal distances share it.
        let is_same = |place: &&WindowExtent| {
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
                &*place.insert(WindowExtent {
                    sampled_ms,
                    before_ms,
                    after_ms,
                    samples,
                    ends,
                    factor,
                })
            }
        };
        let ends = place.ends;
        // Most counters were zero long before the window; a product shows that without a division.
        let is_far = first.value * ends.sampled > ends.before * change * SAFELY;
        if !kind.is_counter || is_far || change <= 0.0 || first.value < 0.0 {
            return Some(change * place.factor);
        }
        let before = ends.before.min(ends.to_zero(first.value, change));
        Some(change * Ends { before, ..ends }.factor(kind, width))
    });
    // `add_lost` may continue after this run, and must not record the same resets again.
    if let Some(last) = run.behind.checked_sub(1).and_then(|at| run.floats.get(at)) {
        resets.see(last.time_ms);
    }
}

#[inline]
fn has_decrease(floats: &[FloatPoint]) -> bool {
    floats.windows(2).fold(false, |any, pair| any | (pair[1].value < pair[0].value))
}

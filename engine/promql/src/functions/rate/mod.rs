//! `rate`, `increase` and `delta`: change of a series within a window, extrapolated to its ends.

mod bounded;
mod histogram;
mod resets;
mod slide;

use super::{Context, Entry, FunctionError, Window, range_or_run};
use crate::annotations::Note;
use crate::model::{Histogram, Value};
use crate::syntax::RangeBounds;
use std::rc::Rc;

pub(super) use resets::Resets;

pub(super) const TABLE: &[Entry] = &[
    range_or_run(
        "delta",
        |window, _, context| extrapolated(window, DELTA, context),
        |run, memory| slide::extrapolated(run, DELTA, memory),
    ),
    range_or_run(
        "increase",
        |window, _, context| extrapolated(window, INCREASE, context),
        |run, memory| slide::extrapolated(run, INCREASE, memory),
    ),
    range_or_run(
        "rate",
        |window, _, context| extrapolated(window, RATE, context),
        |run, memory| slide::extrapolated(run, RATE, memory),
    ),
];

/// Variant of the computation: `rate`, `increase` or `delta`.
#[derive(Clone, Copy)]
struct Kind {
    /// Whether a decrease is a reset of the counter.
    is_counter: bool,
    /// Whether the result is divided by seconds.
    per_second: bool,
}

const DELTA: Kind = Kind { is_counter: false, per_second: false };
const INCREASE: Kind = Kind { is_counter: true, per_second: false };
const RATE: Kind = Kind { is_counter: true, per_second: true };

/// Change between the first and the last sample, before any extrapolation.
struct Sampled {
    change: Change,
    /// Value of the first sample; the count of a histogram.
    first: f64,
    first_ms: i64,
    last_ms: i64,
    samples: usize,
    /// Start of the counter, if it is after the window's start and before the first sample.
    start_ms: Option<i64>,
}

enum Change {
    Float(f64),
    Histogram(Histogram),
}

fn extrapolated(
    window: &Window<'_>,
    kind: Kind,
    context: &mut Context<'_>,
) -> Result<Option<Value>, FunctionError> {
    // Upstream drops elements whose window contains floats and histograms.
    if !window.floats.is_empty() && !window.histograms.is_empty() {
        context.note(0, Note::MixedFloatsHistograms);
        return Ok(None);
    }
    if window.bounds != RangeBounds::Samples {
        return Ok(match window.histograms.is_empty() {
            true => bounded::floats(window, kind).map(Value::Float),
            false => bounded::histograms(window, kind, context).map(Value::from),
        });
    }
    let sampled = match window.histograms.is_empty() {
        true => sample_floats(window, kind, context),
        false => histogram::sample(window, kind, context),
    };
    let Some(sampled) = sampled else {
        return Ok(None);
    };
    let factor = sampled.factor(window, kind);
    Ok(Some(match sampled.change {
        Change::Float(change) => Value::Float(change * factor),
        Change::Histogram(mut change) => {
            change.scale(factor);
            Value::Histogram(Rc::new(change))
        }
    }))
}

fn sample_floats(window: &Window<'_>, kind: Kind, context: &mut Context<'_>) -> Option<Sampled> {
    let (first, last) = (window.floats.first()?, window.floats.last()?);
    // A known start is a sample of value zero, so one more sample suffices.
    let start_ms = window.start_within(kind, window.float_starts, first.time_ms);
    if window.floats.len() < 2 && start_ms.is_none() {
        return None;
    }
    let mut change = last.value - first.value;
    if kind.is_counter {
        // Windows overlap: resets found by value are kept for the next window, others are not.
        match window.float_starts.is_empty() {
            true => context.memory.resets.add_lost(window.floats, &mut change),
            false => add_known_lost(window, &mut change, context),
        }
    }
    // The counter rose from zero at its start to the first sample.
    if start_ms.is_some() {
        change += first.value;
    }
    Some(Sampled {
        change: Change::Float(change),
        first: first.value,
        first_ms: first.time_ms,
        last_ms: last.time_ms,
        samples: window.floats.len(),
        start_ms,
    })
}

/// Adds the values before each reset of the counter, found by values or by start times.
fn add_known_lost(window: &Window<'_>, change: &mut f64, context: &mut Context<'_>) {
    let mut overlap = Overlap::default();
    for (i, pair) in window.floats.windows(2).enumerate() {
        let starts = StartPair::of(window.float_starts, i);
        overlap.check(starts, pair[0].time_ms, context);
        if pair[1].value < pair[0].value || starts.is_reset(pair[0].time_ms, pair[1].time_ms) {
            *change += pair[0].value;
        }
    }
}

impl Sampled {
    /// Returns the factor that extrapolates the sampled change to the whole window.
    fn factor(&self, window: &Window<'_>, kind: Kind) -> f64 {
        let mut ends = Ends::new(
            (self.first_ms, self.last_ms),
            (window.start_ms, window.end_ms),
            self.samples,
        );
        // A known start replaces the extrapolation before the first sample.
        if let Some(start_ms) = self.start_ms {
            ends.before = 0.0;
            ends.sampled = seconds(start_ms, self.last_ms);
        } else if kind.is_counter {
            let change = match &self.change {
                Change::Float(change) => *change,
                Change::Histogram(change) => change.count,
            };
            // A counter is not extrapolated to a time at which it would have been negative.
            ends.before = ends.before.min(ends.to_zero(self.first, change));
        }
        ends.factor(kind, window.seconds())
    }
}

/// Distances of the samples from the ends of their window, in seconds.
///
/// A series is assumed to reach an end of the window if the distance is below 1.1 times the mean
/// distance of samples, and else to end half a mean distance beyond its first or last sample.
#[derive(Clone, Copy)]
struct Ends {
    /// From the first sample to the last.
    sampled: f64,
    /// Extrapolation before the first sample.
    before: f64,
    /// Extrapolation after the last sample.
    after: f64,
}

impl Ends {
    fn new(samples_ms: (i64, i64), window_ms: (i64, i64), samples: usize) -> Ends {
        let sampled = seconds(samples_ms.0, samples_ms.1);
        let distance = match samples {
            0 | 1 => 0.0,
            samples => sampled / (samples - 1) as f64,
        };
        let threshold = distance * 1.1;
        let reach = |distance_to_end| match distance_to_end >= threshold {
            true => distance / 2.0,
            false => distance_to_end,
        };
        let before = reach(seconds(window_ms.0, samples_ms.0));
        Ends { sampled, before, after: reach(seconds(samples_ms.1, window_ms.1)) }
    }

    /// Returns the seconds before the first sample at which a counter of this slope was zero.
    fn to_zero(self, first: f64, change: f64) -> f64 {
        match change > 0.0 && first >= 0.0 {
            // A falling or negative counter never was zero on this line: no bound.
            true => self.sampled * (first / change),
            false => f64::INFINITY,
        }
    }

    /// Returns the factor of the extrapolation; `window` is the width in seconds.
    fn factor(self, kind: Kind, window: f64) -> f64 {
        let factor = match self.sampled {
            // Samples that span no time have no slope to extrapolate.
            0.0 => 1.0,
            sampled => (sampled + self.before + self.after) / sampled,
        };
        if kind.per_second { factor / window } else { factor }
    }
}

impl Window<'_> {
    fn start_within(&self, kind: Kind, starts: &[i64], first_ms: i64) -> Option<i64> {
        let start_ms = *starts.first()?;
        let is_within = start_ms != 0 && start_ms > self.start_ms && start_ms < first_ms;
        (kind.is_counter && is_within).then_some(start_ms)
    }
}

fn seconds(from_ms: i64, to_ms: i64) -> f64 {
    (to_ms - from_ms) as f64 / 1000.0
}

/// Start times of two neighbouring samples; 0 if unknown.
#[derive(Clone, Copy, Default)]
pub(super) struct StartPair {
    before_ms: i64,
    here_ms: i64,
}

impl StartPair {
    /// Returns the start times of sample `i` and of the sample after it.
    pub(super) fn of(starts: &[i64], i: usize) -> StartPair {
        match starts.get(i..i + 2) {
            Some(pair) => StartPair { before_ms: pair[0], here_ms: pair[1] },
            None => StartPair::default(),
        }
    }

    /// Returns whether the counter was reset between two samples.
    ///
    /// A start at the time of the previous sample is a reset (samples are deltas), unless the start
    /// of that sample is unknown or invalid. A start at the time of its own sample is unknown.
    pub(super) fn is_reset(self, sample_before_ms: i64, sample_ms: i64) -> bool {
        let StartPair { before_ms, here_ms } = self;
        if before_ms == here_ms || here_ms == 0 || here_ms >= sample_ms {
            return false;
        }
        if here_ms != sample_before_ms {
            return here_ms > sample_before_ms;
        }
        before_ms != 0 && before_ms < sample_before_ms
    }

    fn overlaps(self, sample_before_ms: i64) -> bool {
        self.here_ms != 0 && self.here_ms < sample_before_ms && self.here_ms != self.before_ms
    }
}

/// Annotates once per window that a start time is before the previous sample.
#[derive(Default)]
struct Overlap {
    is_noted: bool,
}

impl Overlap {
    fn check(&mut self, starts: StartPair, sample_before_ms: i64, context: &mut Context<'_>) {
        // Upstream counts windows, not samples, as occurrences.
        if !self.is_noted && starts.overlaps(sample_before_ms) {
            context.note(0, Note::StartTimeOverlap);
            self.is_noted = true;
        }
    }
}

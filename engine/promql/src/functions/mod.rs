//! Functions of one series: over a window of its samples, or over one value.
//!
//! Functions of several series (`absent`, `sort`, `histogram_quantile` of classic buckets, …), of
//! labels and of the evaluation's time are operators of `crate::eval`.
//!
//! Source: prometheus/prometheus, `promql/functions.go`.

mod changes;
mod extremes;
mod histograms;
mod instant;
mod last_two;
mod mean;
mod over_time;
mod rate;
mod run;
mod trend;

use crate::annotations::{Annotations, HistogramOperation, Note};
use crate::model::{Histogram, Value};
use crate::syntax::{RangeBounds, Span};

pub use crate::model::{FloatPoint, HistogramPoint};
pub(crate) use instant::{max, min};
pub use run::{Run, RunFunction};

/// Samples of one series that a range function sees at one step; at least one, none stale. With
/// `anchored` and `smoothed` there may be samples outside of the window.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Floats in time order.
    pub floats: &'a [FloatPoint],
    /// Histograms in time order.
    pub histograms: &'a [HistogramPoint],
    /// Start times of `floats` in milliseconds, 0 for unknown ones; empty if none is to be used.
    pub float_starts: &'a [i64],
    /// Start times of `histograms` in milliseconds, 0 for unknown ones; empty if none is to be
    /// used.
    pub histogram_starts: &'a [i64],
    /// Start of the window in milliseconds, excluded.
    pub start_ms: i64,
    /// End of the window in milliseconds, included.
    pub end_ms: i64,
    /// Time of the evaluation in milliseconds, to which `offset` and `@` do not apply.
    pub time_ms: i64,
    /// How the window is bounded.
    pub bounds: RangeBounds,
}

impl Window<'_> {
    /// Width in seconds.
    pub fn seconds(&self) -> f64 {
        (self.end_ms - self.start_ms) as f64 / 1000.0
    }
}

/// What functions know of a series from one window to the next, which begins and ends no earlier.
#[derive(Debug, Default)]
pub struct Memory {
    noted: u32,
    noted_quantile: Option<u64>,
    /// Values of a window, for functions that sort them.
    scratch: Vec<f64>,
    /// Where the series' counter was reset.
    resets: rate::Resets,
    /// Largest or smallest values.
    extremes: extremes::Extremes,
}

impl Memory {
    /// Bytes of what it holds.
    pub fn bytes(&self) -> usize {
        self.scratch.capacity() * size_of::<f64>() + self.resets.bytes() + self.extremes.bytes()
    }

    /// Begins with another series.
    pub fn begin(&mut self) {
        let scratch = std::mem::take(&mut self.scratch);
        *self = Memory { scratch, ..Memory::default() };
    }
}

/// Where functions put annotations, and what they know of the series; what is said once is not put
/// together again at each step.
#[derive(Debug)]
pub struct Context<'a> {
    annotations: &'a mut Annotations,
    memory: &'a mut Memory,
    metric: &'a str,
    args: &'a [Span],
}

impl<'a> Context<'a> {
    /// A context for a series of this metric name, which may be empty; `args` are the places of all
    /// arguments of the call.
    pub fn new(
        annotations: &'a mut Annotations,
        memory: &'a mut Memory,
        metric: &'a str,
        args: &'a [Span],
    ) -> Context<'a> {
        Context { annotations, memory, metric, args }
    }

    /// Adds what happened; it is about the argument of this number.
    pub fn note(&mut self, argument: usize, note: Note<'_>) {
        if let Note::InvalidQuantile(q) = note {
            let bits = Some(q.to_bits());
            if std::mem::replace(&mut self.memory.noted_quantile, bits) == bits {
                return;
            }
        }
        if let Some(bit) = note.bit() {
            if self.memory.noted & bit != 0 {
                return;
            }
            self.memory.noted |= bit;
        }
        let span = self.args.get(argument).copied().unwrap_or_default();
        self.annotations.note(note, self.metric, span);
    }
}

/// Why a function cannot be applied at all. The text is upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FunctionError(pub String);

/// Over a window; further arguments are scalars of the step, in their order.
pub type RangeFunction =
    fn(&Window<'_>, &[f64], &mut Context<'_>) -> Result<Option<Value>, FunctionError>;

/// A function over a window.
#[derive(Clone, Copy, Debug)]
pub struct OverWindow {
    /// For windows of any samples.
    pub window: RangeFunction,
    /// The same for all steps of a series of floats, if there is a shorter way.
    pub run: Option<RunFunction>,
}

/// What a function does with one series.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Over a window.
    Range(OverWindow),
    /// Over a float; histograms are left out. Scalars of the step follow; optional ones may be
    /// absent.
    Float(fn(f64, &[f64]) -> Option<f64>),
    /// Over a histogram; floats are left out.
    Histogram(fn(&Histogram) -> f64),
    /// Of scalars alone, which gives a scalar.
    Scalar(fn(&[f64]) -> f64),
}

/// Labels that a function's result lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// None.
    Nothing,
    /// `__name__`.
    Name,
    /// `__name__`, `__type__` and `__unit__`.
    Metadata,
}

/// A function of one series.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub body: Body,
    /// Labels that its result lacks.
    pub dropped: Dropped,
}

/// A function of one series; none for operators of `crate::eval`.
pub fn lookup(name: &str) -> Option<&'static Entry> {
    TABLES.iter().find_map(|table| table.iter().find(|entry| entry.name == name))
}

/// What a function of dates gives for the evaluation's time, without an argument.
pub fn of_time(entry: &Entry, time_ms: i64) -> Option<f64> {
    match entry.body {
        Body::Float(apply) => apply((time_ms / 1000) as f64, &[]),
        _ => None,
    }
}

const TABLES: [&[Entry]; 7] = [
    rate::TABLE,
    over_time::TABLE,
    instant::TABLE,
    histograms::TABLE,
    last_two::TABLE,
    changes::TABLE,
    trend::TABLE,
];

/// Adds or subtracts a histogram, and says what had to be reconciled; none if their buckets are of
/// two kinds.
fn combine(
    histogram: &mut Histogram,
    other: &Histogram,
    operation: HistogramOperation,
    context: &mut Context<'_>,
) -> Option<()> {
    let outcome = match operation {
        HistogramOperation::Sub => histogram.subtract(other),
        HistogramOperation::Add | HistogramOperation::Aggregate => histogram.add(other),
    };
    let Ok(reconciled) = outcome else {
        context.note(0, Note::MixedExponentialCustom);
        return None;
    };
    if reconciled.custom_bounds {
        context.note(0, Note::MismatchedCustomBuckets(operation));
    }
    Some(())
}

const fn range(name: &'static str, window: RangeFunction) -> Entry {
    let body = Body::Range(OverWindow { window, run: None });
    Entry { name, body, dropped: Dropped::Metadata }
}

/// A function that has a short way for floats; both ways give the same.
const fn range_or_run(name: &'static str, window: RangeFunction, run: RunFunction) -> Entry {
    let body = Body::Range(OverWindow { window, run: Some(run) });
    Entry { name, body, dropped: Dropped::Metadata }
}

const fn float(name: &'static str, body: fn(f64, &[f64]) -> Option<f64>) -> Entry {
    Entry { name, body: Body::Float(body), dropped: Dropped::Metadata }
}

const fn scalar(name: &'static str, body: fn(&[f64]) -> f64) -> Entry {
    Entry { name, body: Body::Scalar(body), dropped: Dropped::Nothing }
}

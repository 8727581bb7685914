//! Functions of one series: over a window of its samples, or of one value.
//!
//! Functions of several series (`absent`, `sort`, `histogram_quantile` of classic buckets, …), of
//! labels and of the evaluation time are operators of `crate::eval`.
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

/// Samples that a range function uses at one step: at least one, without stale markers. With
/// `anchored` and `smoothed`, samples outside of the window may be included.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Float samples in time order.
    pub floats: &'a [FloatPoint],
    /// Native histograms in time order.
    pub histograms: &'a [HistogramPoint],
    /// Start times of `floats` in milliseconds, 0 if unknown; empty if no start time is used.
    pub float_starts: &'a [i64],
    /// Start times of `histograms`, in the form of `float_starts`.
    pub histogram_starts: &'a [i64],
    /// Start of the window in milliseconds, excluded.
    pub start_ms: i64,
    /// End of the window in milliseconds, included.
    pub end_ms: i64,
    /// Time of the evaluation in milliseconds, to which `offset` and `@` do not apply.
    pub time_ms: i64,
    /// Whether samples, anchored values or smoothed values bound the window.
    pub bounds: RangeBounds,
}

impl Window<'_> {
    /// Returns the width of the window in seconds.
    pub fn seconds(&self) -> f64 {
        (self.end_ms - self.start_ms) as f64 / 1000.0
    }
}

/// State of a series between its windows, which normally move forward from step to step.
#[derive(Debug, Default)]
pub struct Memory {
    noted: u32,
    noted_quantile: Option<u64>,
    /// Values of one window, for functions that sort them.
    scratch: Vec<f64>,
    resets: rate::Resets,
    extremes: extremes::Extremes,
}

impl Memory {
    /// Returns the bytes of memory that the state holds.
    pub fn bytes(&self) -> usize {
        self.scratch.capacity() * size_of::<f64>() + self.resets.bytes() + self.extremes.bytes()
    }

    /// Resets the state for another series.
    pub fn begin(&mut self) {
        // The next series reuses the allocation of `scratch`, but no contents.
        let scratch = std::mem::take(&mut self.scratch);
        *self = Memory { scratch, ..Memory::default() };
    }
}

/// Receives annotations and holds the state of a series, so that repeated notes cost little.
#[derive(Debug)]
pub struct Context<'a> {
    annotations: &'a mut Annotations,
    memory: &'a mut Memory,
    metric: &'a str,
    args: &'a [Span],
}

impl<'a> Context<'a> {
    /// Makes a context for this metric name, which may be empty; `args` are the arguments'
    /// positions.
    pub fn new(
        annotations: &'a mut Annotations,
        memory: &'a mut Memory,
        metric: &'a str,
        args: &'a [Span],
    ) -> Context<'a> {
        Context { annotations, memory, metric, args }
    }

    /// Adds an annotation about the argument of this number.
    pub fn note(&mut self, argument: usize, note: Note<'_>) {
        // A quantile usually is the same at all steps, so only the last noted quantile is compared.
        if let Note::InvalidQuantile(q) = note {
            let bits = Some(q.to_bits());
            if std::mem::replace(&mut self.memory.noted_quantile, bits) == bits {
                return;
            }
        }
        // Annotations with equal text are merged anyway; the bit saves the text's allocation.
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

/// Invalid argument of a function, which ends the evaluation. The text is upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FunctionError(pub String);

/// A function over a window; the slice has the scalar arguments at the step, in their order.
pub type RangeFunction =
    fn(&Window<'_>, &[f64], &mut Context<'_>) -> Result<Option<Value>, FunctionError>;

/// The implementations of a function over a window.
#[derive(Clone, Copy, Debug)]
pub struct OverWindow {
    /// Applies to windows of any samples.
    pub window: RangeFunction,
    /// Faster equivalent that evaluates all steps of a series of floats; `None` if missing.
    pub run: Option<RunFunction>,
}

/// Implementation of a function of one series.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A function over a window of samples.
    Range(OverWindow),
    /// A function of a float and of scalars of the step, some optional; histograms are left out.
    Float(fn(f64, &[f64]) -> Option<f64>),
    /// A function of a histogram; floats are left out.
    Histogram(fn(&Histogram) -> f64),
    /// A function of scalars alone, whose result is a scalar.
    Scalar(fn(&[f64]) -> f64),
}

/// Labels that are dropped from a function's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// All labels are kept, `__name__` included.
    Nothing,
    /// Only the label `__name__` is dropped.
    Name,
    /// `__name__`, `__type__` and `__unit__` are dropped.
    Metadata,
}

/// A function of one series, as the tables list it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name of the function in PromQL.
    pub name: &'static str,
    /// Implementation for windows, values or scalars.
    pub body: Body,
    /// Labels that are dropped from the result of the function.
    pub dropped: Dropped,
}

/// Looks up a function of one series; `None` for operators of `crate::eval`.
pub fn lookup(name: &str) -> Option<&'static Entry> {
    TABLES.iter().find_map(|table| table.iter().find(|entry| entry.name == name))
}

/// Returns the result of a date function without argument, such as `hour()`.
pub fn of_time(entry: &Entry, time_ms: i64) -> Option<f64> {
    match entry.body {
        // Upstream divides integers here, so the fraction of the second is dropped.
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

/// Adds or subtracts, and notes reconciled bounds; `None` for exponential with custom buckets.
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

/// Makes a function with a faster equivalent for floats, which returns the same values.
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

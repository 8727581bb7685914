//! Folds: operators that turn the samples of a series into one value for each step.

mod floats;

use crate::annotations::Note;
use crate::error::EvalError;
use crate::eval::budget::Usage;
use crate::eval::buffer::{Buffer, Places};
use crate::eval::column::{Column, histogram_held};
use crate::eval::context::{Context, Ready};
use crate::eval::extend;
use crate::eval::key::HashSet;
use crate::eval::pipeline::{Operator, Out};
use crate::eval::scalars::Scalars;
use crate::eval::series::Series;
use crate::eval::series_union::HASH_BYTES;
use crate::eval::stats::Stats;
use crate::functions::{self, Dropped, RangeFunction, Window};
use crate::model::{HistogramPoint, Labels, NAME, Samples, Value, hash_labels};
use crate::plan::{CounterCheck, FoldKind, FoldPlan, Grid, Port};
use crate::syntax::{RangeBounds, Span};
use std::ops::Range;

/// Suffixes of the names of counters, including components of classic histograms and summaries.
const COUNTER_ENDS: [&str; 4] = ["_total", "_sum", "_count", "_bucket"];

/// Folds the samples of one series after the other into columns.
pub struct Fold {
    plan: FoldPlan,
    grid: Grid,
    span: Span,
    scalars: Scalars,
    seen: HashSet,
    labels: Labels,
    name: String,
    memory: functions::Memory,
    column: Column,
    step: usize,
    /// Positions of the first sample in the window (`first`) and after the window (`behind`).
    first: Places,
    behind: Places,
}

impl Fold {
    pub fn new(plan: FoldPlan, grid: Grid, span: Span) -> Fold {
        Fold {
            scalars: Scalars::new(&plan.args),
            plan,
            grid,
            span,
            seen: HashSet::default(),
            labels: Labels::default(),
            name: String::new(),
            memory: functions::Memory::default(),
            column: Column::default(),
            step: 0,
            first: Places::default(),
            behind: Places::default(),
        }
    }

    pub fn set_scalar(&mut self, port: Port, series: Series) {
        let _ = self.scalars.set(port, series);
    }

    pub fn begin(&mut self, labels: Labels, context: &mut Context) {
        self.name.clear();
        self.name.push_str(labels.get(NAME));
        self.memory.begin();
        self.labels = labels;
        self.column = context.column(self.grid.steps);
        self.step = 0;
        self.first = Places::default();
        self.behind = Places::default();
    }

    /// Evaluates steps whose samples are known; returns the first positions that later steps need.
    pub fn advance(&mut self, buffer: &Buffer, context: &mut Context) -> Result<Places, EvalError> {
        // The short path covers most queries; both paths return the same values.
        if self.floats(buffer, &mut context.stats) {
            return Ok(self.first);
        }
        context.annotations.set_noting(self.span);
        match self.plan.kind {
            FoldKind::Range(function) => self.windows(buffer, context, function.window)?,
            FoldKind::Smoothed => self.smoothed(buffer, context),
            FoldKind::Samples => {
                // The window of a range selector is the answer, so the window has to be complete.
                if buffer.known_ms == i64::MAX {
                    self.samples(buffer, context)?;
                }
            }
            _ => self.last(buffer, context),
        }
        Ok(self.first)
    }

    pub fn memory_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// Returns whether no further samples are needed.
    pub fn is_done(&self) -> bool {
        self.step == self.grid.steps
    }

    pub fn finish(&mut self, context: &mut Context) -> Result<Series, EvalError> {
        context.annotations.set_noting(self.span);
        self.note_counter(context);
        let labels = std::mem::take(&mut self.labels);
        let column = std::mem::take(&mut self.column);
        let mut series = Series { labels, drop_name: false, column };
        if self.plan.dropped != Dropped::Nothing {
            series.drop(self.plan.dropped, context.is_delayed);
            // Upstream fails if a range function makes series equal, instead of merging them.
            if !context.is_delayed && !series.column.is_empty() {
                if !self.seen.insert(hash_labels(series.labels.iter())) {
                    return Err(EvalError::same_labels());
                }
                context.budget.take(Usage { bytes: HASH_BYTES, samples: 0 }, self.span)?;
            }
        }
        Ok(series)
    }

    /// Frees the function's memory, and the hashes that detect equal label sets.
    pub fn release(&mut self, context: &mut Context) {
        self.memory = functions::Memory::default();
        let bytes = std::mem::take(&mut self.seen).len() * HASH_BYTES;
        context.budget.give(Usage { bytes, samples: 0 });
    }

    /// Adds an info if the metric of a rate does not look like a counter.
    fn note_counter(&mut self, context: &mut Context) {
        let Some(check) = self.plan.counter_check else { return };
        if self.name.is_empty() || self.column.present().is_empty() {
            return;
        }
        let span = self.plan.arg_spans.first().copied().unwrap_or_default();
        match check {
            CounterCheck::Name if !COUNTER_ENDS.iter().any(|end| self.name.ends_with(end)) => {
                context.annotations.note(Note::PossibleNonCounter, &self.name, span);
            }
            CounterCheck::Type => {
                let kind = self.labels.get("__type__");
                if kind != "counter" && kind != "histogram" {
                    let note = Note::PossibleNonCounterType(kind);
                    context.annotations.note(note, &self.name, span);
                }
            }
            CounterCheck::Name => {}
        }
    }

    fn count(&self, stats: &mut Stats, floats: usize, histograms: &[HistogramPoint]) {
        if self.plan.is_counted {
            let sizes = histograms.iter().map(|point| histogram_held(&point.histogram).samples);
            stats.count(&self.grid, self.step, floats as u64 + sizes.sum::<u64>());
        }
    }

    /// Returns the time of a step after `@` and `offset`.
    fn reference(&self, step: usize) -> i64 {
        let time_ms = self.plan.at_ms.unwrap_or_else(|| self.grid.time(step));
        time_ms.saturating_sub(self.plan.offset_ms)
    }

    /// Applies a function of the last sample in the window.
    fn last(&mut self, buffer: &Buffer, context: &mut Context) {
        let (samples, stale, base) = buffer.parts();
        while self.step < self.grid.steps {
            let end_ms = self.reference(self.step);
            // A newer sample may still arrive, so later steps wait for the next read.
            if end_ms > buffer.known_ms {
                break;
            }
            let start_ms = end_ms.saturating_sub(self.plan.range_ms);
            let mut float = self.behind.float - base.float;
            while samples.floats.get(float).is_some_and(|point| point.time_ms <= end_ms) {
                float += 1;
            }
            let mut histogram = self.behind.histogram - base.histogram;
            while samples.histograms.get(histogram).is_some_and(|point| point.time_ms <= end_ms) {
                histogram += 1;
            }
            let mut marker = self.behind.stale - base.stale;
            while stale.get(marker).is_some_and(|time_ms| *time_ms <= end_ms) {
                marker += 1;
            }
            self.behind = Places {
                float: float + base.float,
                histogram: histogram + base.histogram,
                stale: marker + base.stale,
            };
            let time = |place: usize, time_of: &dyn Fn(usize) -> i64| match place {
                0 => i64::MIN,
                place => time_of(place - 1),
            };
            let float_ms = time(float, &|at| samples.floats[at].time_ms);
            let histogram_ms = time(histogram, &|at| samples.histograms[at].time_ms);
            let stale_ms = time(marker, &|at| stale[at]);
            let time_ms = float_ms.max(histogram_ms);
            // A stale marker that is newer than the last sample ends the series.
            if time_ms > start_ms && time_ms > stale_ms {
                let (starts, at) = match float_ms > histogram_ms {
                    true => (&samples.float_starts, float - 1),
                    false => (&samples.histogram_starts, histogram - 1),
                };
                match self.plan.kind {
                    FoldKind::Timestamp => {
                        self.column.set_float(self.step, time_ms as f64 / 1000.0);
                    }
                    FoldKind::InfoTime if float_ms > histogram_ms => {
                        self.column.set_float(self.step, time_ms as f64)
                    }
                    FoldKind::StartTimestamp => {
                        if let Some(start_ms) = starts.get(at) {
                            self.column.set_float(self.step, *start_ms as f64 / 1000.0);
                        }
                    }
                    _ if float_ms > histogram_ms => {
                        self.column.set_float(self.step, samples.floats[float - 1].value);
                    }
                    _ => {
                        let histogram = samples.histograms[histogram - 1].histogram.clone();
                        self.column.set_histogram(self.step, histogram);
                    }
                }
                let histogram = match float_ms < histogram_ms {
                    true => &samples.histograms[histogram - 1..histogram],
                    false => &[],
                };
                let floats = usize::from(histogram.is_empty());
                self.count(&mut context.stats, floats, histogram);
            }
            self.step += 1;
        }
        // The last sample of each kind may still be in the window of the next step.
        self.first = Places {
            float: self.behind.float.saturating_sub(1),
            histogram: self.behind.histogram.saturating_sub(1),
            stale: self.behind.stale.saturating_sub(1),
        };
        // Samples before `base` have been removed from the buffer already.
        self.first = Places {
            float: self.first.float.max(base.float),
            histogram: self.first.histogram.max(base.histogram),
            stale: self.first.stale.max(base.stale),
        };
    }

    /// Moves the window to the current step, if its samples are known; returns the window's end.
    fn window(&mut self, buffer: &Buffer) -> Option<i64> {
        let end_ms = self.reference(self.step);
        let last_ms = end_ms.saturating_add(self.plan.margin_ms.1);
        if last_ms > buffer.known_ms {
            return None;
        }
        let width_ms = self.plan.range_ms.saturating_add(self.plan.margin_ms.0);
        let oldest_ms = end_ms.saturating_sub(width_ms);
        let (samples, stale, base) = buffer.parts();
        let floats = &samples.floats[self.behind.float - base.float..];
        self.behind.float += floats.iter().take_while(|point| point.time_ms <= last_ms).count();
        let floats = &samples.floats[self.first.float - base.float..];
        self.first.float += floats.iter().take_while(|point| point.time_ms <= oldest_ms).count();
        // Windows need not overlap: samples between two windows are skipped.
        self.behind.float = self.behind.float.max(self.first.float);
        if !samples.histograms.is_empty() {
            let histograms = &samples.histograms[self.behind.histogram - base.histogram..];
            let is_in = |point: &&HistogramPoint| point.time_ms <= last_ms;
            self.behind.histogram += histograms.iter().take_while(is_in).count();
            let histograms = &samples.histograms[self.first.histogram - base.histogram..];
            let is_before = |point: &&HistogramPoint| point.time_ms <= oldest_ms;
            self.first.histogram += histograms.iter().take_while(is_before).count();
            self.behind.histogram = self.behind.histogram.max(self.first.histogram);
        }
        // Range functions ignore stale markers, so no marker is kept.
        self.first.stale = base.stale + stale.len();
        Some(end_ms)
    }

    /// Returns the window's floats and histograms as ranges in lists that begin at `base`.
    fn in_window(&self, base: Places) -> (Range<usize>, Range<usize>) {
        let Fold { first, behind, .. } = self;
        (
            first.float - base.float..behind.float - base.float,
            first.histogram - base.histogram..behind.histogram - base.histogram,
        )
    }

    fn windows(
        &mut self,
        buffer: &Buffer,
        context: &mut Context,
        function: RangeFunction,
    ) -> Result<(), EvalError> {
        // Moved out, so that the call context borrows no part of `self`.
        let name = std::mem::take(&mut self.name);
        let arg_spans = std::mem::take(&mut self.plan.arg_spans);
        let mut memory = std::mem::take(&mut self.memory);
        let mut call =
            functions::Context::new(&mut context.annotations, &mut memory, &name, &arg_spans);
        let result = self.windows_of(buffer, &mut context.stats, function, &mut call);
        self.memory = memory;
        self.name = name;
        self.plan.arg_spans = arg_spans;
        result
    }

    fn windows_of(
        &mut self,
        buffer: &Buffer,
        stats: &mut Stats,
        function: RangeFunction,
        call: &mut functions::Context<'_>,
    ) -> Result<(), EvalError> {
        let (samples, _, base) = buffer.parts();
        while self.step < self.grid.steps {
            let Some(end_ms) = self.window(buffer) else { break };
            let (floats, histograms) = self.in_window(base);
            let count = floats.len() + histograms.len();
            if count > 0 {
                let window = Window {
                    floats: &samples.floats[floats.clone()],
                    histograms: &samples.histograms[histograms.clone()],
                    float_starts: samples.float_starts.get(floats).unwrap_or_default(),
                    histogram_starts: samples.histogram_starts.get(histograms).unwrap_or_default(),
                    start_ms: end_ms.saturating_sub(self.plan.range_ms),
                    end_ms,
                    time_ms: self.grid.time(self.step),
                    bounds: self.plan.bounds,
                };
                self.count(stats, window.floats.len(), window.histograms);
                let value = function(&window, self.scalars.at(self.step), call);
                match value.map_err(|error| EvalError::execution(error.0))? {
                    Some(Value::Float(value)) => self.column.set_float(self.step, value),
                    Some(Value::Histogram(value)) => self.column.set_histogram(self.step, value),
                    None => {}
                }
            }
            self.step += 1;
        }
        Ok(())
    }

    /// Interpolates between the samples before and after each step.
    fn smoothed(&mut self, buffer: &Buffer, context: &mut Context) {
        let (samples, _, base) = buffer.parts();
        while self.step < self.grid.steps {
            let Some(end_ms) = self.window(buffer) else { break };
            let (floats, histograms) = self.in_window(base);
            self.count(&mut context.stats, floats.len(), &samples.histograms[histograms.clone()]);
            let value = extend::between(
                &samples.floats[floats],
                &samples.histograms[histograms],
                end_ms,
                &mut |note| {
                    let span = self.plan.arg_spans.first().copied().unwrap_or_default();
                    context.annotations.note(note, &self.name, span);
                },
            );
            self.column.put(self.step, value);
            self.step += 1;
        }
    }

    /// Emits the samples of the window themselves, as the answer.
    fn samples(&mut self, buffer: &Buffer, context: &mut Context) -> Result<(), EvalError> {
        let Some(end_ms) = self.window(buffer) else { return Ok(()) };
        let (samples, _, base) = buffer.parts();
        let (floats, histograms) = self.in_window(base);
        let start_ms = end_ms.saturating_sub(self.plan.range_ms);
        let answer = Samples {
            floats: extend::floats(&samples.floats[floats], start_ms, end_ms, self.plan.bounds),
            histograms: samples.histograms[histograms].to_vec(),
            ..Samples::default()
        };
        if self.plan.bounds != RangeBounds::Samples && !answer.histograms.is_empty() {
            let modifier = match self.plan.bounds {
                RangeBounds::Smoothed => "smoothed",
                _ => "anchored",
            };
            return Err(EvalError::execution(format!(
                "{modifier} modifier is not supported with histograms"
            )));
        }
        self.count(&mut context.stats, answer.floats.len(), &answer.histograms);
        if answer.is_empty() {
            return Ok(());
        }
        context.answer(Ready::Samples(std::mem::take(&mut self.labels), answer), self.span)
    }
}

impl Operator for Fold {
    fn push(&mut self, port: Port, series: Series, _: &mut Out<'_>) -> Result<(), EvalError> {
        self.set_scalar(port, series);
        Ok(())
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        self.release(out.context);
        Ok(())
    }

    fn fold(&mut self) -> Option<&mut Fold> {
        Some(self)
    }
}

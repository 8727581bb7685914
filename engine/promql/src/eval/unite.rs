//! Series that have the same labels after some were taken out: they are one, unless two of them
//! have a value at the same step.

use super::budget::Held;
use super::column::Column;
use super::context::Context;
use super::key::{HashSet, KeyIndex};
use super::pipeline::Out;
use super::series::Series;
use crate::error::EvalError;
use crate::model::hash_labels;
use crate::syntax::Span;

/// Bytes of a hash in a set of them.
pub const HASH_BYTES: usize = 16;

/// Puts series of the same labels together. Series that are known to differ pass at once.
#[derive(Debug, Default)]
pub struct Unite {
    passed: HashSet,
    index: KeyIndex,
    held: Vec<(bool, Column)>,
    taken: Held,
}

impl Unite {
    /// Sends a series on, or holds it until the end. `is_distinct` says that no series that is
    /// distinct has its labels.
    pub fn push(
        &mut self,
        series: Series,
        is_distinct: bool,
        span: Span,
        out: &mut Out<'_>,
    ) -> Result<(), EvalError> {
        if series.column.is_empty() {
            out.context.recycle(series.column);
            return Ok(());
        }
        if is_distinct && self.index.find_all(&series.labels).is_none() {
            if !self.passed.insert(hash_labels(series.labels.iter())) {
                return Err(EvalError::same_labels());
            }
            let held = Held { bytes: HASH_BYTES, samples: 0 };
            self.taken.bytes += held.bytes;
            out.context.budget.take(held, span)?;
            return out.emit(series);
        }
        if !self.passed.is_empty() && self.passed.contains(&hash_labels(series.labels.iter())) {
            return Err(EvalError::same_labels());
        }
        self.buffer(series, span, out.context)
    }

    fn buffer(
        &mut self,
        series: Series,
        span: Span,
        context: &mut Context,
    ) -> Result<(), EvalError> {
        context.has_held_series = true;
        let index_bytes = self.index.bytes();
        let (number, is_new) = self.index.insert_all(&series.labels);
        let mut held = Held { bytes: self.index.bytes() - index_bytes, samples: 0 };
        if is_new {
            held.bytes += series.column.bytes();
            held.samples = series.column.samples();
            self.held.push((series.drop_name, series.column));
        } else {
            held.samples = series.column.samples();
            merge(&mut self.held[number].1, &series.column)?;
            context.recycle(series.column);
        }
        self.taken.bytes += held.bytes;
        self.taken.samples += held.samples;
        context.budget.take(held, span)
    }

    /// Sends on what was held.
    pub fn end(&mut self, out: &mut Out<'_>) -> Result<(), EvalError> {
        let held = std::mem::take(&mut self.held);
        let index = std::mem::take(&mut self.index);
        self.passed = HashSet::default();
        out.context.budget.give(std::mem::take(&mut self.taken));
        for (labels, (drop_name, column)) in index.into_labels().zip(held) {
            out.emit(Series { labels, drop_name, column })?;
        }
        Ok(())
    }
}

/// Adds the values of a column to another one, which has none at these steps.
pub fn merge(into: &mut Column, from: &Column) -> Result<(), EvalError> {
    for step in from.present().iter() {
        if into.has(step) {
            return Err(EvalError::same_labels());
        }
        into.set_float(step, from.floats()[step]);
    }
    if from.has_histograms() {
        for step in 0..from.len() {
            let Some(histogram) = from.histogram(step) else { continue };
            if into.has(step) {
                return Err(EvalError::same_labels());
            }
            into.set_histogram(step, histogram.clone());
        }
    }
    Ok(())
}

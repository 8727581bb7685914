//! Merging of series whose labels become equal when labels are dropped. Such series become one
//! series, unless two of them have a value at the same step.

use super::budget::Usage;
use super::column::Column;
use super::context::Context;
use super::key::{HashSet, KeyIndex};
use super::pipeline::Out;
use super::series::Series;
use crate::error::EvalError;
use crate::model::hash_labels;
use crate::syntax::Span;

/// Memory of a hash in a set of hashes, in bytes.
pub const HASH_BYTES: usize = 16;

/// Merges series of the same labels. Series that are known to be distinct pass at once.
#[derive(Debug, Default)]
pub struct SeriesUnion {
    passed: HashSet,
    index: KeyIndex,
    held: Vec<(bool, Column)>,
    taken: Usage,
}

impl SeriesUnion {
    /// Emits a series whose labels are unique (`is_distinct`); holds other series until the end.
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
        // If a held series has the same labels, both series are merged below.
        if is_distinct && self.index.find_all(&series.labels).is_none() {
            if !self.passed.insert(hash_labels(series.labels.iter())) {
                return Err(EvalError::same_labels());
            }
            let held = Usage { bytes: HASH_BYTES, samples: 0 };
            self.taken.bytes += held.bytes;
            out.context.budget.take(held, span)?;
            return out.emit(series);
        }
        // The series with these labels was emitted as distinct and cannot be merged any more.
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
        // Held series are emitted out of label order, which `Root` has to repair.
        context.has_held_series = true;
        let index_bytes = self.index.bytes();
        let (number, is_new) = self.index.insert_all(&series.labels);
        let mut held = Usage { bytes: self.index.bytes() - index_bytes, samples: 0 };
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

    pub fn end(&mut self, out: &mut Out<'_>) -> Result<(), EvalError> {
        let held = std::mem::take(&mut self.held);
        let index = std::mem::take(&mut self.index);
        self.passed = HashSet::default();
        // The memory is returned first, because the next operators count the series again.
        out.context.budget.give(std::mem::take(&mut self.taken));
        for (labels, (drop_name, column)) in index.into_labels().zip(held) {
            out.emit(Series { labels, drop_name, column })?;
        }
        Ok(())
    }
}

/// Adds the values of `from` to `into`; fails at a step where both have a value.
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

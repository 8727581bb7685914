//! `count_values`: a series for each distinct value.

use crate::error::EvalError;
use crate::eval::budget::Usage;
use crate::eval::column::Column;
use crate::eval::key::KeyIndex;
use crate::eval::pipeline::{Operator, Out};
use crate::eval::series::Series;
use crate::model::{KeyLabels, Labels, Value};
use crate::plan::{Grid, Port};
use crate::syntax::Span;
use std::rc::Rc;

pub struct CountValues {
    by: KeyLabels,
    label: String,
    grid: Grid,
    span: Span,
    index: KeyIndex,
    columns: Vec<Column>,
    held: Usage,
}

impl CountValues {
    pub fn new(by: KeyLabels, label: String, grid: Grid, span: Span) -> CountValues {
        CountValues {
            by,
            label,
            grid,
            span,
            index: KeyIndex::default(),
            columns: Vec::new(),
            held: Usage::default(),
        }
    }

    fn group(
        &mut self,
        labels: &mut Labels,
        value: &Value,
        out: &mut Out<'_>,
    ) -> Result<usize, EvalError> {
        let text = match value {
            Value::Float(value) => tidepool_model::number::plain(*value),
            Value::Histogram(histogram) => histogram.to_string(),
        };
        labels.set(&self.label, &text);
        let (number, is_new) = self.index.insert(&self.by, labels);
        if is_new {
            let column = Column::new(self.grid.steps);
            let bytes = column.bytes() + self.index.labels(number).bytes();
            let held = Usage { bytes, samples: self.grid.steps as u64 };
            self.held.bytes += held.bytes;
            self.held.samples += held.samples;
            out.context.budget.take(held, self.span)?;
            self.columns.push(column);
        }
        Ok(number)
    }
}

impl Operator for CountValues {
    fn push(&mut self, _: Port, mut series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        let mut last: Option<(Value, usize)> = None;
        for step in 0..series.column.len() {
            let Some(value) = series.column.value(step) else { continue };
            let number = match &last {
                // Most values repeat from step to step, so text and key are not computed again.
                Some((before, number)) if is_same(before, &value) => *number,
                _ => self.group(&mut series.labels, &value, out)?,
            };
            let column = &mut self.columns[number];
            let count = column.float(step).unwrap_or(0.0);
            column.set_float(step, count + 1.0);
            last = Some((value, number));
        }
        out.context.recycle(series.column);
        Ok(())
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        let columns = std::mem::take(&mut self.columns);
        let columns = std::mem::take(&mut self.index).into_groups(columns, self.grid);
        out.context.budget.give(std::mem::take(&mut self.held));
        for (labels, column) in columns {
            out.emit(Series { labels, drop_name: false, column })?;
        }
        Ok(())
    }
}

/// Returns whether two values have the same text. Zero and negative zero differ.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Histogram(a), Value::Histogram(b)) => Rc::ptr_eq(a, b),
        _ => false,
    }
}

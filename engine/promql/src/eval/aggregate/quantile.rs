//! `quantile`, which keeps all floats of its input in memory.

use super::param::Param;
use crate::annotations::Note;
use crate::error::EvalError;
use crate::eval::budget::Usage;
use crate::eval::column::Column;
use crate::eval::key::KeyIndex;
use crate::eval::pipeline::{Operator, Out};
use crate::eval::series::Series;
use crate::plan::{AggregatePlan, Grid, Port};
use crate::quantile::of_values;
use crate::syntax::Span;

/// Memory of a column besides its values: the struct, and its float in the list of a step.
const COLUMN_BYTES: usize = size_of::<Column>() + size_of::<f64>();

pub struct Quantile {
    plan: AggregatePlan,
    grid: Grid,
    span: Span,
    param: Param,
    series_port: Port,
    index: KeyIndex,
    groups: Vec<(Vec<Column>, bool)>,
    held: Usage,
}

impl Quantile {
    pub fn new(plan: AggregatePlan, grid: Grid, span: Span) -> Quantile {
        Quantile {
            param: Param::new(plan.param),
            series_port: super::limit::series_port(&plan),
            plan,
            grid,
            span,
            index: KeyIndex::default(),
            groups: Vec::new(),
            held: Usage::default(),
        }
    }
}

impl Operator for Quantile {
    fn push(&mut self, port: Port, mut series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port != self.series_port {
            self.param.set(series.column);
            return Ok(());
        }
        if series.column.has_histograms() {
            let note = Note::HistogramIgnoredInAggregation("quantile");
            out.context.annotations.note(note, "", self.plan.expr_span);
            series.column.drop_histograms();
        }
        let index_bytes = self.index.bytes();
        let (number, is_new) = self.index.insert(&self.plan.by, &series.labels);
        if is_new {
            self.groups.push((Vec::new(), false));
        }
        let held = Usage {
            bytes: series.column.bytes() + self.index.bytes() - index_bytes + COLUMN_BYTES,
            samples: series.column.samples(),
        };
        self.held.bytes += held.bytes;
        self.held.samples += held.samples;
        out.context.budget.take(held, self.span)?;
        self.groups[number].1 |= series.drop_name;
        self.groups[number].0.push(series.column);
        Ok(())
    }

    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port != self.series_port {
            return Ok(());
        }
        let extent = self.param.extent();
        let mut note = |q| {
            out.context.annotations.note(Note::InvalidQuantile(q), "", self.plan.param_span);
        };
        if extent.has_nan {
            note(f64::NAN);
        }
        if extent.max > 1.0 {
            note(extent.max);
        }
        if extent.min < 0.0 {
            note(extent.min);
        }
        let groups = std::mem::take(&mut self.groups);
        let groups = std::mem::take(&mut self.index).into_groups(groups, self.grid);
        let mut values = Vec::new();
        for (labels, (columns, drop_name)) in groups {
            let mut column = out.context.column(self.grid.steps);
            for step in 0..self.grid.steps {
                values.clear();
                values.extend(columns.iter().filter_map(|column| column.float(step)));
                if !values.is_empty() {
                    column.set_float(step, of_values(self.param.at(step), &mut values));
                }
            }
            out.emit(Series { labels, drop_name, column })?;
        }
        out.context.budget.give(std::mem::take(&mut self.held));
        Ok(())
    }
}

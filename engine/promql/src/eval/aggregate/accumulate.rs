//! Aggregations that need only a few numbers for each group and step.

use super::floats::Floats;
use super::histograms::HistogramSum;
use crate::annotations::{HistogramOperation, Note};
use crate::error::EvalError;
use crate::eval::budget::Usage;
use crate::eval::column::Column;
use crate::eval::context::Context;
use crate::eval::key::KeyIndex;
use crate::eval::pipeline::{Operator, Out};
use crate::eval::series::Series;
use crate::model::{Labels, NAME};
use crate::plan::{AggregatePlan, Grid, Port};
use crate::syntax::{AggregateOp, Span};
use std::rc::Rc;

/// `sum`, `avg`, `count`, `group`, `min`, `max`, `stddev`, `stdvar`.
pub struct Accumulate {
    plan: AggregatePlan,
    grid: Grid,
    span: Span,
    index: KeyIndex,
    groups: Vec<Group>,
    held: Usage,
}

struct Group {
    floats: Floats,
    histograms: Vec<Option<Box<HistogramSum>>>,
    drop_name: bool,
}

impl Accumulate {
    pub fn new(plan: AggregatePlan, grid: Grid, span: Span) -> Accumulate {
        Accumulate {
            plan,
            grid,
            span,
            index: KeyIndex::default(),
            groups: Vec::new(),
            held: Usage::default(),
        }
    }

    fn group(&mut self, labels: &Labels, context: &mut Context) -> Result<usize, EvalError> {
        let (number, is_new) = self.index.insert(&self.plan.by, labels);
        if is_new {
            let floats = Floats::new(self.plan.op, self.grid.steps);
            let samples = self.grid.steps as u64;
            let bytes = floats.bytes() + self.index.labels(number).bytes() + size_of::<Group>();
            self.take(Usage { bytes, samples }, context)?;
            self.groups.push(Group { floats, histograms: Vec::new(), drop_name: false });
        }
        Ok(number)
    }

    fn take(&mut self, held: Usage, context: &mut Context) -> Result<(), EvalError> {
        self.held.bytes += held.bytes;
        self.held.samples += held.samples;
        context.budget.take(held, self.span)
    }

    fn histograms(
        &mut self,
        number: usize,
        series: &Series,
        context: &mut Context,
    ) -> Result<(), EvalError> {
        let op = self.plan.op;
        let steps = self.grid.steps;
        let mut more = 0;
        let group = &mut self.groups[number];
        for step in 0..steps {
            let Some(histogram) = series.column.histogram(step) else { continue };
            match op {
                AggregateOp::Count | AggregateOp::Group => group.floats.count_histogram(op, step),
                AggregateOp::Sum | AggregateOp::Avg => {
                    group.histograms.resize_with(steps, || None);
                    let note = match &mut group.histograms[step] {
                        Some(sum) if sum.is_broken() => None,
                        Some(sum) => sum.add(histogram, op == AggregateOp::Avg),
                        place => {
                            let after_floats = group.floats.present().get(step);
                            let sum = HistogramSum::first(histogram, after_floats);
                            more += sum.bytes();
                            *place = Some(Box::new(sum));
                            None
                        }
                    };
                    if let Some(note) = note {
                        let metric = series.labels.get(NAME);
                        context.annotations.note(note, metric, self.plan.expr_span);
                    }
                }
                _ => {
                    let note = Note::HistogramIgnoredInAggregation(op.name());
                    context.annotations.note(note, "", self.plan.expr_span);
                    // One annotation suffices, because its text names neither step nor series.
                    break;
                }
            }
        }
        self.take(Usage { bytes: more, samples: more as u64 / 16 }, context)
    }

    fn column(&self, mut group: Group, context: &mut Context) -> Column {
        let op = self.plan.op;
        let mut column = context.column(self.grid.steps);
        for step in group.floats.present().iter() {
            column.set_float(step, group.floats.result(op, step));
        }
        for step in 0..group.histograms.len() {
            let Some(sum) = &mut group.histograms[step] else { continue };
            let mut note = |note| context.annotations.note(note, "", self.plan.expr_span);
            // A group with floats and histograms has no result at this step.
            if column.float(step).is_some() {
                column.clear_step(step);
                note(Note::MixedFloatsHistogramsInAggregation);
                continue;
            }
            let (value, collides) = sum.result(op == AggregateOp::Avg);
            if collides {
                note(Note::CounterResetCollision(HistogramOperation::Aggregate));
            }
            if let Some(value) = value {
                column.set_histogram(step, Rc::new(value));
            }
        }
        column
    }
}

impl Operator for Accumulate {
    fn push(&mut self, _: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        let number = self.group(&series.labels, out.context)?;
        let has_broken = series.column.has_histograms() || {
            let group = &self.groups[number];
            group.histograms.iter().flatten().any(|sum| sum.is_broken())
        };
        self.groups[number].drop_name |= series.drop_name;
        if !has_broken {
            self.groups[number].floats.add(self.plan.op, &series.column);
        } else {
            let mut floats = series.column.clone();
            floats.drop_histograms();
            let group = &self.groups[number];
            for (step, sum) in group.histograms.iter().enumerate() {
                // Samples after histograms that could not be added are ignored at this step.
                if sum.as_ref().is_some_and(|sum| sum.is_broken()) {
                    floats.clear_step(step);
                }
            }
            self.groups[number].floats.add(self.plan.op, &floats);
            self.histograms(number, &series, out.context)?;
        }
        out.context.recycle(series.column);
        Ok(())
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        let groups = std::mem::take(&mut self.groups);
        let groups = std::mem::take(&mut self.index).into_groups(groups, self.grid);
        out.context.budget.give(std::mem::take(&mut self.held));
        for (labels, group) in groups {
            let drop_name = group.drop_name;
            let column = self.column(group, out.context);
            out.emit(Series { labels, drop_name, column })?;
        }
        Ok(())
    }
}

//! `topk`, `bottomk`: the largest or smallest values of each group at each step.

use super::heap::{Entry, Heap};
use super::limit::{check_count, series_port};
use super::param::Param;
use crate::annotations::Note;
use crate::error::EvalError;
use crate::eval::budget::Usage;
use crate::eval::column::Column;
use crate::eval::context::Context;
use crate::eval::key::KeyIndex;
use crate::eval::pipeline::{Operator, Out};
use crate::eval::series::Series;
use crate::model::Labels;
use crate::plan::{AggregatePlan, Grid, Port};
use crate::syntax::{AggregateOp, Span};
use tidepool_model::sort;

pub struct Rank {
    plan: AggregatePlan,
    grid: Grid,
    span: Span,
    param: Param,
    series_port: Port,
    is_open: Option<bool>,
    index: KeyIndex,
    /// Heaps of the selected values of each group and step, the worst value on top.
    heaps: Vec<Vec<Heap>>,
    /// Series in order of arrival; labels are kept while a value of their series is selected.
    series: Vec<Ranked>,
    held: Usage,
}

struct Ranked {
    labels: Labels,
    drop_name: bool,
    entries: u32,
}

impl Rank {
    pub fn new(plan: AggregatePlan, grid: Grid, span: Span) -> Rank {
        Rank {
            param: Param::new(plan.param),
            series_port: series_port(&plan),
            plan,
            grid,
            span,
            is_open: None,
            index: KeyIndex::default(),
            heaps: Vec::new(),
            series: Vec::new(),
            held: Usage::default(),
        }
    }

    fn open(&mut self) -> Result<bool, EvalError> {
        if self.is_open.is_none() {
            self.is_open = Some(check_count(&self.param)?);
        }
        Ok(self.is_open == Some(true))
    }

    fn take(&mut self, bytes: usize, samples: u64, context: &mut Context) -> Result<(), EvalError> {
        self.held.bytes += bytes;
        self.held.samples += samples;
        context.budget.take(Usage { bytes, samples }, self.span)
    }

    /// Offers the values of a series to the heaps of its group; returns how many heaps grew.
    fn rank(&mut self, group: usize, column: &Column) -> usize {
        let series = self.series.len() as u32;
        let is_largest = self.plan.op == AggregateOp::Topk;
        let (mut grown, mut entries) = (0, 0);
        for step in column.present().iter() {
            // `check_count` has refused counts beyond 64 bits; the cast truncates as Go's does.
            let count = self.param.at(step) as i64;
            if count < 1 {
                continue;
            }
            let entry = Entry { value: column.floats()[step], series };
            let (is_in, out) = self.heaps[group][step].offer(entry, count, is_largest);
            entries += u32::from(is_in);
            let Some(out) = out else {
                grown += usize::from(is_in);
                continue;
            };
            if let Some(ranked) = self.series.get_mut(out.series as usize) {
                ranked.entries -= 1;
                // Labels need most of the memory, so they are freed with the last selected value.
                if ranked.entries == 0 {
                    ranked.labels = Labels::default();
                }
            }
        }
        self.series.push(Ranked { labels: Labels::default(), drop_name: false, entries });
        grown
    }

    fn in_order_of_value(&mut self, out: &mut Out<'_>) -> Result<(), EvalError> {
        let is_largest = self.plan.op == AggregateOp::Topk;
        for heaps in std::mem::take(&mut self.heaps) {
            for heap in heaps {
                for entry in heap.into_sorted(is_largest) {
                    let ranked = &mut self.series[entry.series as usize];
                    let labels = std::mem::take(&mut ranked.labels);
                    let column = Column::constant(1, entry.value);
                    out.emit(Series { labels, drop_name: ranked.drop_name, column })?;
                }
            }
        }
        Ok(())
    }

    fn in_order_of_series(&mut self, out: &mut Out<'_>) -> Result<(), EvalError> {
        // Entries are in memory twice until the heaps are freed.
        let count = self.heaps.iter().flatten().map(Heap::len).sum::<usize>();
        let copy = Usage { bytes: count * size_of::<(u32, u32, f64)>(), samples: 0 };
        out.context.budget.take(copy, self.span)?;
        let mut entries: Vec<(u32, u32, f64)> = Vec::with_capacity(count);
        for heaps in std::mem::take(&mut self.heaps) {
            for (step, heap) in heaps.into_iter().enumerate() {
                let run = heap.into_sorted(false).into_iter();
                entries.extend(run.map(|it| (it.series, step as u32, it.value)));
            }
        }
        sort::sort_by_key(&mut entries, |(series, step, _)| (*series, *step));
        for run in entries.chunk_by(|a, b| a.0 == b.0) {
            let ranked = &mut self.series[run[0].0 as usize];
            let labels = std::mem::take(&mut ranked.labels);
            let mut column = out.context.column(self.grid.steps);
            run.iter().for_each(|(_, step, value)| column.set_float(*step as usize, *value));
            out.emit(Series { labels, drop_name: ranked.drop_name, column })?;
        }
        out.context.budget.give(copy);
        Ok(())
    }
}

impl Operator for Rank {
    fn push(&mut self, port: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port != self.series_port {
            self.param.set(series.column);
            return Ok(());
        }
        if !self.open()? {
            return Ok(());
        }
        if series.column.has_histograms() {
            let note = Note::HistogramIgnoredInAggregation(self.plan.op.name());
            out.context.annotations.note(note, "", self.span);
        }
        let (group, is_new) = self.index.insert(&self.plan.by, &series.labels);
        if is_new {
            let bytes = self.grid.steps * size_of::<Heap>();
            self.take(bytes + self.index.labels(group).bytes(), 0, out.context)?;
            self.heaps.push(vec![Heap::default(); self.grid.steps]);
        }
        let grown = self.rank(group, &series.column);
        out.context.recycle(series.column);
        let mut bytes = grown * size_of::<Entry>() + size_of::<Ranked>();
        if let Some(ranked) = self.series.last_mut()
            && ranked.entries > 0
        {
            bytes += series.labels.bytes();
            ranked.labels = series.labels;
            ranked.drop_name = series.drop_name;
        }
        self.take(bytes, grown as u64, out.context)
    }

    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        // Errors of the parameter are reported even if no series has arrived.
        if port != self.series_port || !self.open()? {
            return Ok(());
        }
        match self.grid.steps {
            1 => self.in_order_of_value(out)?,
            _ => self.in_order_of_series(out)?,
        }
        self.series.clear();
        out.context.budget.give(std::mem::take(&mut self.held));
        Ok(())
    }
}

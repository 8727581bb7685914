//! State shared by all operators of a query.

use super::Stats;
use super::budget::{Budget, Usage};
use super::column::Column;
use super::series::Series;
use crate::annotations::Annotations;
use crate::error::EvalError;
use crate::limits::Limits;
use crate::model::{Labels, Samples};
use crate::plan::{Grid, NodeId, Port};
use crate::syntax::Span;
use std::collections::VecDeque;

/// `SPARE_MAX` columns are kept for reuse, in at most 1/`SPARE_BYTES_DIVISOR` of the memory limit.
const SPARE_MAX: usize = 8;
const SPARE_BYTES_DIVISOR: usize = 16;

#[derive(Debug)]
pub struct Context {
    pub budget: Budget,
    pub annotations: Annotations,
    pub stats: Stats,
    /// Whether metric names are dropped only at the end (delayed name removal).
    pub is_delayed: bool,
    /// Whether a series was held back while others were emitted, out of label order.
    pub has_held_series: bool,
    /// Whether a later series may fail the query by repeating the labels of an earlier series or by
    /// matching several series. Then no series is delivered before all series are known.
    pub may_fail: bool,
    /// Whether the series of the answer are delivered in ascending order of labels.
    pub is_sorted: bool,
    /// Whether the running scan passes each series to one side of a join, then to the other side.
    pub is_lockstep: bool,
    /// Calls of operators that were deferred to keep the stack small.
    pub deferred: VecDeque<Deferred>,
    results: VecDeque<(Ready, Usage)>,
    spare: Vec<Column>,
    spare_steps_max: usize,
}

#[derive(Debug)]
pub struct Deferred {
    pub place: (NodeId, Port),
    /// The series and its memory; `None` at the end of the port.
    pub series: Option<(Series, Usage)>,
}

/// A series of the answer, before it is delivered.
#[derive(Debug)]
pub enum Ready {
    Column(Series, Grid),
    /// Samples with their own times, of a range vector selector.
    Samples(Labels, Samples),
}

impl Context {
    pub fn new(limits: Limits, is_delayed: bool, stats: Stats) -> Context {
        Context {
            budget: Budget::new(limits),
            annotations: Annotations::default(),
            stats,
            is_delayed,
            has_held_series: false,
            may_fail: false,
            is_sorted: false,
            is_lockstep: false,
            deferred: VecDeque::new(),
            results: VecDeque::new(),
            spare: Vec::new(),
            // The budget does not count spare columns, so their size is limited here.
            spare_steps_max: limits.bytes_max
                / SPARE_BYTES_DIVISOR
                / SPARE_MAX
                / Column::BYTES_PER_STEP,
        }
    }

    /// Returns an empty column, and recycles a spare column if possible.
    pub fn column(&mut self, steps: usize) -> Column {
        match self.spare.pop() {
            Some(mut column) => {
                column.reset(steps);
                column
            }
            None => Column::new(steps),
        }
    }

    pub fn recycle(&mut self, column: Column) {
        if self.spare.len() < SPARE_MAX && column.len() <= self.spare_steps_max {
            self.spare.push(column);
        }
    }

    pub fn answer(&mut self, ready: Ready, span: Span) -> Result<(), EvalError> {
        let held = match &ready {
            Ready::Column(series, _) => series.held(),
            Ready::Samples(labels, samples) => {
                // 16 bytes: a time and a value.
                Usage { bytes: labels.bytes() + samples.len() * 16, samples: samples.len() as u64 }
            }
        };
        self.budget.take(held, span)?;
        self.results.push_back((ready, held));
        Ok(())
    }

    pub fn take_answer(&mut self) -> Option<Ready> {
        let (ready, held) = self.results.pop_front()?;
        self.budget.give(held);
        Some(ready)
    }

    pub fn has_answer(&self) -> bool {
        !self.results.is_empty()
    }
}

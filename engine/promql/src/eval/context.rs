//! What all operators of one query share.

use super::Stats;
use super::budget::{Budget, Held};
use super::column::Column;
use super::series::Series;
use crate::annotations::Annotations;
use crate::error::EvalError;
use crate::limits::Limits;
use crate::model::{Labels, Samples};
use crate::plan::{Grid, NodeId, Port};
use crate::syntax::Span;
use std::collections::VecDeque;

/// Columns that are kept for the next series, and the part of the memory limit that they may take.
const SPARE_MAX: usize = 8;
const SPARE_BYTES_DIVISOR: usize = 16;

/// What all operators of one query share.
#[derive(Debug)]
pub struct Context {
    /// What may be held.
    pub budget: Budget,
    /// What was noted.
    pub annotations: Annotations,
    /// What was read.
    pub stats: Stats,
    /// Whether names are taken out at the end only.
    pub is_delayed: bool,
    /// Whether a series was held until others had passed, so that they come in another order than
    /// they were read.
    pub has_held_series: bool,
    /// Whether series that come later may be found to have the labels of earlier ones, or to match
    /// several others: then the answer must not begin before it is whole.
    pub may_fail: bool,
    /// Whether series of the answer come by ascending labels.
    pub is_sorted: bool,
    /// Whether the scan that runs gives series to both sides of joins one after the other.
    pub is_lockstep: bool,
    /// Calls that are put off, so that the stack stays small.
    pub deferred: VecDeque<Deferred>,
    results: VecDeque<(Ready, Held)>,
    spare: Vec<Column>,
    spare_steps_max: usize,
}

/// A call of an operator that is put off.
#[derive(Debug)]
pub struct Deferred {
    /// The operator's place, and the port.
    pub place: (NodeId, Port),
    /// The series that comes, and what it takes; none at the end of the port.
    pub series: Option<(Series, Held)>,
}

/// A series of the answer that waits for the caller.
#[derive(Debug)]
pub enum Ready {
    /// Values at the steps of a grid.
    Column(Series, Grid),
    /// Samples with times of their own.
    Samples(Labels, Samples),
}

impl Context {
    /// Nothing was read yet.
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
            spare_steps_max: limits.bytes_max
                / SPARE_BYTES_DIVISOR
                / SPARE_MAX
                / Column::BYTES_PER_STEP,
        }
    }

    /// An empty column, from those that were given back.
    pub fn column(&mut self, steps: usize) -> Column {
        match self.spare.pop() {
            Some(mut column) => {
                column.reset(steps);
                column
            }
            None => Column::new(steps),
        }
    }

    /// Takes a column back.
    pub fn recycle(&mut self, column: Column) {
        if self.spare.len() < SPARE_MAX && column.len() <= self.spare_steps_max {
            self.spare.push(column);
        }
    }

    /// Adds a series to the answer.
    pub fn answer(&mut self, ready: Ready, span: Span) -> Result<(), EvalError> {
        let held = match &ready {
            Ready::Column(series, _) => series.held(),
            Ready::Samples(labels, samples) => {
                Held { bytes: labels.bytes() + samples.len() * 16, samples: samples.len() as u64 }
            }
        };
        self.budget.take(held, span)?;
        self.results.push_back((ready, held));
        Ok(())
    }

    /// The next series of the answer that is ready.
    pub fn take_answer(&mut self) -> Option<Ready> {
        let (ready, held) = self.results.pop_front()?;
        self.budget.give(held);
        Some(ready)
    }

    /// Whether a series of the answer is ready.
    pub fn has_answer(&self) -> bool {
        !self.results.is_empty()
    }
}

//! The end of the pipeline: series become the answer.

use super::budget::Usage;
use super::context::Ready;
use super::pipeline::{Operator, Out};
use super::series::Series;
use super::series_union::SeriesUnion;
use crate::error::EvalError;
use crate::model::{drop_metadata, has_metadata};
use crate::plan::{self, Grid, Names, Port, Sorting};
use crate::syntax::Span;
use tidepool_model::sort;

/// Drops names whose removal was delayed.
pub struct Cleanup {
    names: Names,
    unite: SeriesUnion,
    span: Span,
}

impl Cleanup {
    pub fn new(names: Names, span: Span) -> Cleanup {
        Cleanup { names, unite: SeriesUnion::default(), span }
    }
}

impl Operator for Cleanup {
    fn push(&mut self, _: Port, mut series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        // Series with the same name, without type and unit, stay distinct without the name.
        let is_distinct = self.names != Names::Any && !has_metadata(&series.labels);
        if series.drop_name {
            drop_metadata(&mut series.labels);
        }
        self.unite.push(series, is_distinct, self.span, out)
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        self.unite.end(out)
    }
}

pub struct Root {
    plan: plan::Root,
    grid: Grid,
    span: Span,
    waiting: Vec<Series>,
    held: Usage,
}

impl Root {
    /// Delivers values at the times of `grid`. Series wait for sorting, or while a later series may
    /// make the query fail. Sorting is given up if the waiting series need too much memory.
    pub fn new(plan: plan::Root, grid: Grid, span: Span) -> Root {
        Root { plan, grid, span, waiting: Vec::new(), held: Usage::default() }
    }

    fn release(&mut self, out: &mut Out<'_>) -> Result<(), EvalError> {
        let mut waiting = std::mem::take(&mut self.waiting);
        if self.plan.sorting == Sorting::All {
            sort::sort_by(&mut waiting, |a, b| a.labels.cmp(&b.labels));
        }
        out.context.budget.give(std::mem::take(&mut self.held));
        let mut waiting = waiting.into_iter();
        waiting
            .try_for_each(|series| out.context.answer(Ready::Column(series, self.grid), self.span))
    }
}

impl Operator for Root {
    fn push(&mut self, _: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        if self.plan.sorting == Sorting::IfHeld && out.context.has_held_series {
            // Series were held for `__type__` or `__unit__`: they belong before series without
            // these labels, and after series that were delivered already.
            self.plan.sorting = Sorting::All;
        }
        let may_fail = self.plan.may_fail || out.context.may_fail;
        if self.plan.sorting != Sorting::All && !may_fail {
            return out.context.answer(Ready::Column(series, self.grid), self.span);
        }
        let held = series.held();
        self.held.bytes += held.bytes;
        self.held.samples += held.samples;
        out.context.budget.take(held, self.span)?;
        self.waiting.push(series);
        // An answer that may fail must wait whatever its size; the memory limit applies to it.
        if !may_fail && out.context.budget.is_too_much_to_sort(self.held) {
            self.plan.sorting = Sorting::None;
            out.context.is_sorted = false;
            return self.release(out);
        }
        Ok(())
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        self.release(out)
    }
}

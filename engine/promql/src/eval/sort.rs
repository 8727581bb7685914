//! `sort` and its variants, which collect all series of an instant query.

use super::budget::Usage;
use super::pipeline::{Operator, Out};
use super::series::Series;
use crate::error::EvalError;
use crate::plan::{Grid, Port, Sort};
use crate::syntax::Span;
use std::cmp::Ordering;
use tidepool_model::sort;

/// Sorts an instant vector; series of a range query pass, because their order is by labels.
pub struct Sorter {
    plan: Sort,
    grid: Grid,
    span: Span,
    series: Vec<Series>,
    held: Usage,
}

impl Sorter {
    pub fn new(plan: Sort, grid: Grid, span: Span) -> Sorter {
        Sorter { plan, grid, span, series: Vec::new(), held: Usage::default() }
    }

    fn compare(&self, a: &Series, b: &Series) -> Ordering {
        let Some(labels) = &self.plan.labels else {
            return self.by_value(a, b);
        };
        let order = labels.iter().map(|label| natural(a.labels.get(label), b.labels.get(label)));
        let order = order.fold(Ordering::Equal, Ordering::then);
        let order = order.then_with(|| a.labels.cmp(&b.labels));
        if self.plan.is_descending { order.reverse() } else { order }
    }

    /// Compares by value; NaN is last in both directions.
    fn by_value(&self, a: &Series, b: &Series) -> Ordering {
        let value = |series: &Series| series.column.float(0).unwrap_or(f64::NAN);
        let (a, b) = (value(a), value(b));
        match a.partial_cmp(&b) {
            Some(order) if self.plan.is_descending => order.reverse(),
            Some(order) => order,
            None => a.is_nan().cmp(&b.is_nan()),
        }
    }
}

impl Operator for Sorter {
    fn push(&mut self, _: Port, mut series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        // Histograms have no order; upstream leaves them out.
        if self.plan.labels.is_none() {
            series.column.drop_histograms();
        }
        if self.grid.steps > 1 {
            return out.emit(series);
        }
        // Series without a float at the only step are no elements of the vector.
        if series.column.is_empty() {
            return Ok(());
        }
        let held = series.held();
        self.held.bytes += held.bytes;
        self.held.samples += held.samples;
        out.context.budget.take(held, self.span)?;
        self.series.push(series);
        Ok(())
    }

    fn end(&mut self, _: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        let mut series = std::mem::take(&mut self.series);
        // The sort is stable: series of equal values keep their order of arrival.
        sort::sort_by(&mut series, |a, b| self.compare(a, b));
        out.context.budget.give(std::mem::take(&mut self.held));
        series.into_iter().try_for_each(|series| out.emit(series))
    }
}

/// Natural order: runs of digits compare as numbers.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while !left.is_empty() && !right.is_empty() {
        let (one, rest_of_left) = run(left);
        let (other, rest_of_right) = run(right);
        let order = match (one.parse::<i64>(), other.parse::<i64>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            // Everything else, also a number beyond 64 bits, compares as text.
            _ => one.cmp(other),
        };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (rest_of_left, rest_of_right);
    }
    left.len().cmp(&right.len())
}

/// Splits off the leading run of digits or of other characters.
fn run(text: &str) -> (&str, &str) {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_texts_are_numbers() {
        let mut texts = ["c10", "c2", "c", "b20", "10", "9", "", "c2x", "c02"];
        texts.sort_by(|a, b| natural(a, b));
        assert_eq!(texts, ["", "9", "10", "b20", "c", "c2", "c02", "c2x", "c10"]);
    }
}

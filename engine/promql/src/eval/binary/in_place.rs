//! One-to-one joins over several steps: results replace the values of the held ("one") side.

use super::join::{Group, Joiner, Pair, is_arithmetic, several_matches};
use crate::binop;
use crate::error::EvalError;
use crate::eval::column::Bits;
use crate::eval::pipeline::Out;
use crate::eval::series::Series;
use crate::model::Value;
use std::rc::Rc;

impl Joiner {
    /// Returns whether results may replace the held values: in a one-to-one join, each key has one
    /// result, to which several flowing series may contribute.
    pub(super) fn may_replace(&self) -> bool {
        let matching = &self.plan.matching;
        let has_fill = matching.fill_lhs.is_some() || matching.fill_rhs.is_some();
        self.grid.steps > 1 && !has_fill && self.labels.are_of_key()
    }

    pub(super) fn replace(&mut self, group: &mut Group, series: &Series) -> Result<(), EvalError> {
        let Some((labels, mut held)) = group.held.pop() else { return Ok(()) };
        if group.result.is_none() {
            group.result = Some(self.labels.of(&series.labels, &labels));
            group.histograms = Bits::new(self.grid.steps);
            // Results overwrite histograms, but errors of later series depend on the former types.
            if held.has_histograms() {
                let steps = (0..self.grid.steps).filter(|step| held.histogram(*step).is_some());
                steps.for_each(|step| group.histograms.set(step));
            }
        }
        for step in 0..self.grid.steps {
            if !series.column.has(step) {
                continue;
            }
            if group.matched.get(step) {
                // A second match is an error, unless the operator refuses the operand types.
                let was_histogram = group.histograms.get(step);
                match self.kinds(series.column.histogram(step).is_some(), was_histogram) {
                    element if element.value.is_none() => drop(self.result(element, step)),
                    _ => return Err(several_matches()),
                }
                continue;
            }
            let values = Pair { flowing: &series.column, held: &held };
            // Two floats are the common case and need no `Value`s.
            if is_arithmetic(self.plan.op)
                && let (Some(left), Some(right)) = (series.column.float(step), held.float(step))
            {
                held.set_float(step, binop::arithmetic(self.plan.op, left, right));
                group.matched.set(step);
                continue;
            }
            let Some(element) = self.element(values, step) else { continue };
            if let Some(value) = self.result(element, step) {
                // A value that a comparison filters is removed; its step still is matched.
                held.put(step, value);
                group.matched.set(step);
            }
        }
        group.held.push((labels, held));
        Ok(())
    }

    /// Applies the operator to any values of these types, because the held value is overwritten.
    fn kinds(&self, flows_histogram: bool, holds_histogram: bool) -> binop::Element {
        let any = |is_histogram| match is_histogram {
            true => Value::Histogram(Rc::default()),
            false => Value::Float(0.0),
        };
        binop::values(self.plan.op, &any(flows_histogram), &any(holds_histogram))
    }

    pub(super) fn replaced(&mut self, out: &mut Out<'_>) -> Result<(), EvalError> {
        for group in std::mem::take(&mut self.groups) {
            let Some(labels) = group.result else { continue };
            for (_, mut column) in group.held {
                column.keep(&group.matched);
                let drop_name = self.plan.returns_bool;
                let series = Series { labels: labels.clone(), drop_name, column };
                self.unite.push(series, true, self.span, out)?;
            }
        }
        Ok(())
    }
}

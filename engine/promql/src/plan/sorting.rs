//! Sort calls without effect: over a range, series come in the order of their labels.

use super::build::{Builder, SubqueryTimes};
use super::grid::{Grid, number_of_steps};
use crate::syntax::{Expr, ExprKind, Span};

const SORTS: [&str; 4] = ["sort", "sort_desc", "sort_by_label", "sort_by_label_desc"];

impl Builder<'_> {
    /// Collects the sort calls that are evaluated over a range. As in upstream, a subquery is a
    /// range if its first time is before its last time, even with only one step. Errors are ignored
    /// here, because planning reports the same errors.
    pub(super) fn add_sorts(&self, expr: &Expr, grid: Grid, is_range: bool, sorts: &mut Vec<Span>) {
        let is_once = self.invariance.get(expr).is_repeated;
        // A repeated part is evaluated as an instant query, where sorting has an effect.
        let (grid, is_range) = match is_once {
            true => (Grid { steps: grid.steps.min(1), ..grid }, false),
            false => (grid, is_range),
        };
        match &expr.kind {
            ExprKind::Call(call) if is_range && SORTS.contains(&call.function.name) => {
                sorts.push(expr.span);
            }
            ExprKind::Subquery(subquery) => {
                let Ok((_, times)) = self.subquery_times(subquery, grid) else { return };
                let SubqueryTimes { start_ms, last_ms, step_ms } = times;
                // Upstream compares the times, not the number of steps.
                let steps = number_of_steps(start_ms, last_ms, step_ms);
                let Ok(inner) = self.grid(start_ms, step_ms, steps, expr.span) else { return };
                return self.add_sorts(&subquery.expr, inner, start_ms < last_ms, sorts);
            }
            _ => {}
        }
        for child in expr.children() {
            self.add_sorts(child, grid, is_range, sorts);
        }
    }
}

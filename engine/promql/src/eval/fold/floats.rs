//! Short path for series that have only floats.

use super::Fold;
use crate::eval::buffer::Buffer;
use crate::eval::stats::Stats;
use crate::functions::{Run, RunFunction};
use crate::plan::FoldKind;
use crate::syntax::RangeBounds;

impl Fold {
    /// Evaluates the steps whose samples are all known, if all samples are floats and the function
    /// has a short path. Returns whether the short path was taken.
    pub(super) fn floats(&mut self, buffer: &Buffer, stats: &mut Stats) -> bool {
        let (samples, stale, base) = buffer.parts();
        let function: Option<RunFunction> = match self.plan.kind {
            FoldKind::Value if stale.is_empty() => Some(|run, _| run.last()),
            FoldKind::Range(function) if self.plan.bounds == RangeBounds::Samples => function.run,
            _ => None,
        };
        // Histograms and start timestamps need the general path.
        let has_more = !samples.histograms.is_empty() || !samples.float_starts.is_empty();
        let is_shifted = self.plan.at_ms.is_some() || self.plan.margin_ms != (0, 0);
        let Some(function) = function else { return false };
        // Statistics per step need a number of samples per window; a run returns only the total.
        if has_more || is_shifted || !stats.samples_per_step.is_empty() {
            return false;
        }
        let end_ms = self.reference(self.step);
        let left = self.grid.steps - self.step;
        // The number of ready steps is computed once, which saves a test for each step.
        let ready = match (buffer.known_ms.checked_sub(end_ms), self.grid.step_ms) {
            (_, _) if buffer.known_ms == i64::MAX => left,
            (Some(ahead_ms @ 0..), step_ms @ 1..) => (ahead_ms / step_ms) as usize + 1,
            (Some(0..), _) => left,
            _ => 0,
        };
        let steps = self.step..self.step + ready.min(left);
        let (values, present) = self.column.parts_mut();
        let mut run = Run {
            floats: &samples.floats,
            steps: steps.clone(),
            end_ms,
            step_ms: self.grid.step_ms,
            range_ms: self.plan.range_ms,
            first: self.first.float - base.float,
            behind: self.behind.float - base.float,
            seen: 0,
            values,
            present,
        };
        function(&mut run, &mut self.memory);
        let seen = run.seen;
        self.first.float = run.first + base.float;
        self.behind.float = run.behind + base.float;
        self.first.stale = base.stale + stale.len();
        self.step = steps.end;
        if self.plan.is_counted {
            stats.count(&self.grid, 0, seen);
        }
        true
    }
}

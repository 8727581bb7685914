//! Times at which an expression is evaluated.

/// Evaluation times: `steps` times, `step_ms` apart, from `start_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// First evaluation time in milliseconds since the epoch.
    pub start_ms: i64,
    /// Milliseconds between two evaluation times; 1 for an instant query.
    pub step_ms: i64,
    /// Number of evaluation times; 0 for an empty subquery.
    pub steps: usize,
}

impl Grid {
    /// Returns whether the grid belongs to a range, which may have a single step. An instant query
    /// has one step and a `step_ms` of 1.
    pub fn is_of_range(&self) -> bool {
        self.steps > 1 || self.step_ms > 1
    }

    /// Time of a step in milliseconds since the epoch.
    #[inline]
    pub fn time(&self, step: usize) -> i64 {
        self.start_ms + self.step_ms * step as i64
    }

    /// Time of the last step; `start_ms` if there are no steps.
    pub fn last(&self) -> i64 {
        self.time(self.steps.saturating_sub(1))
    }
}

/// Number of times from `start_ms` to `end_ms`, both included; 0 for an empty range.
pub(super) fn number_of_steps(start_ms: i64, end_ms: i64, step_ms: i64) -> u64 {
    match end_ms.checked_sub(start_ms) {
        _ if end_ms < start_ms || step_ms <= 0 => 0,
        Some(width) => (width / step_ms) as u64 + 1,
        // A width beyond 64 bits has more steps than any limit allows.
        None => u64::MAX,
    }
}

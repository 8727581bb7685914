//! The times at which an expression is evaluated.

/// Evaluation times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// First time in milliseconds since the epoch.
    pub start_ms: i64,
    /// Milliseconds between two.
    pub step_ms: i64,
    /// How many there are.
    pub steps: usize,
}

impl Grid {
    /// Whether these are steps of a range, which may be a single one. An instant query has one
    /// step and no time between two, for which a millisecond stands.
    pub fn is_of_range(&self) -> bool {
        self.steps > 1 || self.step_ms > 1
    }

    /// Time of a step.
    #[inline]
    pub fn time(&self, step: usize) -> i64 {
        self.start_ms + self.step_ms * step as i64
    }

    /// Time of the last step; `start_ms` if there is none.
    pub fn last(&self) -> i64 {
        self.time(self.steps.saturating_sub(1))
    }
}

/// How many times there are from a first to a last one, both included.
pub(super) fn number_of_steps(start_ms: i64, end_ms: i64, step_ms: i64) -> u64 {
    match end_ms.checked_sub(start_ms) {
        _ if end_ms < start_ms || step_ms <= 0 => 0,
        Some(width) => (width / step_ms) as u64 + 1,
        None => u64::MAX,
    }
}

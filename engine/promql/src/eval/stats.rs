//! Statistics that an evaluation collects.

use crate::plan::Grid;

/// Counts of series, samples and memory of one evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of series returned by the store.
    pub series: u64,
    /// Number of samples returned by the store, stale markers included.
    pub samples_read: u64,
    /// Samples in windows and instant vectors, counted once for each step. Samples of a subquery
    /// count in the windows of the outer function. A histogram counts as several samples.
    pub samples_total: u64,
    /// Like `samples_total`, for each step of the query; empty unless requested.
    pub samples_per_step: Vec<u64>,
    /// Most bytes held at any one time.
    pub bytes_peak: usize,
    /// Most samples held at any one time.
    pub samples_peak: u64,
    steps: usize,
}

impl Stats {
    /// Returns empty statistics for the times of `grid`; `is_per_step` counts each step on its own.
    pub fn new(grid: Grid, is_per_step: bool) -> Stats {
        let steps = if is_per_step { grid.steps } else { 0 };
        Stats { samples_per_step: vec![0; steps], steps: grid.steps, ..Stats::default() }
    }

    /// Counts samples of a step. A part that is evaluated once counts at each step.
    #[inline]
    pub fn count(&mut self, grid: &Grid, step: usize, samples: u64) {
        // Only parts that are evaluated once have another number of steps.
        if grid.steps == self.steps {
            self.samples_total += samples;
            if let Some(count) = self.samples_per_step.get_mut(step) {
                *count += samples;
            }
        } else {
            self.samples_total += samples * self.steps as u64;
            self.samples_per_step.iter_mut().for_each(|count| *count += samples);
        }
    }
}

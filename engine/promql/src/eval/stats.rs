//! What an evaluation read.

use crate::plan::Grid;

/// What an evaluation read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Series that the store gave.
    pub series: u64,
    /// Samples that the store gave, stale markers included.
    pub samples_read: u64,
    /// Samples that windows and instant vectors held, once for each step; those of subqueries count
    /// where the outer function sees them. A histogram counts by its size.
    pub samples_total: u64,
    /// The same for each step of the query; empty unless asked for.
    pub samples_per_step: Vec<u64>,
    /// Most bytes that were held at once.
    pub bytes_peak: usize,
    /// Most samples that were held at once.
    pub samples_peak: u64,
    steps: usize,
}

impl Stats {
    /// Nothing was read by a query of these times. Samples may be counted for each of them.
    pub fn new(grid: Grid, is_per_step: bool) -> Stats {
        let steps = if is_per_step { grid.steps } else { 0 };
        Stats { samples_per_step: vec![0; steps], steps: grid.steps, ..Stats::default() }
    }

    /// Counts samples of a step. What is evaluated once counts at each step.
    #[inline]
    pub fn count(&mut self, grid: &Grid, step: usize, samples: u64) {
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

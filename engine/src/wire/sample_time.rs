//! The times of a request's samples, for a node that cannot trust its own clock.

use super::{SeriesData, WriteSink};
use crate::model::Value;

/// Collects the times of a request's samples, and ignores all else.
#[derive(Default)]
pub struct SampleTimes(Vec<i64>);

impl SampleTimes {
    /// Returns the median, so that a few wrong times do not matter; `None` if there is no sample.
    pub fn median_ms(mut self) -> Option<i64> {
        let middle = self.0.len() / 2;
        let is_empty = self.0.is_empty();
        // Only the middle element is needed, so the list is not sorted.
        (!is_empty).then(|| *self.0.select_nth_unstable(middle).1)
    }

    fn take(&mut self, data: SeriesData<'_>) {
        self.0.extend(data.samples.iter().map(|sample| sample.timestamp_ms));
        self.0.extend(data.histograms.iter().map(|(timestamp_ms, _)| *timestamp_ms));
    }
}

impl<'r> WriteSink<'r> for SampleTimes {
    type Histogram = Value;

    fn series_by_pairs(&mut self, _: &[(&'r [u8], &'r [u8])], data: SeriesData<'_>) {
        self.take(data);
    }

    fn series_by_refs(&mut self, _: &[u32], data: SeriesData<'_>) {
        self.take(data);
    }
}

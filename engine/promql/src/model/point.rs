//! Samples of one series, floats and histograms in separate lists.

use super::Histogram;
use std::rc::Rc;

/// A float with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatPoint {
    /// Time in milliseconds since the epoch.
    pub time_ms: i64,
    /// Value of the sample; may be a stale marker.
    pub value: f64,
}

/// A native histogram with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramPoint {
    /// Time in milliseconds since the epoch.
    pub time_ms: i64,
    /// Value of the sample; its sum may be a stale marker.
    pub histogram: Rc<Histogram>,
}

/// Samples of one series in time order, stale markers included. No time is in both lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Float samples in time order.
    pub floats: Vec<FloatPoint>,
    /// Native histogram samples in time order.
    pub histograms: Vec<HistogramPoint>,
    /// Start times of the counter in milliseconds, one for each float, 0 if unknown; empty unless
    /// [`start_times`](crate::source::Hints::start_times) asks for them.
    pub float_starts: Vec<i64>,
    /// Start times of `histograms`, in the form of `float_starts`.
    pub histogram_starts: Vec<i64>,
}

impl Samples {
    /// Returns the number of samples of both kinds.
    pub fn len(&self) -> usize {
        self.floats.len() + self.histograms.len()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.floats.is_empty() && self.histograms.is_empty()
    }

    /// Removes all samples and start times, but keeps the memory.
    pub fn clear(&mut self) {
        self.floats.clear();
        self.histograms.clear();
        self.float_starts.clear();
        self.histogram_starts.clear();
    }
}

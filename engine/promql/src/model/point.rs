//! Samples of one series, floats apart from histograms.

use super::Histogram;
use std::rc::Rc;

/// A float with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatPoint {
    /// Milliseconds since the epoch.
    pub time_ms: i64,
    /// What the series says.
    pub value: f64,
}

/// A native histogram with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramPoint {
    /// Milliseconds since the epoch.
    pub time_ms: i64,
    /// What the series says.
    pub histogram: Rc<Histogram>,
}

/// Samples of one series in time order. No time is in both lists. Stale markers are among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Floats.
    pub floats: Vec<FloatPoint>,
    /// Native histograms.
    pub histograms: Vec<HistogramPoint>,
    /// Start times of the counter in milliseconds, one for each float, 0 if it is not known; empty
    /// unless [`start_times`](crate::source::Hints::start_times) asks for them.
    pub float_starts: Vec<i64>,
    /// Start times of `histograms`, likewise.
    pub histogram_starts: Vec<i64>,
}

impl Samples {
    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.floats.len() + self.histograms.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.floats.is_empty() && self.histograms.is_empty()
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.floats.clear();
        self.histograms.clear();
        self.float_starts.clear();
        self.histogram_starts.clear();
    }
}

//! Lists the samples that a trial scrape exposes but does not store. Normal scrapes only count such
//! samples.

use super::Appender;
use crate::series_text::Series;
use std::fmt;
use std::sync::Arc;
use tidepool_exposition::{METRIC_NAME, series_text};

/// A sample that is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The stored series of the sample, or the exposed series if its labels are not valid.
    pub series: String,
    pub reason: RefusalReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// A rule of `metric_relabel_configs` drops the series.
    Relabeled,
    /// The scrape has had the series before, and the sample has no timestamp.
    Repeated,
    /// The sample's time is too far ahead of the clock.
    TooFarAhead,
    /// The series has a sample that is newer by more than the out-of-order window.
    OutOfOrder,
    /// Another sample of the series has the same time and another value.
    Duplicate,
    /// The store refuses the labels, with this description.
    Labels(Arc<str>),
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RefusalReason::Labels(what) => what,
            RefusalReason::Relabeled => "dropped by metric_relabel_configs",
            RefusalReason::Repeated => "the series is exposed twice; the first sample counts",
            RefusalReason::TooFarAhead => {
                "its timestamp is more than 10 minutes ahead of the clock"
            }
            RefusalReason::OutOfOrder => {
                "out of order: the series has a sample that is too much newer"
            }
            RefusalReason::Duplicate => "the series has another value at the same time",
        })
    }
}

/// Samples of a scrape that are not stored.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    /// The first refusals, at most `list_max`.
    pub list: Vec<Refusal>,
    /// Number of all refusals, listed or not.
    pub count: u64,
    pub list_max: usize,
}

impl Refusals {
    pub fn add(&mut self, series: impl FnOnce() -> String, reason: RefusalReason) {
        self.count += 1;
        // The text of a series is made only if it is listed.
        if self.list.len() < self.list_max {
            self.list.push(Refusal { series: series(), reason });
        }
    }
}

impl Appender {
    /// Records from now on which samples are not stored, and lists up to `list_max` of them.
    pub fn note_refusals(&mut self, list_max: usize) {
        self.refusals = Some(Box::new(Refusals { list_max, ..Refusals::default() }));
    }

    pub fn refusals(&self) -> Refusals {
        self.refusals.as_deref().cloned().unwrap_or_default()
    }

    pub(super) fn note(&mut self, series: &impl Series, reason: RefusalReason) {
        if let Some(refusals) = &mut self.refusals {
            refusals.add(|| exposed(series), reason);
        }
    }
}

/// Returns the text of a series as its target exposes it.
pub(super) fn exposed(series: &impl Series) -> String {
    // Labels that do not parse may be the reason for the refusal, so the raw text is shown.
    let Ok(labels) = series.labels() else {
        return String::from_utf8_lossy(series.text()).into_owned();
    };
    let name = labels.iter().find(|(name, _)| name == METRIC_NAME);
    let name = name.map_or("", |(_, value)| value.as_str());
    let others = labels.iter().filter(|(name, _)| name != METRIC_NAME);
    series_text(name, others.map(|(name, value)| (name.as_str(), value.as_str())))
}

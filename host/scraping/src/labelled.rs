//! Keeps label sets by reference, for scrapes that plugins see: the rows of such scrapes are sent
//! as requests with labels, not by series numbers.
//!
//! The entry of an ended series is dropped. All entries are dropped when there are too many, for
//! example if many series vanish without a marker. A scrape then requests its references again.
//!
//! A request cannot prevent that a marker follows newer samples. So the time of each series' newest
//! sample from scrapes is kept, and a marker that is not newer is left out.

use std::collections::HashMap;
use tidepool_scrape::labels::Labels;
use tidepool_scrape::store::{SeriesRef, StoreError};

/// Distinguishes these references from series numbers of the head.
const LABELLED: u64 = 1 << 63;

/// Maximum number of label sets that are kept.
const SETS_MAX: usize = 1_000_000;

#[derive(Default)]
pub struct LabelledSeries {
    by_labels: HashMap<Labels, SeriesRef>,
    by_reference: HashMap<SeriesRef, Series>,
    /// Number of references created so far; no reference is used twice.
    given: u64,
}

struct Series {
    labels: Labels,
    newest_ms: i64,
}

/// Returns whether a reference is for a label set, not a series number of the head.
pub fn is_labelled(reference: SeriesRef) -> bool {
    reference & LABELLED != 0
}

impl LabelledSeries {
    pub fn reference(&mut self, labels: &Labels) -> SeriesRef {
        if let Some(reference) = self.by_labels.get(labels) {
            return *reference;
        }
        // A scrape that uses dropped references gets `UnknownSeries`, and then requests all
        // references again.
        if self.by_labels.len() >= SETS_MAX {
            self.by_labels.clear();
            self.by_reference.clear();
        }
        let reference = LABELLED | self.given;
        self.given += 1;
        self.by_labels.insert(labels.clone(), reference);
        let series = Series { labels: labels.clone(), newest_ms: i64::MIN };
        self.by_reference.insert(reference, series);
        reference
    }

    /// Returns the label sets of references. Fails if any of them was dropped.
    pub fn labels(&self, references: &[SeriesRef]) -> Result<Vec<Labels>, StoreError> {
        let found = references.iter().map(|reference| self.by_reference.get(reference));
        let found = found.map(|series| Some(series?.labels.clone()));
        found.collect::<Option<_>>().ok_or(StoreError::UnknownSeries)
    }

    /// Updates the newest times of series whose samples were stored.
    pub fn note(&mut self, references: &[SeriesRef], timestamps_ms: &[i64]) {
        for (reference, timestamp_ms) in references.iter().zip(timestamps_ms) {
            if let Some(series) = self.by_reference.get_mut(reference) {
                series.newest_ms = series.newest_ms.max(*timestamp_ms);
            }
        }
    }

    /// Drops series that end at a time, and returns their labels. Skips series with a sample at or
    /// after that time.
    pub fn end(&mut self, references: &[SeriesRef], at_ms: i64) -> Result<Vec<Labels>, StoreError> {
        // Checked before anything is dropped: after a failure, the scrape is stored again with new
        // references.
        if !references.iter().all(|reference| self.by_reference.contains_key(reference)) {
            return Err(StoreError::UnknownSeries);
        }
        let mut ended = Vec::new();
        for reference in references {
            let goes_on = |series: &Series| series.newest_ms >= at_ms;
            if self.by_reference.get(reference).is_some_and(goes_on) {
                continue;
            }
            if let Some(Series { labels, .. }) = self.by_reference.remove(reference) {
                self.by_labels.remove(&labels);
                ended.push(labels);
            }
        }
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(value: &str) -> Labels {
        [("a".to_owned(), value.to_owned())].into_iter().collect()
    }

    #[test]
    fn references_stay_until_their_series_ends() {
        let mut series = LabelledSeries::default();
        let (one, two) = (series.reference(&labels("1")), series.reference(&labels("2")));
        assert!(one != two && is_labelled(one) && !is_labelled(17));
        assert_eq!(series.reference(&labels("1")), one);
        assert_eq!(series.labels(&[two, one]), Ok(vec![labels("2"), labels("1")]));
        assert_eq!(series.end(&[one], 5), Ok(vec![labels("1")]));
        assert_eq!(series.labels(&[one]), Err(StoreError::UnknownSeries));
        assert_eq!(series.end(&[two, one], 5), Err(StoreError::UnknownSeries));
        assert_ne!(series.reference(&labels("1")), one);
        assert_eq!(series.labels(&[3]), Err(StoreError::UnknownSeries));
    }

    /// Regression: a target came back under another job while a plugin watched. The marker of the
    /// first job, which is dated back, was an out-of-order sample of the second one's series.
    #[test]
    fn a_series_with_newer_samples_does_not_end() {
        let mut series = LabelledSeries::default();
        let (one, two) = (series.reference(&labels("1")), series.reference(&labels("2")));
        series.note(&[one, two], &[10, 20]);
        series.note(&[one], &[5]);
        assert_eq!(series.end(&[one, two], 15), Ok(vec![labels("1")]));
        assert_eq!(series.labels(&[two]), Ok(vec![labels("2")]));
        assert_eq!(series.end(&[two], 20), Ok(vec![]), "nor one at that time");
        assert_eq!(series.end(&[two], 21), Ok(vec![labels("2")]));
    }
}

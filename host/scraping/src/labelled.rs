//! References to label sets, for scrapes that plugins look at: their rows go as requests, with
//! labels.
//!
//! A series that ends is dropped. All are dropped when there are too many, as after a long time
//! with series that never end by a marker; a scrape then asks again.
//!
//! A request cannot say that a marker is not to be stored behind newer samples. So the newest time
//! of each series that scrapes have stored is kept, and a marker that is not newer is left out.

use std::collections::HashMap;
use tidepool_scrape::labels::Labels;
use tidepool_scrape::store::{SeriesRef, StoreError};

/// The bit that tells these references from numbers of the head.
const LABELLED: u64 = 1 << 63;

/// Most label sets that are kept.
const SETS_MAX: usize = 1_000_000;

/// Label sets by reference.
#[derive(Default)]
pub struct LabelledSeries {
    by_labels: HashMap<Labels, SeriesRef>,
    by_reference: HashMap<SeriesRef, Series>,
    /// No reference is given twice.
    given: u64,
}

struct Series {
    labels: Labels,
    /// Time of the newest sample.
    newest_ms: i64,
}

/// Whether a reference is one of these.
pub fn is_labelled(reference: SeriesRef) -> bool {
    reference & LABELLED != 0
}

impl LabelledSeries {
    /// The reference of a label set.
    pub fn reference(&mut self, labels: &Labels) -> SeriesRef {
        if let Some(reference) = self.by_labels.get(labels) {
            return *reference;
        }
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

    /// The label sets of references.
    pub fn labels(&self, references: &[SeriesRef]) -> Result<Vec<Labels>, StoreError> {
        let found = references.iter().map(|reference| self.by_reference.get(reference));
        let found = found.map(|series| Some(series?.labels.clone()));
        found.collect::<Option<_>>().ok_or(StoreError::UnknownSeries)
    }

    /// Notes the times of samples that are stored.
    pub fn note(&mut self, references: &[SeriesRef], timestamps_ms: &[i64]) {
        for (reference, timestamp_ms) in references.iter().zip(timestamps_ms) {
            if let Some(series) = self.by_reference.get_mut(reference) {
                series.newest_ms = series.newest_ms.max(*timestamp_ms);
            }
        }
    }

    /// Drops what ends at a time, and returns its labels: without series that have samples of that
    /// time or later, which go on.
    pub fn end(&mut self, references: &[SeriesRef], at_ms: i64) -> Result<Vec<Labels>, StoreError> {
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

    /// The story of a target that came back under another job while a plugin watched: the marker of
    /// the first one, which is dated back, was a sample out of order behind those of the second.
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

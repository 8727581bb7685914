//! References to label sets, for scrapes that plugins look at: their rows go as requests, with
//! labels.
//!
//! A series that ends is dropped. All are dropped when there are too many, as after a long time
//! with series that never end by a marker; a scrape then asks again.

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
    by_reference: HashMap<SeriesRef, Labels>,
    /// No reference is given twice.
    given: u64,
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
        self.by_reference.insert(reference, labels.clone());
        reference
    }

    /// The label sets of references.
    pub fn labels(&self, references: &[SeriesRef]) -> Result<Vec<Labels>, StoreError> {
        let found = references.iter().map(|reference| self.by_reference.get(reference).cloned());
        found.collect::<Option<_>>().ok_or(StoreError::UnknownSeries)
    }

    /// Drops what ends.
    pub fn end(&mut self, references: &[SeriesRef]) {
        for reference in references {
            if let Some(labels) = self.by_reference.remove(reference) {
                self.by_labels.remove(&labels);
            }
        }
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
        series.end(&[one]);
        assert_eq!(series.labels(&[one]), Err(StoreError::UnknownSeries));
        assert_ne!(series.reference(&labels("1")), one);
        assert_eq!(series.labels(&[3]), Err(StoreError::UnknownSeries));
    }
}

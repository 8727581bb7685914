//! A store in memory for one trial scrape.

use super::LabelCheck;
use super::outcome::{Sample, Value};
use crate::append::RefusalReason;
use crate::labels::Labels;
use crate::store::{
    Appended, Batch, FamilyMetadata, HistogramRow, Reason, SeriesRef, SeriesRefused, Store,
    StoreError,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Store that records the rows of one scrape.
pub(super) struct TrialStore {
    rules: Rules,
    inner: Mutex<Inner>,
}

/// Rules by which the store accepts samples.
#[derive(Clone)]
pub(super) struct Rules {
    /// Number of rows at the end of a batch that are the report.
    pub report_rows: usize,
    /// Maximum age of a sample, relative to the newest sample of its series.
    pub out_of_order_ms: i64,
    /// Checks the labels of new series.
    pub check_labels: LabelCheck,
}

/// Samples of the current batch that were accepted, by series and time.
struct There {
    out_of_order_ms: i64,
    series: HashMap<Labels, BTreeMap<i64, Value>>,
}

#[derive(Debug, Default)]
struct Inner {
    series: Vec<Labels>,
    content: Content,
}

/// Everything that a scrape has stored.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Samples in the order of the exposition, native histograms last.
    pub samples: Vec<Sample>,
    pub report: Vec<(Labels, f64)>,
    pub refused: Vec<(Labels, RefusalReason)>,
    pub metadata: Vec<FamilyMetadata>,
}

impl TrialStore {
    pub fn new(rules: Rules) -> TrialStore {
        TrialStore { rules, inner: Mutex::default() }
    }

    pub fn take(&self) -> Content {
        std::mem::take(&mut self.lock().content)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for TrialStore {
    async fn resolve(
        &self,
        sets: Vec<Labels>,
    ) -> Result<Vec<Result<SeriesRef, SeriesRefused>>, StoreError> {
        let mut inner = self.lock();
        let Inner { series, content } = &mut *inner;
        let mut known: HashMap<Labels, SeriesRef> = series.iter().cloned().zip(0..).collect();
        let references = sets.into_iter().map(|labels| {
            let pairs: Vec<(&str, &str)> = labels.iter().collect();
            if let Err(what) = (self.rules.check_labels)(&pairs) {
                let reason = RefusalReason::Labels(what.as_str().into());
                content.refused.push((labels.clone(), reason));
                return Err(SeriesRefused { reason: Reason::Labels, what });
            }
            Ok(*known.entry(labels).or_insert_with_key(|labels| {
                series.push(labels.clone());
                series.len() as SeriesRef - 1
            }))
        });
        Ok(references.collect())
    }

    async fn append(&self, batch: Arc<Batch>, _: i64) -> Result<Appended, StoreError> {
        let mut inner = self.lock();
        let Inner { series, content } = &mut *inner;
        content.add(series, &batch, &self.rules).ok_or(StoreError::UnknownSeries)
    }
}

impl Content {
    /// Adds a batch; returns `None` if a reference in it is unknown.
    fn add(&mut self, series: &[Labels], batch: &Batch, rules: &Rules) -> Option<Appended> {
        let out_of_order_ms = rules.out_of_order_ms;
        let mut there = There { out_of_order_ms, series: HashMap::new() };
        let mut appended = Appended::default();
        let rows = batch.series.iter().zip(&batch.timestamps_ms).zip(&batch.values);
        let labels = |reference: &SeriesRef| series.get(usize::try_from(*reference).ok()?);
        // The rows of the report are the last ones of a batch.
        let exposed = batch.series.len().saturating_sub(rules.report_rows);
        for (row, ((reference, timestamp_ms), value)) in rows.enumerate() {
            let (labels, value) = (labels(reference)?.clone(), *value);
            if row >= exposed {
                self.report.push((labels, value));
                continue;
            }
            let sample =
                Sample::new(labels, *timestamp_ms, Value::Float(value), batch.markers_at_ms);
            self.put(sample, &mut there, &mut appended);
        }
        for HistogramRow { labels, timestamp_ms, histogram } in &batch.histograms {
            let value = Value::Histogram(Box::new(histogram.clone()));
            let sample = Sample::new(labels.clone(), *timestamp_ms, value, batch.markers_at_ms);
            self.put(sample, &mut there, &mut appended);
        }
        let mut places: HashMap<Labels, usize> = HashMap::new();
        // Built only if there are exemplars, which look up samples by labels.
        if !batch.exemplars.is_empty() {
            let samples = self.samples.iter().enumerate();
            places = samples.map(|(place, sample)| (sample.labels.clone(), place)).collect();
        }
        for exemplar in &batch.exemplars {
            let place = places.get(&exemplar.series);
            if let Some(sample) = place.and_then(|place| self.samples.get_mut(*place)) {
                sample.exemplars.push(exemplar.clone());
            }
        }
        self.metadata.extend_from_slice(&batch.metadata);
        Some(appended)
    }

    /// Stores a sample, unless it contradicts a sample of the same series.
    fn put(&mut self, sample: Sample, there: &mut There, appended: &mut Appended) {
        let Sample { labels, timestamp_ms, value, .. } = &sample;
        let samples = there.series.entry(labels.clone()).or_default();
        if let Some(other) = samples.get(timestamp_ms) {
            // An equal sample is ignored as a repetition.
            if !other.is_same(value) {
                appended.refused.add(Reason::Duplicate, 1);
                self.refused.push((labels.clone(), RefusalReason::Duplicate));
            }
            return;
        }
        let newest_ms = samples.last_key_value().map_or(i64::MIN, |(newest_ms, _)| *newest_ms);
        if timestamp_ms.saturating_add(there.out_of_order_ms) < newest_ms {
            appended.refused.add(Reason::OutOfOrder, 1);
            self.refused.push((labels.clone(), RefusalReason::OutOfOrder));
            return;
        }
        samples.insert(*timestamp_ms, value.clone());
        self.samples.push(sample);
    }
}

//! A store in memory, which keeps upstream's rules for single samples and fails on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tidepool_model::STALE_NAN;
use tidepool_scrape::clock::Clock;
use tidepool_scrape::labels::Labels;
use tidepool_scrape::store::{
    Appended, Batch, Reason, SeriesRef, SeriesRefused, Store, StoreError,
};
use tokio::time::Instant;

/// A clock that follows tokio's, which tests pause.
pub struct TestClock {
    start: Instant,
    at: Duration,
}

impl TestClock {
    /// A clock that shows this many seconds now.
    pub fn at_seconds(seconds: u64) -> TestClock {
        TestClock { start: Instant::now(), at: Duration::from_secs(seconds) }
    }
}

impl Clock for TestClock {
    fn now(&self) -> Duration {
        self.at + self.start.elapsed()
    }
}

/// A sample as it was stored.
#[derive(Clone, Debug)]
pub struct Stored {
    pub series: String,
    pub at_ms: i64,
    pub value: f64,
}

impl PartialEq for Stored {
    fn eq(&self, other: &Stored) -> bool {
        let key = |stored: &Stored| (stored.series.clone(), stored.at_ms, stored.value.to_bits());
        key(self) == key(other)
    }
}

/// `name{label="value"}` as a label set.
pub fn stored(series: &str, at_ms: i64, value: f64) -> Stored {
    Stored { series: series.to_owned(), at_ms, value }
}

pub fn marker(series: &str, at_ms: i64) -> Stored {
    stored(series, at_ms, STALE_NAN)
}

#[derive(Default)]
pub struct Inner {
    by_labels: BTreeMap<Labels, SeriesRef>,
    by_ref: BTreeMap<SeriesRef, Labels>,
    next: SeriesRef,
    newest: BTreeMap<SeriesRef, (i64, u64)>,
    /// All samples in the order in which they came.
    pub samples: Vec<Stored>,
    /// All batches, with references as they were.
    pub batches: Vec<Arc<Batch>>,
    /// Metric names that get no reference.
    pub refused: BTreeSet<String>,
    pub is_broken: bool,
    /// Numbers of label sets in each request.
    pub resolved: Vec<usize>,
}

#[derive(Default)]
pub struct MemoryStore(Mutex<Inner>);

impl MemoryStore {
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no test panics while it holds the store")
    }

    /// Returns samples since the last call, without reports.
    pub fn take(&self) -> Vec<Stored> {
        let is_report = |stored: &Stored| {
            stored.series.starts_with("up{")
                || stored.series.starts_with("up")
                || stored.series.starts_with("scrape_")
        };
        let mut samples = std::mem::take(&mut self.lock().samples);
        samples.retain(|stored| !is_report(stored));
        samples
    }

    /// Returns all samples since the last call.
    pub fn take_all(&self) -> Vec<Stored> {
        std::mem::take(&mut self.lock().samples)
    }

    /// Returns the values of a series.
    pub fn values(&self, series: &str) -> Vec<f64> {
        let inner = self.lock();
        let of = inner.samples.iter().filter(|stored| stored.series == series);
        of.map(|stored| stored.value).collect()
    }

    /// Drops a series, as compaction does, so that its reference is no longer valid.
    pub fn drop_series(&self, series: &str) {
        let mut inner = self.lock();
        let found = inner.by_ref.iter().find(|(_, labels)| shown(labels) == series);
        let reference = found.map(|(reference, _)| *reference).expect("a known series");
        let labels = inner.by_ref.remove(&reference).expect("a known series");
        inner.by_labels.remove(&labels);
        inner.newest.remove(&reference);
    }
}

/// Writes labels as `name{label="value"}` in the text format.
pub fn shown(labels: &Labels) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .filter(|(name, _)| *name != "__name__")
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    match pairs.is_empty() {
        true => labels.metric().to_owned(),
        false => format!("{}{{{}}}", labels.metric(), pairs.join(",")),
    }
}

impl Store for MemoryStore {
    async fn resolve(
        &self,
        sets: Vec<Labels>,
    ) -> Result<Vec<Result<SeriesRef, SeriesRefused>>, StoreError> {
        let mut inner = self.lock();
        inner.resolved.push(sets.len());
        let resolved = sets.into_iter().map(|labels| {
            if inner.refused.contains(labels.metric()) {
                let (reason, what) = (Reason::SeriesLimit, "too many series".into());
                return Err(SeriesRefused { reason, what });
            }
            if let Some(known) = inner.by_labels.get(&labels) {
                return Ok(*known);
            }
            inner.next += 1;
            let reference = inner.next;
            inner.by_ref.insert(reference, labels.clone());
            inner.by_labels.insert(labels, reference);
            Ok(reference)
        });
        Ok(resolved.collect())
    }

    async fn append(&self, batch: Arc<Batch>, _: i64) -> Result<Appended, StoreError> {
        let mut inner = self.lock();
        if inner.is_broken {
            let (reason, what) = (Reason::Disk, "the disk is full".into());
            return Err(StoreError::Unavailable { reason, what });
        }
        assert_eq!(batch.series.len(), batch.timestamps_ms.len());
        assert_eq!(batch.series.len(), batch.values.len());
        if batch.series.iter().chain(&batch.markers).any(|known| !inner.by_ref.contains_key(known))
        {
            return Err(StoreError::UnknownSeries);
        }
        let mut appended = Appended::default();
        let rows = batch.series.iter().zip(&batch.timestamps_ms).zip(&batch.values);
        for (row, ((reference, at_ms), value)) in (0..).zip(rows) {
            match inner.newest.get(reference) {
                Some((newest, bits)) if newest == at_ms => {
                    let is_refused = *bits != value.to_bits();
                    appended.refused.add(Reason::Duplicate, u64::from(is_refused));
                    appended.refused_rows.extend(is_refused.then_some(row));
                    continue;
                }
                Some((newest, _)) if newest > at_ms => {
                    appended.refused.add(Reason::OutOfOrder, 1);
                    appended.refused_rows.push(row);
                    continue;
                }
                _ => inner.put(*reference, *at_ms, *value),
            }
        }
        for reference in &batch.markers {
            let newest = inner.newest.get(reference).map(|(newest, _)| *newest);
            if newest.is_none_or(|newest| newest < batch.markers_at_ms) {
                inner.put(*reference, batch.markers_at_ms, STALE_NAN);
            }
        }
        inner.batches.push(batch);
        Ok(appended)
    }
}

impl Inner {
    fn put(&mut self, reference: SeriesRef, at_ms: i64, value: f64) {
        let series = shown(&self.by_ref[&reference]);
        self.newest.insert(reference, (at_ms, value.to_bits()));
        self.samples.push(Stored { series, at_ms, value });
    }
}

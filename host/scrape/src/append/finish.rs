//! Ends a scrape: determines its outcome, and adds staleness markers and the report.

use super::{Appender, Owner, Scrape};
use crate::cache::{Cache, Families, Finished, StoredExemplar};
use crate::error::ScrapeError;
use crate::report::{REPORT_SERIES, Report, Totals};
use crate::store::{Batch, ExemplarRow, FamilyMetadata, SeriesRef};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::spawn_blocking;

impl Appender {
    /// Ends a scrape. `result` is the result of the source. Returns the error of the scrape. If the
    /// body did not arrive as a whole, the scrape counts as empty. Afterwards the batch is complete
    /// except for the report.
    pub fn finish(&mut self, result: Result<(), ScrapeError>) -> (Totals, Result<(), ScrapeError>) {
        let (totals, result) = self.conclude(result);
        let iteration = self.take_iteration(totals, &result).end();
        self.put_iteration(iteration);
        (totals, result)
    }

    /// Like [`Appender::finish`], but visits the known series on another thread if there are many,
    /// so that other targets do not wait.
    pub async fn finish_elsewhere(
        &mut self,
        result: Result<(), ScrapeError>,
    ) -> (Totals, Result<(), ScrapeError>) {
        let (totals, result) = self.conclude(result);
        let iteration = self.take_iteration(totals, &result);
        // If the task panics, the target continues with an empty cache.
        let iteration = match iteration.is_long() {
            true => spawn_blocking(|| iteration.end()).await.unwrap_or_default(),
            false => iteration.end(),
        };
        self.put_iteration(iteration);
        (totals, result)
    }

    /// Frees memory as [`Appender::begin`] does, but on another thread if the cache is large.
    pub async fn shrink_elsewhere(&mut self) {
        if self.cache.places() > SERIES_MANY && self.cache.is_loose() {
            let mut cache = self.cache.take();
            let shrunk = spawn_blocking(move || {
                cache.shrink();
                cache
            });
            self.cache = shrunk.await.unwrap_or_default();
        }
    }

    fn conclude(&mut self, result: Result<(), ScrapeError>) -> (Totals, Result<(), ScrapeError>) {
        let scrape = &mut self.scrape;
        let (metrics, options) = (&self.metrics, &self.options);
        if scrape.is_over_samples {
            metrics.exceeded_sample_limit.add(1);
        }
        if scrape.is_over_buckets {
            metrics.exceeded_bucket_limit.add(1);
        }
        metrics.samples_duplicate.add(scrape.duplicates);
        metrics.samples_out_of_bounds.add(scrape.out_of_bounds);
        // A limit fails the scrape only now, because the totals need the whole body.
        let result = match result {
            Ok(()) if scrape.is_over_samples => {
                Err(ScrapeError::SampleLimit { limit: options.sample_limit })
            }
            Ok(()) if scrape.is_over_buckets => {
                Err(ScrapeError::BucketLimit { limit: options.bucket_limit })
            }
            result => result,
        };
        // Upstream parses only complete bodies, so nothing of an incomplete body counts.
        if result.as_ref().is_err_and(ScrapeError::is_without_body) {
            scrape.totals = Totals::default();
            self.cache.untrack();
        }
        if result.is_err() {
            let markers_at_ms = scrape.at_ms;
            // Replaced, not cleared, so that the memory of a failing target is freed.
            scrape.batch = Batch { markers_at_ms, ..Batch::default() };
            scrape.pending = Vec::new();
            scrape.new_labels = HashMap::new();
            scrape.exemplars = Vec::new();
            (scrape.last, scrape.labels_bytes) = (None, 0);
        } else {
            scrape.sort_exemplars();
            // Includes the rows of the report, which are added later.
            self.rows_before = scrape.batch.series.len() + REPORT_SERIES.len();
        }
        (self.scrape.totals, result)
    }

    fn take_iteration(&mut self, totals: Totals, result: &Result<(), ScrapeError>) -> Iteration {
        Iteration {
            // Moved out, because the iteration may end on another thread.
            cache: self.cache.take(),
            families: self.families.clone(),
            is_ok: result.is_ok(),
            is_without_room: matches!(result, Err(ScrapeError::Memory { .. })),
            // Upstream: an empty body does not flush the cache.
            is_good: result.is_ok() && totals.scraped + totals.body_bytes > 0,
            ..Iteration::default()
        }
    }

    fn put_iteration(&mut self, iteration: Iteration) {
        let Iteration { cache, markers, metadata, finished, .. } = iteration;
        self.cache = cache;
        self.scrape.batch.markers = markers;
        self.scrape.batch.metadata = metadata;
        self.scrape.ended = finished.ended;
        if finished.is_forced {
            self.metrics.cache_flushes_forced.add(1);
        }
    }

    /// Adds the report of the scrape to the batch.
    pub fn report(&mut self, report: &Report) {
        let values = report.values();
        self.report_rows(|index| values[index]);
        self.scrape.batch.metadata.extend(self.report_metadata());
    }

    /// Adds markers for the series of the report.
    fn report_ends(&mut self) {
        let known = self.report.iter().filter_map(|(_, reference)| *reference);
        self.scrape.batch.markers.extend(known);
    }

    fn report_rows(&mut self, value: impl Fn(usize) -> f64) {
        let scrape = &mut self.scrape;
        for (index, (_, reference)) in self.report.iter().enumerate() {
            if REPORT_SERIES[index].is_extra && !self.options.extra_metrics {
                continue;
            }
            if reference.is_none() {
                // The report has eight series, so the index fits.
                scrape.ask(Owner::Report(index as u8), true);
            }
            scrape.batch.series.push(reference.unwrap_or_default());
            scrape.batch.timestamps_ms.push(scrape.at_ms);
            scrape.batch.values.push(value(index));
        }
    }

    /// Returns the metadata of report series that the store has no reference for yet.
    fn report_metadata(&self) -> Vec<FamilyMetadata> {
        let series = self.report.iter().zip(REPORT_SERIES);
        series
            .filter(|((_, reference), series)| {
                reference.is_none() && (!series.is_extra || self.options.extra_metrics)
            })
            .map(|(_, series)| series.metadata())
            .collect()
    }

    /// Makes a batch of markers for all series of a target that is gone, including the report's.
    pub fn end(&mut self, at_ms: i64) {
        self.begin(at_ms, at_ms);
        // Ended like a failed scrape: the cache is not flushed, and metadata stays.
        self.scrape.batch.markers = self.cache.stale();
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = self.cache.finish(false, &self.scrape.batch.markers, &mut families);
        self.scrape.ended = finished.ended;
        drop(families);
        self.report_ends();
    }
}

impl Scrape {
    /// Sorts the exemplars of each series by time, the order that the store accepts.
    fn sort_exemplars(&mut self) {
        let rows = std::mem::take(&mut self.batch.exemplars);
        let stored = std::mem::take(&mut self.exemplars);
        let mut both: Vec<(StoredExemplar, ExemplarRow)> = stored.into_iter().zip(rows).collect();
        // Stable, so that the last of several exemplars with one time stays last.
        both.sort_by_key(|(stored, _)| (stored.slot, stored.at_ms));
        (self.exemplars, self.batch.exemplars) = both.into_iter().unzip();
    }
}

/// Number of series and families above which visiting all of them takes too long for the thread
/// that all targets share.
const SERIES_MANY: usize = 20_000;

/// The work at the end of a cache iteration, with its results.
#[derive(Default)]
struct Iteration {
    cache: Cache,
    families: Arc<Mutex<Families>>,
    is_ok: bool,
    is_good: bool,
    /// Whether series that were not stored are removed, because the scrape ran out of memory.
    is_without_room: bool,
    markers: Vec<SeriesRef>,
    metadata: Vec<FamilyMetadata>,
    finished: Finished,
}

impl Iteration {
    fn is_long(&self) -> bool {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        self.cache.places() + families.len() > SERIES_MANY
    }

    fn end(mut self) -> Iteration {
        self.markers = self.cache.stale();
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        self.finished = self.cache.finish(self.is_good, &self.markers, &mut families);
        if self.is_ok {
            self.metadata = families.take_changed();
        }
        if self.is_without_room {
            // Series without a reference are not stored; a later scrape adds them again.
            self.cache.remove_unresolved(&mut families);
        }
        drop(families);
        self
    }
}

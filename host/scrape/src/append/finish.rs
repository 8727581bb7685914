//! The end of a scrape: its outcome, markers, and the report.

use super::{Appender, Owner, Totals};
use crate::error::ScrapeError;
use crate::report::{REPORT_SERIES, Report};
use crate::store::{Batch, FamilyMetadata};
use std::sync::PoisonError;

impl Appender {
    /// Ends what the source returns. `result` is whether the source came to its end; returns the
    /// scrape's error. If the body did not come as a whole, the scrape counts as one that had
    /// nothing, whatever was read of it. From here on the batch holds what is to be stored, without
    /// the report.
    pub fn finish(&mut self, result: Result<(), ScrapeError>) -> (Totals, Result<(), ScrapeError>) {
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
        let result = match result {
            Ok(()) if scrape.is_over_samples => {
                Err(ScrapeError::SampleLimit { limit: options.sample_limit })
            }
            Ok(()) if scrape.is_over_buckets => {
                Err(ScrapeError::BucketLimit { limit: options.bucket_limit })
            }
            result => result,
        };
        if result.as_ref().is_err_and(ScrapeError::is_without_body) {
            scrape.totals = Totals::default();
            self.cache.untrack();
        }
        let totals = scrape.totals;
        if result.is_err() {
            let markers_at_ms = scrape.at_ms;
            scrape.batch = Batch { markers_at_ms, ..Batch::default() };
            scrape.pending.clear();
            scrape.new_labels.clear();
            scrape.exemplars.clear();
        } else {
            self.rows_before = scrape.batch.series.len() + REPORT_SERIES.len();
        }
        scrape.batch.markers = self.cache.stale();
        // An empty body is no reason to lose what is known.
        let is_good = result.is_ok() && totals.scraped + totals.body_bytes > 0;
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = self.cache.finish(is_good, &scrape.batch.markers, &mut families);
        scrape.ended = finished.ended;
        if finished.is_forced {
            self.metrics.cache_flushes_forced.add(1);
        }
        if result.is_ok() {
            scrape.batch.metadata = families.take_changed();
        }
        (totals, result)
    }

    /// Adds the report of the scrape to the batch.
    pub fn report(&mut self, report: &Report) {
        let values = report.values();
        self.report_rows(|index| values[index]);
        self.scrape.batch.metadata.extend(self.report_metadata());
    }

    /// Adds markers for the report's series.
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
                scrape.ask(Owner::Report(index as u8), true);
            }
            scrape.batch.series.push(reference.unwrap_or_default());
            scrape.batch.timestamps_ms.push(scrape.at_ms);
            scrape.batch.values.push(value(index));
        }
    }

    /// Metadata of report series that the store has no reference for yet.
    fn report_metadata(&self) -> Vec<FamilyMetadata> {
        let series = self.report.iter().zip(REPORT_SERIES);
        series
            .filter(|((_, reference), series)| {
                reference.is_none() && (!series.is_extra || self.options.extra_metrics)
            })
            .map(|(_, series)| series.metadata())
            .collect()
    }

    /// Makes a batch of markers for all series of a target that is gone, the report's among them.
    pub fn end(&mut self, at_ms: i64) {
        self.begin(at_ms, at_ms);
        // The target failed, so to speak: nothing is flushed, and metadata stays as it is.
        self.scrape.batch.markers = self.cache.stale();
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = self.cache.finish(false, &self.scrape.batch.markers, &mut families);
        self.scrape.ended = finished.ended;
        drop(families);
        self.report_ends();
    }
}

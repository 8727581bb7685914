//! Turns one scrape into one batch for the store. A failed scrape stores only its report.
//!
//! A source passes the exposition piece by piece, in its order. Samples are staged as columns of 24
//! bytes per row; labels are made only for series that the cache does not know. At the end of the
//! body, the appender adds staleness markers for vanished series and the report, and stores all in
//! one batch. A failure discards the staged samples, and adds markers for the series that the
//! failed scrape did not expose.
//!
//! A sample of an unchanged series costs one comparison of its text with the expected text, and no
//! allocation. Source: `scrape/scrape_append_v2.go` of prometheus/prometheus.

mod commit;
mod finish;
mod items;
mod labels;
mod refused;

pub use items::{BodyReader, Histograms};
pub use labels::{Mutator, Rules};
pub use refused::{Refusal, RefusalReason, Refusals};

use crate::cache::{Cache, Ended, Families, Lookup, Slot, StoredExemplar, TimelessExemplar};
use crate::error::{ScrapeError, beginning};
use crate::histogram::{limit_buckets, limit_schema};
use crate::labels::Labels;
use crate::memory::{MemoryBound, MemoryShare};
use crate::metrics::Metrics;
use crate::report::{REPORT_SERIES, Totals};
use crate::series_text::{Form, Series};
use crate::store::{Batch, ExemplarRow, HistogramRow, SeriesRef};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tidepool_exposition::{Counts, MetricType, NativeHistogram};
use tidepool_model::is_stale_nan;

/// Maximum time of a sample ahead of the clock, in milliseconds; as upstream.
const FUTURE_LIMIT_MS: i64 = 10 * 60 * 1000;

/// Maximum length of the names and values of an exemplar's labels, in characters; upstream's
/// `ExemplarMaxLabelSetLength`.
const EXEMPLAR_CHARS_MAX: usize = 128;

/// Maximum number of new series whose labels are kept until their references are requested. The
/// labels of further series are made twice, which bounds the memory of a first scrape of many
/// series.
const NEW_LABELS_MAX: usize = 4096;

/// Settings for turning samples of a target into rows.
#[derive(Clone, Debug)]
pub struct Options {
    /// Turns exposed labels into the labels of the stored series.
    pub mutator: Mutator,
    /// Whether timestamps of samples are used.
    pub honor_timestamps: bool,
    /// Whether a series with timestamps gets a marker when it vanishes.
    pub track_timestamps_staleness: bool,
    /// `sample_limit`; zero means no limit.
    pub sample_limit: u64,
    /// `native_histogram_bucket_limit`; zero means no limit.
    pub bucket_limit: u64,
    /// The finest schema of native histograms.
    pub schema_max: i32,
    /// Whether the report has the additional series.
    pub extra_metrics: bool,
}

/// An exemplar in an exposition.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    pub labels: Vec<(String, String)>,
    pub value: f64,
    /// Timestamp of the exemplar, if one is exposed.
    pub timestamp_ms: Option<i64>,
}

/// A row whose series has no reference yet, or a request for a reference only.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Index of the row, or [`NO_ROW`] if only the reference is needed.
    row: u32,
    of: Owner,
}

/// Value of [`Pending::row`] if there is no row.
const NO_ROW: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Series(Slot),
    Report(u8),
    /// Index of an entry of [`Scrape::ended`].
    Ended(u32),
}

/// Returns the number of bytes that a histogram uses on the heap.
fn bytes_of(histogram: &NativeHistogram) -> usize {
    const BUCKET_BYTES: usize = size_of::<f64>();
    let spans = histogram.positive_spans.len() + histogram.negative_spans.len();
    let buckets = match &histogram.counts {
        Counts::Integer { positive, negative, .. } => positive.len() + negative.len(),
        Counts::Float { positive, negative, .. } => positive.len() + negative.len(),
    };
    (spans + buckets + histogram.custom_values.len()) * BUCKET_BYTES
}

/// Makes batches out of the scrapes of one target.
#[derive(Debug)]
pub struct Appender {
    options: Options,
    metrics: Arc<Metrics>,
    cache: Cache,
    families: Arc<Mutex<Families>>,
    report: [(Labels, Option<SeriesRef>); REPORT_SERIES.len()],
    /// Number of rows of the previous scrape, used as the capacity for the next one.
    rows_before: usize,
    scrape: Scrape,
    /// Samples that are not stored; only trial scrapes list them.
    refusals: Option<Box<Refusals>>,
    /// Share of the memory of all targets.
    held: MemoryShare,
}

/// State of the current scrape.
#[derive(Debug, Default)]
struct Scrape {
    at_ms: i64,
    newest_ms: i64,
    batch: Batch,
    pending: Vec<Pending>,
    totals: Totals,
    /// Labels of new series, at most [`NEW_LABELS_MAX`].
    new_labels: HashMap<Slot, Labels>,
    /// Series that get markers and are no longer in the cache.
    ended: Vec<Ended>,
    /// Number of samples counted towards `sample_limit`.
    limited: u64,
    is_over_samples: bool,
    is_over_buckets: bool,
    duplicates: u64,
    out_of_bounds: u64,
    /// Bytes of the labels and histograms in this struct.
    labels_bytes: usize,
    /// Series of the last sample, the sample's time, and whether the sample is a native histogram.
    /// Exemplars that follow belong to this sample.
    last: Option<(Slot, i64, bool)>,
    /// Exemplars of the batch, in its order, for comparing the exemplars of later scrapes.
    exemplars: Vec<StoredExemplar>,
}

impl Scrape {
    fn memory_bytes(&self) -> usize {
        const ROW_BYTES: usize = size_of::<(SeriesRef, i64, f64)>();
        let Batch { series, histograms, exemplars, .. } = &self.batch;
        // Capacities, because unused capacity is allocated, too.
        series.capacity() * ROW_BYTES
            + self.pending.capacity() * size_of::<Pending>()
            + self.new_labels.capacity() * size_of::<(Slot, Labels)>()
            + histograms.capacity() * size_of::<HistogramRow>()
            + exemplars.capacity() * size_of::<ExemplarRow>()
            + self.exemplars.capacity() * size_of::<StoredExemplar>()
            + self.labels_bytes
    }

    /// Requests a reference for the next row, or without a row.
    fn ask(&mut self, of: Owner, has_row: bool) {
        let next = u32::try_from(self.batch.series.len()).unwrap_or(NO_ROW);
        self.pending.push(Pending { row: if has_row { next } else { NO_ROW }, of });
    }

    /// Counts a sample towards `sample_limit`, unless exempt; returns whether the limit holds.
    #[inline]
    fn counts_within(&mut self, limit: u64, is_exempt: bool) -> bool {
        if limit == 0 || is_exempt {
            return true;
        }
        self.limited += 1;
        let is_over = self.limited > limit;
        // The scrape fails at its end, because the totals need the whole body.
        self.is_over_samples |= is_over;
        !is_over
    }

    /// Returns whether a time is too far ahead, and counts the sample if so.
    #[inline]
    fn is_too_far_ahead(&mut self, at_ms: i64) -> bool {
        let is_too_far = at_ms > self.newest_ms;
        self.out_of_bounds += u64::from(is_too_far);
        is_too_far
    }
}

impl Appender {
    /// Creates an appender that knows no series. The seed is a random number.
    pub fn new(options: Options, metrics: Arc<Metrics>, seed: u64) -> Appender {
        let families = Arc::default();
        Appender::with_cache(options, metrics, Cache::new(seed), families)
    }

    /// Creates an appender that continues with the cache of another appender.
    pub fn with_cache(
        options: Options,
        metrics: Arc<Metrics>,
        cache: Cache,
        families: Arc<Mutex<Families>>,
    ) -> Appender {
        let report = REPORT_SERIES.map(|series| (options.mutator.report(series.name), None));
        let scrape = Scrape::default();
        let (rows_before, refusals) = (0, None);
        let held = MemoryBound::unbounded().holder();
        Appender { options, metrics, cache, families, report, rows_before, scrape, refusals, held }
    }

    /// Counts memory towards a bound from now on.
    pub fn within(mut self, memory: &MemoryBound) -> Appender {
        self.held = memory.holder();
        self
    }

    /// Counts the memory that is used now. Fails if the bound is exceeded.
    pub fn hold(&mut self) -> Result<(), ScrapeError> {
        let families = self.with_families(|families| families.memory_bytes());
        let bytes = self.cache.memory_bytes() + families + self.scrape.memory_bytes();
        self.held.set(bytes as u64)
    }

    /// Returns the number of samples about to be stored, including the report.
    pub fn rows(&self) -> u64 {
        let Batch { series, histograms, .. } = &self.scrape.batch;
        (series.len() + histograms.len()) as u64
    }

    /// Returns the state that another appender continues with.
    pub fn into_cache(self) -> (Cache, Arc<Mutex<Families>>) {
        (self.cache, self.families)
    }

    /// Returns the metadata of the target's families.
    pub fn families(&self) -> Arc<Mutex<Families>> {
        self.families.clone()
    }

    /// Starts a scrape. `now_ms` is the current time, `at_ms` the time for samples without one.
    pub fn begin(&mut self, at_ms: i64, now_ms: i64) {
        // Not at the end of a scrape, whose batch refers to slots: shrinking changes slots.
        self.cache.shrink();
        // With the capacity of the last scrape, columns rarely grow.
        self.scrape = Scrape {
            at_ms,
            newest_ms: now_ms.saturating_add(FUTURE_LIMIT_MS),
            batch: Batch {
                series: Vec::with_capacity(self.rows_before),
                timestamps_ms: Vec::with_capacity(self.rows_before),
                values: Vec::with_capacity(self.rows_before),
                markers_at_ms: at_ms,
                ..Batch::default()
            },
            ..Scrape::default()
        };
    }

    pub fn add_body_bytes(&mut self, bytes: u64) {
        self.scrape.totals.body_bytes += bytes;
    }

    /// Returns the bytes of the uncompressed body so far.
    pub fn body_bytes(&self) -> u64 {
        self.scrape.totals.body_bytes
    }

    pub fn family_kind(&mut self, family: &str, kind: MetricType) {
        self.with_families(|families| families.set_kind(family, kind));
    }

    pub fn family_help(&mut self, family: &str, help: &str) {
        self.with_families(|families| families.set_help(family, help));
    }

    pub fn family_unit(&mut self, family: &str, unit: &str) {
        self.with_families(|families| families.set_unit(family, unit));
    }

    fn with_families<T>(&self, f: impl FnOnce(&mut Families) -> T) -> T {
        f(&mut self.families.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stages a sample, with its timestamp if it has one.
    #[inline]
    pub fn sample(
        &mut self,
        series: &impl Series,
        timestamp_ms: Option<i64>,
        value: f64,
    ) -> Result<(), ScrapeError> {
        // Upstream: a stale marker of a known series does not count towards `sample_limit`.
        let is_exempt = |is_known| is_known && is_stale_nan(value);
        let admitted = self.admit(series, timestamp_ms, true, is_exempt, || Ok(()))?;
        if let Some((slot, at_ms, is_timed)) = admitted {
            self.stage(slot, at_ms, is_timed, value);
        }
        Ok(())
    }

    /// Returns the series that most likely follows, and its text, if [`Appender::expected_sample`]
    /// can stage the next sample.
    #[inline]
    pub fn expected(&self) -> Option<(Slot, &[u8])> {
        // The fast path makes no labels, which listing a refusal needs.
        if self.refusals.is_some() { None } else { self.cache.expected() }
    }

    /// Stages a sample without a timestamp, of the series that [`Appender::expected`] returned.
    #[inline]
    pub fn expected_sample(&mut self, slot: Slot, value: f64) {
        self.cache.see(slot);
        let (scrape, limit) = (&mut self.scrape, self.options.sample_limit);
        // Set again by `stage`: exemplars of a sample that is not staged are ignored.
        scrape.last = None;
        scrape.totals.scraped += 1;
        scrape.totals.added += 1;
        let at_ms = scrape.at_ms;
        if scrape.counts_within(limit, is_stale_nan(value)) && !scrape.is_too_far_ahead(at_ms) {
            self.stage(slot, at_ms, false, value);
        }
    }

    #[inline]
    fn stage(&mut self, slot: Slot, at_ms: i64, is_timed: bool, value: f64) {
        let scrape = &mut self.scrape;
        scrape.last = Some((slot, at_ms, false));
        let reference = self.cache.reference(slot);
        if reference.is_none() {
            scrape.ask(Owner::Series(slot), true);
        }
        // A placeholder keeps the columns aligned; `resolve_pending` replaces it.
        scrape.batch.series.push(reference.unwrap_or_default());
        scrape.batch.timestamps_ms.push(at_ms);
        scrape.batch.values.push(value);
        self.track(slot, is_timed);
    }

    /// Stages a native histogram, with its timestamp if any. An invalid histogram fails the scrape.
    pub fn histogram(
        &mut self,
        series: &impl Series,
        timestamp_ms: Option<i64>,
        mut histogram: NativeHistogram,
    ) -> Result<(), ScrapeError> {
        // Upstream reduces the schema first, which leaves fewer buckets to limit.
        limit_schema(&mut histogram, self.options.schema_max);
        let limit = self.options.bucket_limit;
        let fits = limit == 0 || limit_buckets(&mut histogram, limit);
        let sum = histogram.sum;
        let is_exempt = |is_known| is_known && is_stale_nan(sum);
        let admitted = self.admit(series, timestamp_ms, fits, is_exempt, || {
            histogram.validate().map_err(|why| ScrapeError::Histogram {
                series: beginning(&refused::exposed(series)),
                why: why.to_string(),
            })
        })?;
        let Some((slot, timestamp_ms, is_timed)) = admitted else { return Ok(()) };
        self.scrape.last = Some((slot, timestamp_ms, true));
        if let Some(labels) = self.kept_labels(slot) {
            self.scrape.labels_bytes += bytes_of(&histogram);
            self.scrape.batch.histograms.push(HistogramRow { labels, timestamp_ms, histogram });
        }
        self.track(slot, is_timed);
        // A histogram row has labels, not a reference, but a later marker needs the reference.
        if self.cache.reference(slot).is_none() {
            self.scrape.ask(Owner::Series(slot), false);
        }
        Ok(())
    }

    /// Adds an exemplar of the last sample. An exemplar that cannot be kept never fails a scrape.
    /// An exemplar without a timestamp that equals the series' last exemplar is not stored again.
    pub fn exemplar(&mut self, exemplar: Exemplar) {
        let Some((slot, sample_ms, is_native)) = self.scrape.last else { return };
        // A target exposes exemplars of native histograms again in each scrape, so only a timestamp
        // of their own distinguishes them.
        let timestamp_ms = match exemplar.timestamp_ms {
            None if is_native => return,
            own => own.unwrap_or(sample_ms),
        };
        let chars = |(name, value): &(String, String)| name.chars().count() + value.chars().count();
        if exemplar.labels.iter().map(chars).sum::<usize>() > EXEMPLAR_CHARS_MAX {
            return;
        }
        let Some(series) = self.kept_labels(slot) else { return };
        let (labels, value): (Labels, f64) =
            (exemplar.labels.into_iter().collect(), exemplar.value);
        let timeless = match exemplar.timestamp_ms {
            None => Some(TimelessExemplar { labels: labels.clone(), value }),
            Some(_) => None,
        };
        if timeless.as_ref().is_some_and(|exemplar| self.cache.is_repeated(slot, exemplar)) {
            return;
        }
        self.scrape.exemplars.push(StoredExemplar { slot, at_ms: timestamp_ms, timeless });
        self.scrape.labels_bytes += labels.bytes();
        self.scrape.batch.exemplars.push(ExemplarRow { series, labels, value, timestamp_ms });
    }

    /// Counts a sample and finds its series. Returns the series, the sample's time, and whether the
    /// time is the sample's own timestamp; `None` if the sample is not stored. `fits` is whether a
    /// histogram meets the bucket limit. `is_exempt` returns whether `sample_limit` ignores the
    /// sample, given whether the series is known. `check` validates a sample that would be stored.
    /// After a limit is exceeded, samples are still counted, for the totals.
    #[inline]
    fn admit(
        &mut self,
        series: &impl Series,
        timestamp_ms: Option<i64>,
        fits: bool,
        is_exempt: impl Fn(bool) -> bool,
        check: impl FnOnce() -> Result<(), ScrapeError>,
    ) -> Result<Option<(Slot, i64, bool)>, ScrapeError> {
        let scrape = &mut self.scrape;
        scrape.totals.scraped += 1;
        // Exemplars of a sample that is not stored are ignored.
        scrape.last = None;
        let own_ms = timestamp_ms.filter(|_| self.options.honor_timestamps);
        let at_ms = own_ms.unwrap_or(scrape.at_ms);
        let found = match self.cache.look_up(series.text()) {
            Lookup::Dropped => {
                self.note(series, RefusalReason::Relabeled);
                return Ok(None);
            }
            Lookup::Known { slot, is_repeated } => {
                // Of equal series without timestamps, the first is stored. With timestamps, each is
                // another sample.
                if is_repeated && own_ms.is_none() {
                    scrape.duplicates += 1;
                    scrape.totals.added += 1;
                    self.note(series, RefusalReason::Repeated);
                    return Ok(None);
                }
                Ok(slot)
            }
            Lookup::New => Err(self.new_labels(series)?),
        };
        if let Err(None) = found {
            // Cached without a form, so that the rules do not run again for this series.
            self.cache.insert(series.text(), None);
            self.note(series, RefusalReason::Relabeled);
            return Ok(None);
        }
        let scrape = &mut self.scrape;
        scrape.totals.added += 1;
        if !fits {
            scrape.is_over_buckets = true;
            return Ok(None);
        }
        if !scrape.counts_within(self.options.sample_limit, is_exempt(found.is_ok())) {
            return Ok(None);
        }
        if scrape.is_too_far_ahead(at_ms) {
            self.note(series, RefusalReason::TooFarAhead);
            return Ok(None);
        }
        if let Err(error) = check() {
            // An error fails the scrape. Upstream counts such a sample as scraped only.
            scrape.totals.added -= 1;
            return Err(error);
        }
        let slot = match found {
            Ok(slot) => slot,
            Err(labels) => {
                let is_over = scrape.is_over_samples || scrape.is_over_buckets;
                scrape.totals.series_added += u64::from(!is_over);
                let slot = self.cache.insert(series.text(), Some(series.form()));
                // Beyond the maximum, labels are made again when the reference is requested.
                if let Some(labels) = labels
                    && scrape.new_labels.len() < NEW_LABELS_MAX
                {
                    scrape.labels_bytes += labels.bytes();
                    scrape.new_labels.insert(slot, labels);
                }
                slot
            }
        };
        Ok(Some((slot, at_ms, own_ms.is_some())))
    }

    /// Returns the final labels of a series.
    fn labels_of_series(&self, slot: Slot) -> Option<Labels> {
        // Labels of most series are not kept, and are made again from text and form.
        let known = self.cache.kept_labels(slot).or_else(|| self.scrape.new_labels.get(&slot));
        match known {
            Some(labels) => Some(labels.clone()),
            None => self.cache.text(slot).and_then(|(text, form)| self.labels_of_text(text, form)),
        }
    }

    /// Makes the final labels from a text that was valid before.
    fn labels_of_text(&self, text: &[u8], form: Form) -> Option<Labels> {
        self.options.mutator.series(form.labels(text).ok()?).ok()?
    }

    /// Returns the final labels of a series that needs labels in each scrape, and keeps them.
    fn kept_labels(&mut self, slot: Slot) -> Option<Labels> {
        let labels = self.labels_of_series(slot)?;
        self.cache.keep_labels(slot, &labels);
        Some(labels)
    }

    #[cold]
    fn new_labels(&mut self, series: &impl Series) -> Result<Option<Labels>, ScrapeError> {
        // Upstream's parser reports a bad label before its sample counts as scraped.
        let exposed = series.labels().inspect_err(|_| self.scrape.totals.scraped -= 1)?;
        self.options.mutator.series(exposed).inspect_err(|error| {
            use ScrapeError::{LabelLimit, LabelNameLimit, LabelValueLimit};
            if matches!(error, LabelLimit { .. } | LabelNameLimit { .. } | LabelValueLimit { .. }) {
                self.metrics.exceeded_label_limits.add(1);
            }
        })
    }

    #[inline]
    fn track(&mut self, slot: Slot, is_timed: bool) {
        // Upstream: without `track_timestamps_staleness`, a series with timestamps gets no marker.
        if !is_timed || self.options.track_timestamps_staleness {
            self.cache.track(slot);
        }
    }
}

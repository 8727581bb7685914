//! One scrape on its way to the store, as one batch; of a scrape that fails, only its report.
//!
//! A source hands over the exposition piece by piece, in its order. Samples are staged as columns,
//! 24 bytes each; labels are made only for series that the cache does not know. When the source is
//! done, the appender adds markers for vanished series and the report, and stores everything in one
//! batch. A failure discards the staged samples, and makes markers for the series that the failed
//! scrape did not have.
//!
//! In the steady state a sample costs a comparison of its text with the expected one, and no
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

/// Maximum number of label sets of new series that are kept until their references are requested.
/// Those of further series are made a second time, so that a first scrape of many series does not
/// hold all of them at once.
const NEW_LABELS_MAX: usize = 4096;

/// Settings by which samples of a target become rows.
#[derive(Clone, Debug)]
pub struct Options {
    /// Turns exposed labels into those of the stored series.
    pub mutator: Mutator,
    /// Whether samples may have times of their own.
    pub honor_timestamps: bool,
    /// Whether a series with times of its own gets a marker when it vanishes.
    pub track_timestamps_staleness: bool,
    /// `sample_limit`; zero means no limit.
    pub sample_limit: u64,
    /// `native_histogram_bucket_limit`; zero means no limit.
    pub bucket_limit: u64,
    /// The finest schema of native histograms.
    pub schema_max: i32,
    /// Whether the report has the extra series.
    pub extra_metrics: bool,
}

/// An exemplar as it is exposed.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    pub labels: Vec<(String, String)>,
    pub value: f64,
    /// Own time of the exemplar, if it is exposed.
    pub timestamp_ms: Option<i64>,
}

/// A row whose reference is not known yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// [`NO_ROW`] if only the reference is needed.
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

/// Returns the bytes that a histogram has on the heap.
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
    /// Number of rows of the scrape before: the capacity for the next one.
    rows_before: usize,
    scrape: Scrape,
    /// Samples that are not stored, if a person looks at them.
    refusals: Option<Box<Refusals>>,
    /// Share of the memory of all targets.
    held: MemoryShare,
}

/// The scrape that is under way.
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
    /// Samples that count against `sample_limit`.
    limited: u64,
    is_over_samples: bool,
    is_over_buckets: bool,
    duplicates: u64,
    out_of_bounds: u64,
    /// Bytes of labels and histograms that the scrape holds.
    labels_bytes: usize,
    /// Series of the last sample, which exemplars belong to, with the sample's time and whether the
    /// sample is a native histogram.
    last: Option<(Slot, i64, bool)>,
    /// Exemplars of the batch, in the same order, which those of later scrapes are compared with.
    exemplars: Vec<StoredExemplar>,
}

impl Scrape {
    fn memory_bytes(&self) -> usize {
        const ROW_BYTES: usize = size_of::<(SeriesRef, i64, f64)>();
        let Batch { series, histograms, exemplars, .. } = &self.batch;
        // Capacities: these bytes are allocated whether they are used or not.
        series.capacity() * ROW_BYTES
            + self.pending.capacity() * size_of::<Pending>()
            + self.new_labels.capacity() * size_of::<(Slot, Labels)>()
            + histograms.capacity() * size_of::<HistogramRow>()
            + exemplars.capacity() * size_of::<ExemplarRow>()
            + self.exemplars.capacity() * size_of::<StoredExemplar>()
            + self.labels_bytes
    }

    /// Requests a reference, for the row that comes next or for none.
    fn ask(&mut self, of: Owner, has_row: bool) {
        let next = u32::try_from(self.batch.series.len()).unwrap_or(NO_ROW);
        self.pending.push(Pending { row: if has_row { next } else { NO_ROW }, of });
    }

    /// Counts a sample against `sample_limit`, unless it is exempt; returns whether it is within.
    #[inline]
    fn counts_within(&mut self, limit: u64, is_exempt: bool) -> bool {
        if limit == 0 || is_exempt {
            return true;
        }
        self.limited += 1;
        let is_over = self.limited > limit;
        // The scrape fails at its end, because parsing goes on for the totals.
        self.is_over_samples |= is_over;
        !is_over
    }

    /// Counts a sample if its time is too far ahead; returns whether it is.
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

    /// Creates an appender that continues with the cache of another one.
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

    /// Counts memory against a bound from now on.
    pub fn within(mut self, memory: &MemoryBound) -> Appender {
        self.held = memory.holder();
        self
    }

    /// Counts the memory that is held now. Fails if the bound is exceeded.
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

    /// The metadata of the target's families.
    pub fn families(&self) -> Arc<Mutex<Families>> {
        self.families.clone()
    }

    /// Starts a scrape. `at_ms` is the time of samples without one, `now_ms` the current time.
    pub fn begin(&mut self, at_ms: i64, now_ms: i64) {
        // Not at the end of a scrape: its batch still refers to slots, which shrinking moves.
        self.cache.shrink();
        // With the capacity of the last scrape, columns do not grow in the steady state.
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

    /// Bytes of the body so far, uncompressed.
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

    /// Stages a sample, with its own time if it has one.
    #[inline]
    pub fn sample(
        &mut self,
        series: &impl Series,
        timestamp_ms: Option<i64>,
        value: f64,
    ) -> Result<(), ScrapeError> {
        // Upstream: a stale marker of a known series does not count against `sample_limit`.
        let is_exempt = |is_known| is_known && is_stale_nan(value);
        let admitted = self.admit(series, timestamp_ms, true, is_exempt, || Ok(()))?;
        if let Some((slot, at_ms, is_timed)) = admitted {
            self.stage(slot, at_ms, is_timed, value);
        }
        Ok(())
    }

    /// Returns the series that most likely comes next, with its text, if
    /// [`Appender::expected_sample`] can take its sample.
    #[inline]
    pub fn expected(&self) -> Option<(Slot, &[u8])> {
        // A refusal names its series, which the fast path does not look at.
        if self.refusals.is_some() { None } else { self.cache.expected() }
    }

    /// Stages a sample, without a time of its own, of the series that [`Appender::expected`]
    /// returned.
    #[inline]
    pub fn expected_sample(&mut self, slot: Slot, value: f64) {
        self.cache.see(slot);
        let (scrape, limit) = (&mut self.scrape, self.options.sample_limit);
        // Set again when the sample is staged: exemplars of one that is not have no owner.
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
        // A placeholder, which `resolve_pending` replaces, keeps the columns aligned.
        scrape.batch.series.push(reference.unwrap_or_default());
        scrape.batch.timestamps_ms.push(at_ms);
        scrape.batch.values.push(value);
        self.track(slot, is_timed);
    }

    /// Stages a native histogram, with its own time if it has one. An invalid one fails the scrape.
    pub fn histogram(
        &mut self,
        series: &impl Series,
        timestamp_ms: Option<i64>,
        mut histogram: NativeHistogram,
    ) -> Result<(), ScrapeError> {
        // Upstream reduces the schema first, so that fewer buckets are left for the limit.
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
        // A marker needs the reference, which a histogram row, stored by labels, does not request.
        if self.cache.reference(slot).is_none() {
            self.scrape.ask(Owner::Series(slot), false);
        }
        Ok(())
    }

    /// Adds an exemplar of the sample before. One that cannot be kept never fails a scrape. One
    /// without a time that the series had before is the same, and is not stored again.
    pub fn exemplar(&mut self, exemplar: Exemplar) {
        let Some((slot, sample_ms, is_native)) = self.scrape.last else { return };
        // Exemplars of native histograms are exposed again in each scrape, so they need their own
        // time.
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

    /// Counts a sample and finds its series. Returns the series, the sample's time and whether that
    /// is its own, or `None` if the sample is not stored. `fits` is whether a histogram is within
    /// its limit. `is_exempt` tells whether a sample passes `sample_limit`, given whether its
    /// series is known; `check` fails if the value of a sample that would be stored is invalid.
    /// After a limit is exceeded, parsing goes on for the totals.
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
        // Exemplars of a sample that is not stored have no owner.
        scrape.last = None;
        let own_ms = timestamp_ms.filter(|_| self.options.honor_timestamps);
        let at_ms = own_ms.unwrap_or(scrape.at_ms);
        let found = match self.cache.look_up(series.text()) {
            Lookup::Dropped => {
                self.note(series, RefusalReason::Relabeled);
                return Ok(None);
            }
            Lookup::Known { slot, is_repeated } => {
                // Of equal series the first counts; with times of their own they are different
                // samples.
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
            // Cached without a form, so that the rules do not run for this series again.
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
            // The scrape ends here. Upstream counts such a sample as scraped only.
            scrape.totals.added -= 1;
            return Err(error);
        }
        let slot = match found {
            Ok(slot) => slot,
            Err(labels) => {
                let is_over = scrape.is_over_samples || scrape.is_over_buckets;
                scrape.totals.series_added += u64::from(!is_over);
                let slot = self.cache.insert(series.text(), Some(series.form()));
                // Beyond the bound, labels are made again when the reference is requested.
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
        // In the steady state no labels are kept: text and form make them again.
        let known = self.cache.kept_labels(slot).or_else(|| self.scrape.new_labels.get(&slot));
        match known {
            Some(labels) => Some(labels.clone()),
            None => self.cache.text(slot).and_then(|(text, form)| self.labels_of_text(text, form)),
        }
    }

    /// Makes the final labels of a text, which succeeded before.
    fn labels_of_text(&self, text: &[u8], form: Form) -> Option<Labels> {
        self.options.mutator.series(form.labels(text).ok()?).ok()?
    }

    /// Returns the final labels of a series that needs them in each scrape, and keeps them.
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
        // Upstream: a series with times of its own ends without a marker unless it is tracked.
        if !is_timed || self.options.track_timestamps_staleness {
            self.cache.track(slot);
        }
    }
}

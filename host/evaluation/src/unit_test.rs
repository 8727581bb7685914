//! Stores of unit tests: for each test an instance of the engine over a temporary directory.
//!
//! Time is that of the test: nothing is cut to blocks, and retention does not apply.

use crate::append::{pieces, refusal};
use crate::engine::{PAGE_BYTES, answer, evaluated, labels};
use crate::histogram::SharedHistogram;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tidepool_disk::wal::Logs;
use tidepool_disk::{BlockDirs, DataDir, WalOptions};
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_query::QueryFeatures;
use tidepool_rules::engine::{
    Answer, Engine, Moment, NewSample, NewValue, Origin, Query, Refusal, Value,
};
use tidepool_rules::unit_test::histogram::{Buckets, Histogram, ResetHint};
use tidepool_rules::unit_test::{Conditions, Dumped, Laboratory, Store};
use tidepool_runtime::{
    BucketSpan as Span, Columns, CounterReset, EvaluationHandle, Instance, InstanceLimits,
    InstanceLogs, InstanceStorage, Label, NativeHistogram, Options, QueryOptions, ResultSeries,
    Role, Runtime, in_words,
};
use tidepool_store::{StoreError, random_seed};

/// Memory of the instance of a test, in bytes.
const MEMORY_BYTES_MAX: usize = 2 << 30;

/// Part of it that a query may take, and so may its answer.
const QUERY_BYTES_MAX: usize = MEMORY_BYTES_MAX / 4;

/// As upstream's test storage has it, so that its chunks end at the same times.
const BLOCK_DURATION_MS: i64 = 24 * 3_600_000;

/// Size of the part of a log that one call replays. There is none.
const REPLAY_BYTES: u32 = 64 << 10;

/// Number of directories of this process.
static DIRECTORIES: AtomicU64 = AtomicU64::new(0);

/// Makes a store for each test.
pub struct InstanceLaboratory {
    runtime: Runtime,
    features: QueryFeatures,
}

impl InstanceLaboratory {
    pub fn new(features: QueryFeatures) -> Result<InstanceLaboratory, String> {
        let runtime = Runtime::shared().map_err(|error| format!("{error:#}"))?;
        Ok(InstanceLaboratory { runtime, features })
    }
}

impl Laboratory for InstanceLaboratory {
    type Store = InstanceStore;

    fn fresh(&mut self, conditions: &Conditions) -> Result<InstanceStore, String> {
        let directory = TemporaryDirectory::new().map_err(|error| error.to_string())?;
        let data = DataDir::open(directory.path()).map_err(|error| error.to_string())?;
        let logs = Logs::open(&data, WalOptions::default()).map_err(|error| error.to_string())?;
        let storage = InstanceStorage {
            logs: InstanceLogs::Owned(Arc::new(Mutex::new(logs))),
            blocks: BlockDirs::open(&data),
            head: None,
            memory: None,
        };
        let options = Options {
            hash_seed: random_seed(),
            ..Options::without_limits(Role::All, BLOCK_DURATION_MS)
        };
        let limits = InstanceLimits { memory_bytes_max: MEMORY_BYTES_MAX, deadline: None };
        let failed = |error: tidepool_runtime::CallError| StoreError::from(error).to_string();
        let mut instance = self.runtime.instantiate(options, storage, limits).map_err(failed)?;
        while !instance.replay(REPLAY_BYTES).map_err(failed)?.done {}
        let interval_ms = i64::try_from(conditions.evaluation_interval.as_millis());
        let options = QueryOptions {
            memory_bytes_max: QUERY_BYTES_MAX as u64,
            subquery_step_ms: interval_ms.unwrap_or(i64::MAX),
            ..self.features.options()
        };
        let instance = RefCell::new(instance);
        Ok(InstanceStore { instance, options, begin: Instant::now(), _directory: directory })
    }
}

/// The store of a test. The instance is dropped before its directory is removed.
pub struct InstanceStore {
    instance: RefCell<Instance>,
    options: QueryOptions,
    begin: Instant,
    _directory: TemporaryDirectory,
}

impl InstanceStore {
    fn stored(
        &self,
        samples: &[NewSample<SharedHistogram>],
    ) -> Result<Vec<(usize, Refusal)>, StoreError> {
        let Some(time_ms) = samples.iter().map(|sample| sample.time_ms).max() else {
            return Ok(Vec::new());
        };
        let mut instance = self.instance.borrow_mut();
        let (mut refused, mut positions, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        let mut columns =
            Columns { series: Vec::new(), timestamps_ms: Vec::new(), values: Vec::new() };
        let is_histogram =
            |sample: &NewSample<SharedHistogram>| matches!(sample.value, NewValue::Histogram(_));
        for piece in pieces(samples, is_histogram) {
            let written = instance.append_remote_write(piece.version, &piece.body, time_ms)?;
            if let Some(first) = written.refusals.first() {
                let histograms =
                    samples.iter().enumerate().filter(|(_, sample)| is_histogram(sample));
                refused.extend(histograms.map(|(position, _)| (position, refusal(first.reason))));
            }
        }
        for (position, sample) in samples.iter().enumerate() {
            if is_histogram(sample) {
                continue;
            }
            let label =
                |(name, value): (&str, &str)| Label { name: name.into(), value: value.into() };
            let labels: Vec<Label> = sample.series.iter().map(label).collect();
            let number = match instance.series_ref(&labels) {
                Ok(number) => number,
                Err(tidepool_runtime::CallError::Refused(error)) => {
                    refused.push((position, Refusal::Other(in_words(&error))));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            match sample.value {
                NewValue::Float(value) => {
                    positions.push(position);
                    columns.series.push(number);
                    columns.timestamps_ms.push(sample.time_ms);
                    columns.values.push(value);
                }
                _ => ended.push(number),
            }
        }
        let outcome = instance.append_and_end(&columns, &ended, time_ms, time_ms)?;
        for row in outcome.refused_rows {
            if let Some(position) = positions.get(row.row as usize) {
                refused.push((*position, refusal(row.reason)));
            }
        }
        Ok(refused)
    }
}

impl Engine for InstanceStore {
    type Histogram = SharedHistogram;

    fn query(&self, query: &Query<'_>) -> Result<Answer<SharedHistogram>, String> {
        let mut instance = self.instance.borrow_mut();
        let answer =
            answer(&mut instance, query.expression, query.time_ms, self.options, QUERY_BYTES_MAX);
        answer.map_err(|error| error.to_string())
    }

    fn append(
        &mut self,
        _: &Origin<'_>,
        samples: &[NewSample<SharedHistogram>],
    ) -> Result<Vec<(usize, Refusal)>, String> {
        self.stored(samples).map_err(|error| error.to_string())
    }

    fn now(&self) -> Moment {
        Moment { wall_ms: system_now_ms(), monotonic: self.begin.elapsed() }
    }
}

impl Store for InstanceStore {
    fn load(&mut self, samples: &[NewSample<Histogram>]) -> Result<(), String> {
        // Markers of a batch have one time.
        for batch in samples.chunk_by(|one, next| one.time_ms == next.time_ms) {
            let own: Vec<NewSample<SharedHistogram>> = batch.iter().map(of_test).collect();
            let refused = self.stored(&own).map_err(|error| error.to_string())?;
            if let Some((position, refusal)) = refused.first() {
                let series = own.get(*position).map(|sample| sample.series.to_string());
                return Err(format!("{}: {refusal}", series.unwrap_or_default()));
            }
        }
        Ok(())
    }

    fn buckets_of(&self, histogram: &SharedHistogram) -> Histogram {
        let NativeHistogram { positive_spans, negative_spans, .. } = &*histogram.0;
        Histogram {
            reset_hint: match histogram.0.counter_reset {
                CounterReset::Unknown => ResetHint::Unknown,
                CounterReset::Reset => ResetHint::Reset,
                CounterReset::NotReset => ResetHint::NotReset,
                CounterReset::Gauge => ResetHint::Gauge,
            },
            schema: histogram.0.schema,
            zero_threshold: histogram.0.zero_threshold,
            zero_count: histogram.0.zero_count,
            count: histogram.0.count,
            sum: histogram.0.sum,
            positive: buckets(positive_spans, &histogram.0.positive_buckets),
            negative: buckets(negative_spans, &histogram.0.negative_buckets),
            custom_values: histogram.0.custom_values.clone(),
        }
    }

    fn dump(&self, expression: &str, time_ms: i64) -> Result<Vec<Dumped<SharedHistogram>>, String> {
        self.matrix(expression, time_ms).map_err(|error| error.to_string())
    }
}

impl InstanceStore {
    fn matrix(
        &self,
        expression: &str,
        time_ms: i64,
    ) -> Result<Vec<Dumped<SharedHistogram>>, StoreError> {
        let mut instance = self.instance.borrow_mut();
        let mut all = evaluated(&mut instance, expression, time_ms, self.options, all_series)?;
        all.sort_by(|one, other| one.labels.iter().cmp(other.labels.iter()));
        Ok(all)
    }
}

fn all_series(
    instance: &mut Instance,
    evaluation: EvaluationHandle,
) -> Result<Vec<Dumped<SharedHistogram>>, StoreError> {
    let (mut all, mut bytes) = (Vec::new(), 0usize);
    loop {
        let page = instance.next_series(evaluation, PAGE_BYTES)??;
        if page.is_empty() {
            return Ok(all);
        }
        for series in page {
            let dumped = dumped(series);
            let histograms = dumped.samples.iter().map(|(_, value)| match value {
                Value::Histogram(histogram) => crate::histogram::bytes(&histogram.0),
                Value::Float(_) => 0,
            });
            let samples = dumped.samples.len() * size_of::<(i64, Value<SharedHistogram>)>();
            bytes += dumped.labels.bytes() + samples + histograms.sum::<usize>();
            if bytes > QUERY_BYTES_MAX {
                return Err(StoreError::NeedsTooMuchMemory);
            }
            all.push(dumped);
        }
    }
}

fn dumped(series: ResultSeries) -> Dumped<SharedHistogram> {
    let labels = labels(&series);
    let floats = series.times_ms.into_iter().zip(series.values.into_iter().map(Value::Float));
    let histograms = series.histograms.into_iter();
    let histograms = histograms.map(|it| Value::Histogram(SharedHistogram(Arc::new(it))));
    let samples: BTreeMap<i64, Value<SharedHistogram>> =
        floats.chain(series.histogram_times_ms.into_iter().zip(histograms)).collect();
    Dumped { labels, samples: samples.into_iter().collect() }
}

fn buckets(spans: &[Span], counts: &[f64]) -> Buckets {
    let mut next = 0i32;
    let indexes = spans.iter().flat_map(|span| {
        let first = next.saturating_add(span.offset);
        next = first.saturating_add_unsigned(span.length);
        first..next
    });
    indexes.zip(counts.iter().copied()).collect()
}

fn of_test(sample: &NewSample<Histogram>) -> NewSample<SharedHistogram> {
    let value = match &sample.value {
        NewValue::Float(value) => NewValue::Float(*value),
        NewValue::Histogram(histogram) => {
            NewValue::Histogram(SharedHistogram(Arc::new(native(histogram))))
        }
        NewValue::Stale => NewValue::Stale,
    };
    NewSample { series: sample.series.clone(), time_ms: sample.time_ms, value }
}

fn native(histogram: &Histogram) -> NativeHistogram {
    let side = |buckets: &Buckets| {
        let (mut spans, mut next) = (Vec::<Span>::new(), None::<i32>);
        for index in buckets.keys() {
            match (spans.last_mut(), next) {
                (Some(span), Some(next)) if next == *index => span.length += 1,
                _ => {
                    let offset = index.saturating_sub(next.unwrap_or(0));
                    spans.push(Span { offset, length: 1 });
                }
            }
            next = Some(index.saturating_add(1));
        }
        (spans, buckets.values().copied().collect::<Vec<f64>>())
    };
    let (positive_spans, positive_buckets) = side(&histogram.positive);
    let (negative_spans, negative_buckets) = side(&histogram.negative);
    NativeHistogram {
        counter_reset: match histogram.reset_hint {
            ResetHint::Unknown => CounterReset::Unknown,
            ResetHint::Reset => CounterReset::Reset,
            ResetHint::NotReset => CounterReset::NotReset,
            ResetHint::Gauge => CounterReset::Gauge,
        },
        schema: histogram.schema,
        zero_threshold: histogram.zero_threshold,
        zero_count: histogram.zero_count,
        count: histogram.count,
        sum: histogram.sum,
        positive_spans,
        positive_buckets,
        negative_spans,
        negative_buckets,
        custom_values: histogram.custom_values.clone(),
    }
}

/// A directory that is removed with what it has.
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn new() -> std::io::Result<TemporaryDirectory> {
        use std::os::unix::fs::DirBuilderExt as _;
        let number = DIRECTORIES.fetch_add(1, Relaxed);
        // The seed keeps the name from being guessed in a folder that all users share.
        let name = format!("tidepool-test-{}-{number}-{:016x}", std::process::id(), random_seed());
        let path = std::env::temp_dir().join(name);
        // Fails if it is there already.
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(TemporaryDirectory(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(directory = %self.0.display(), %error, "could not remove a directory");
        }
    }
}

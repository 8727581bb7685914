//! The store as rules see it: queries by an instance of the engine, and samples.

use crate::append::{SeriesNumbers, append};
use crate::histogram::SharedHistogram;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_plugins::intake::Intake;
use tidepool_rules::engine::{
    Answer, Engine, Moment, NewSample, Origin, Query, Reads, Refusal, Sample, Series, Value,
};
use tidepool_rules::labels::{LabelSet, METRIC_NAME};
use tidepool_runtime::{
    EvaluationHandle, Instance, MatchOp, Matcher, QueryOptions, QueryTimes, ResultSeries, ValueType,
};
use tidepool_store::StoreError;
use tidepool_store::reading::{HeldInstance, Reading};
use tokio::runtime::Handle;

/// Percentage of an instance's memory for the evaluation; the rest is for blocks and the answer.
const MEMORY_PERCENT: u64 = 70;

/// Size of a page of an answer.
pub(crate) const PAGE_BYTES: u32 = 256 * 1024;

/// The store for the evaluation of one group, on one thread.
pub struct StoreEngine<'a> {
    pub reading: &'a Reading,
    /// Answers all queries that follow one another.
    pub instance: RefCell<HeldInstance<'a>>,
    pub intake: &'a Intake,
    pub options: QueryOptions,
    /// Maximum duration of a rule's query.
    pub timeout: Duration,
    pub runtime: &'a Handle,
    pub is_stopping: &'a AtomicBool,
    /// Start of the monotonic clock.
    pub begin: Instant,
    pub numbers: &'a mut SeriesNumbers,
    /// Whether samples are stored; otherwise they are dropped.
    pub stores: bool,
    /// Number of queries that were ended by a limit.
    pub ended: Cell<u64>,
}

impl StoreEngine<'_> {
    fn evaluate(&self, query: &Query<'_>) -> Result<Answer<SharedHistogram>, StoreError> {
        self.reading.check()?;
        let limit_bytes = self.reading.limits().memory_bytes_max;
        let options = within(self.options, limit_bytes);
        self.run(|instance| answer(instance, query.expression, query.time_ms, options, limit_bytes))
    }

    fn run<T>(
        &self,
        work: impl FnOnce(&mut Instance) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let deadline = Instant::now().checked_add(self.timeout);
        self.instance.borrow_mut().run(deadline, || false, work)
    }
}

/// Returns options for an evaluation in an instance of at most `bytes_max`.
pub(crate) fn within(options: QueryOptions, bytes_max: usize) -> QueryOptions {
    QueryOptions { memory_bytes_max: bytes_max as u64 / 100 * MEMORY_PERCENT, ..options }
}

/// Returns the names of the series that selectors select.
pub(crate) fn reads(selectors: &[Vec<Matcher>]) -> Reads {
    let names: Option<BTreeSet<String>> =
        selectors.iter().map(|matchers| name(matchers).map(str::to_owned)).collect();
    names.map_or(Reads::Anything, Reads::Names)
}

/// Returns the name of the series that matchers select, if they select one.
pub(crate) fn name(matchers: &[Matcher]) -> Option<&str> {
    let mut equal = matchers.iter().filter(|matcher| matcher.op == MatchOp::Equal);
    equal.find(|matcher| matcher.name == METRIC_NAME).map(|matcher| matcher.value.as_str())
}

/// Evaluates an expression at a time. The answer may take `limit_bytes`.
pub(crate) fn answer(
    instance: &mut Instance,
    expression: &str,
    time_ms: i64,
    options: QueryOptions,
    limit_bytes: usize,
) -> Result<Answer<SharedHistogram>, StoreError> {
    let times = QueryTimes::Instant(time_ms);
    evaluated(instance, expression, times, options, |instance, evaluation| {
        collected(instance, evaluation, limit_bytes)
    })
}

/// Evaluates an expression at one or more times, and has its answer read.
pub(crate) fn evaluated<T>(
    instance: &mut Instance,
    expression: &str,
    times: QueryTimes,
    options: QueryOptions,
    read: impl FnOnce(&mut Instance, EvaluationHandle) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let evaluation = instance.evaluate(expression, times, options)??;
    let answer = read(instance, evaluation);
    let closed = instance.close_evaluation(evaluation);
    // Why the answer failed says more than that an instance which ended cannot close it.
    let answer = answer?;
    closed?;
    Ok(answer)
}

/// Labels of a series of an answer, which ascend by name.
pub(crate) fn labels(series: &ResultSeries) -> LabelSet {
    LabelSet::sorted(series.labels.iter().map(|label| (&*label.name, &*label.value)))
}

fn collected(
    instance: &mut Instance,
    evaluation: EvaluationHandle,
    limit_bytes: usize,
) -> Result<Answer<SharedHistogram>, StoreError> {
    Ok(match instance.type_of_query(evaluation)?.0 {
        ValueType::Vector => Answer::Vector(vector(instance, limit_bytes, |instance| {
            Ok(instance.next_series(evaluation, PAGE_BYTES)??)
        })?),
        ValueType::Scalar => {
            let page = instance.next_series(evaluation, PAGE_BYTES)??;
            let value = page.first().and_then(|series| series.values.first());
            Answer::Scalar(value.copied().unwrap_or(f64::NAN))
        }
        ValueType::Matrix | ValueType::String => Answer::Other,
    })
}

/// Collects an instant vector, which may take `limit_bytes`.
fn vector(
    instance: &mut Instance,
    limit_bytes: usize,
    mut next: impl FnMut(&mut Instance) -> Result<Vec<ResultSeries>, StoreError>,
) -> Result<Vec<Sample<SharedHistogram>>, StoreError> {
    let (mut samples, mut bytes) = (Vec::new(), 0usize);
    loop {
        let page = next(instance)?;
        if page.is_empty() {
            return Ok(samples);
        }
        for series in page {
            let labels = labels(&series);
            bytes += size_of::<Sample<SharedHistogram>>() + labels.bytes();
            let mut histograms = series.histograms.into_iter();
            let value = match (series.values.first(), histograms.next()) {
                (Some(value), _) => Value::Float(*value),
                (None, Some(histogram)) => {
                    bytes += crate::histogram::bytes(&histogram);
                    Value::Histogram(SharedHistogram(Arc::new(histogram)))
                }
                (None, None) => continue,
            };
            if bytes > limit_bytes {
                return Err(StoreError::NeedsTooMuchMemory);
            }
            samples.push(Sample { labels, value });
        }
    }
}

/// Returns all series of an answer, which may take `limit_bytes`.
pub(crate) fn matrix(
    instance: &mut Instance,
    evaluation: EvaluationHandle,
    limit_bytes: usize,
) -> Result<Vec<Series<SharedHistogram>>, StoreError> {
    let (mut all, mut bytes) = (Vec::new(), 0usize);
    loop {
        let page = instance.next_series(evaluation, PAGE_BYTES)??;
        if page.is_empty() {
            return Ok(all);
        }
        for series in page {
            let series = of_result(series);
            let histograms = series.samples.iter().map(|(_, value)| match value {
                Value::Histogram(histogram) => crate::histogram::bytes(&histogram.0),
                Value::Float(_) => 0,
            });
            let samples = series.samples.len() * size_of::<(i64, Value<SharedHistogram>)>();
            bytes += series.labels.bytes() + samples + histograms.sum::<usize>();
            if bytes > limit_bytes {
                return Err(StoreError::NeedsTooMuchMemory);
            }
            all.push(series);
        }
    }
}

fn of_result(series: ResultSeries) -> Series<SharedHistogram> {
    let labels = labels(&series);
    let floats = series.times_ms.into_iter().zip(series.values.into_iter().map(Value::Float));
    let histograms = series.histograms.into_iter();
    let histograms = histograms.map(|it| Value::Histogram(SharedHistogram(Arc::new(it))));
    let mut samples: Vec<(i64, Value<SharedHistogram>)> =
        floats.chain(series.histogram_times_ms.into_iter().zip(histograms)).collect();
    samples.sort_by_key(|(time_ms, _)| *time_ms);
    Series { labels, samples }
}

impl Engine for StoreEngine<'_> {
    type Histogram = SharedHistogram;

    fn query(&self, query: &Query<'_>) -> Result<Answer<SharedHistogram>, String> {
        self.evaluate(query).map_err(|error| {
            if let StoreError::Crashed(_) | StoreError::Deadline | StoreError::NeedsTooMuchMemory =
                &error
            {
                self.ended.set(self.ended.get() + 1);
            }
            match error {
                // The texts of these name flags of reads.
                StoreError::Deadline => {
                    format!("the query took longer than {:?} (--query-timeout)", self.timeout)
                }
                error => error.to_string(),
            }
        })
    }

    fn reads(&self, expression: &str) -> Reads {
        let selectors = self.run(|instance| Ok(instance.selectors(expression, self.options)?));
        selectors.map_or(Reads::Anything, |found| reads(&found.unwrap_or_default()))
    }

    fn append(
        &mut self,
        _origin: &Origin<'_>,
        samples: &[NewSample<SharedHistogram>],
    ) -> Result<Vec<(usize, Refusal)>, String> {
        if !self.stores {
            return Ok(Vec::new());
        }
        let stored = append(self.intake, self.numbers, samples);
        self.runtime.block_on(stored).map_err(|error| error.to_string())
    }

    fn now(&self) -> Moment {
        Moment { wall_ms: system_now_ms(), monotonic: self.begin.elapsed() }
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Relaxed)
    }
}

//! Stores of unit tests: for each test one in the memory of an instance. Time is that of the test.

use crate::engine::{answer, evaluated, matrix};
use crate::histogram::SharedHistogram;
use crate::memory_store::MemoryStore;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_query::QueryFeatures;
use tidepool_rules::engine::{
    Answer, Engine, Moment, NewSample, NewValue, Origin, Query, Refusal, Series,
};
use tidepool_rules::unit_test::histogram::{Buckets, Histogram, ResetHint};
use tidepool_rules::unit_test::{Conditions, Laboratory, Store};
use tidepool_runtime::{
    BucketSpan as Span, CounterReset, NativeHistogram, QueryOptions, QueryTimes, Runtime,
};
use tidepool_store::StoreError;

/// Memory of the instance of a test, in bytes.
const MEMORY_BYTES_MAX: usize = 2 << 30;

/// Part of it that a query may take, and so may its answer.
const QUERY_BYTES_MAX: usize = MEMORY_BYTES_MAX / 4;

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
        let store = MemoryStore::open(&self.runtime, MEMORY_BYTES_MAX, 0);
        let store = store.map_err(|error| StoreError::from(error).to_string())?;
        let interval_ms = i64::try_from(conditions.evaluation_interval.as_millis());
        let options = QueryOptions {
            memory_bytes_max: QUERY_BYTES_MAX as u64,
            subquery_step_ms: interval_ms.unwrap_or(i64::MAX),
            ..self.features.options()
        };
        Ok(InstanceStore { store: store.into(), options, begin: Instant::now() })
    }
}

/// The store of a test.
pub struct InstanceStore {
    store: RefCell<MemoryStore>,
    options: QueryOptions,
    begin: Instant,
}

impl Engine for InstanceStore {
    type Histogram = SharedHistogram;

    fn query(&self, query: &Query<'_>) -> Result<Answer<SharedHistogram>, String> {
        let instance = &mut self.store.borrow_mut().instance;
        let answer =
            answer(instance, query.expression, query.time_ms, self.options, QUERY_BYTES_MAX);
        answer.map_err(|error| error.to_string())
    }

    fn append(
        &mut self,
        _: &Origin<'_>,
        samples: &[NewSample<SharedHistogram>],
    ) -> Result<Vec<(usize, Refusal)>, String> {
        self.store.get_mut().append(samples).map_err(|error| error.to_string())
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
            let refused = self.store.get_mut().append(&own).map_err(|error| error.to_string())?;
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

    fn dump(&self, expression: &str, time_ms: i64) -> Result<Vec<Series<SharedHistogram>>, String> {
        let instance = &mut self.store.borrow_mut().instance;
        let times = QueryTimes::Instant(time_ms);
        let all = evaluated(instance, expression, times, self.options, |instance, evaluation| {
            matrix(instance, evaluation, QUERY_BYTES_MAX)
        });
        let mut all = all.map_err(|error| error.to_string())?;
        all.sort_by(|one, other| one.labels.iter().cmp(other.labels.iter()));
        Ok(all)
    }
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

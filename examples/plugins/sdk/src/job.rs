//! Functions for a plugin that runs on a schedule.

pub use crate::types::Batch;
pub use crate::worlds::job::exports::tidepool::plugin::run_job::Guest;
pub use crate::worlds::job::tidepool::plugin::{query, store, webhook};

pub use store::Annotation;

use crate::{BatchBuilder, Series, histograms};

/// Answer to a query in PromQL.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Series of the answer; a scalar is one series without labels.
    pub series: Vec<ResultSeries>,
    pub annotations: Vec<Annotation>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultSeries {
    /// Sorted by name in ascending order.
    pub labels: Vec<(String, String)>,
    /// Times in milliseconds with float values.
    pub samples: Vec<(i64, f64)>,
    /// Encoded `io.prometheus.write.v2.Histogram` messages, each with its time.
    pub histograms: Vec<Vec<u8>>,
}

/// A series of an instant vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Sorted by name in ascending order.
    pub labels: Vec<(String, String)>,
    /// Value at the time of the evaluation.
    pub value: f64,
}

impl Answer {
    /// Returns the newest float of each series that has one: all of an instant vector but
    /// histograms.
    pub fn points(self) -> Vec<Point> {
        let point = |ResultSeries { labels, samples, .. }| {
            let (_, value) = *samples.last()?;
            Some(Point { labels, value })
        };
        self.series.into_iter().filter_map(point).collect()
    }
}

impl ResultSeries {
    /// Adds this series to a batch under another name.
    pub fn record_as(&self, name: &str, batch: &mut BatchBuilder) {
        let labels = self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let others = labels.filter(|(name, _)| *name != "__name__");
        let series = batch.series([("__name__", name)].into_iter().chain(others));
        self.samples.iter().for_each(|(time_ms, value)| batch.sample(series, *time_ms, *value));
        self.histograms.iter().for_each(|message| batch.histogram(series, message));
    }
}

/// Evaluates an expression in PromQL at one time.
pub fn instant(expression: &str, time_ms: i64) -> Result<Answer, String> {
    answer(query::instant(expression, time_ms))
}

/// Evaluates an expression from `start_ms` to `end_ms` (included) in steps of `step_ms`. The whole
/// answer is held in memory; use [`query::range`] for a large one.
pub fn range(expression: &str, start_ms: i64, end_ms: i64, step_ms: i64) -> Result<Answer, String> {
    answer(query::range(expression, start_ms, end_ms, step_ms))
}

fn answer(cursor: Result<store::Cursor, store::StoreError>) -> Result<Answer, String> {
    let in_words = |error: store::StoreError| error.to_string();
    let cursor = cursor.map_err(in_words)?;
    let mut answer = Answer::default();
    while let Some(batch) = cursor.next().map_err(in_words)? {
        let all = Series::of(&batch);
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let with_labels = |number| ResultSeries {
            labels: all.labels(number).map(owned).collect(),
            ..ResultSeries::default()
        };
        let mut series: Vec<_> = (0..all.count()).map(with_labels).collect();
        let samples = &batch.samples;
        let rows = samples.timestamps_ms.iter().zip(&samples.values);
        for (place, (time_ms, value)) in samples.series.iter().zip(rows) {
            series[*place as usize].samples.push((*time_ms, *value));
        }
        for (place, message) in histograms(&batch) {
            series[place as usize].histograms.push(message.to_owned());
        }
        answer.series.extend(series);
    }
    answer.annotations = cursor.annotations();
    Ok(answer)
}

/// Stores samples; returns an error if the store refuses any of them.
pub fn append(batch: BatchBuilder) -> Result<(), String> {
    let appended = store::append(&batch.finish()).map_err(|error| error.to_string())?;
    match appended.refused {
        0 => Ok(()),
        _ => Err(appended.reasons.join("; ")),
    }
}

//! A plugin that runs on a schedule.

pub use crate::types::Batch;
pub use crate::worlds::job::exports::tidepool::plugin::run_job::Guest;
pub use crate::worlds::job::tidepool::plugin::{query, store, webhook};

pub use store::Annotation;

use crate::{BatchBuilder, Series, histograms};

/// The answer to a query in PromQL.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Its series; a scalar is one without labels.
    pub series: Vec<ResultSeries>,
    /// Warnings and infos about it.
    pub annotations: Vec<Annotation>,
}

/// A series of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultSeries {
    /// By ascending name.
    pub labels: Vec<(String, String)>,
    /// Times in milliseconds, and numbers.
    pub samples: Vec<(i64, f64)>,
    /// Messages `io.prometheus.write.v2.Histogram`, each with its time.
    pub histograms: Vec<Vec<u8>>,
}

/// A series of an instant vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// By ascending name.
    pub labels: Vec<(String, String)>,
    /// The value at the time of the evaluation.
    pub value: f64,
}

impl Answer {
    /// The newest number of each series that has one: all of an instant vector but histograms.
    pub fn points(self) -> Vec<Point> {
        let point = |ResultSeries { labels, samples, .. }| {
            let (_, value) = *samples.last()?;
            Some(Point { labels, value })
        };
        self.series.into_iter().filter_map(point).collect()
    }
}

impl ResultSeries {
    /// Adds it to a batch as a series of another name.
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

/// Evaluates an expression at `start_ms`, and then every `step_ms` until `end_ms`, which is
/// included. All of the answer is held in memory; use [`query::range`] for one that is large.
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

/// Stores samples; an error if the store refuses any of them.
pub fn append(batch: BatchBuilder) -> Result<(), String> {
    let appended = store::append(&batch.finish()).map_err(|error| error.to_string())?;
    match appended.refused {
        0 => Ok(()),
        _ => Err(appended.reasons.join("; ")),
    }
}

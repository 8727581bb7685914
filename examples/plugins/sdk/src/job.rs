//! A plugin that runs on a schedule.

pub use crate::types::Batch;
pub use crate::worlds::job::exports::tidepool::plugin::run_job::Guest;
pub use crate::worlds::job::tidepool::plugin::{query, store, webhook};

use crate::{BatchBuilder, Series};

/// A series of an instant vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// By ascending name.
    pub labels: Vec<(String, String)>,
    /// The value at the time of the evaluation.
    pub value: f64,
}

impl Point {
    /// The labels without the name of the metric.
    pub fn labels_without_name(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        labels.filter(|(name, _)| *name != "__name__")
    }
}

/// Evaluates an expression in PromQL at one time. Histograms of the result are left out.
pub fn instant(expression: &str, time_ms: i64) -> Result<Vec<Point>, String> {
    let in_words = |error: store::StoreError| error.to_string();
    let cursor = query::instant(expression, time_ms).map_err(in_words)?;
    let mut points = Vec::new();
    while let Some(batch) = cursor.next().map_err(in_words)? {
        let series = Series::of(&batch);
        for (place, value) in batch.samples.series.iter().zip(&batch.samples.values) {
            let labels = series.labels(*place as usize);
            let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            points.push(Point { labels, value: *value });
        }
    }
    Ok(points)
}

/// Stores samples; an error if the store refuses any of them.
pub fn append(batch: BatchBuilder) -> Result<(), String> {
    let appended = store::append(&batch.finish()).map_err(|error| error.to_string())?;
    match appended.refused {
        0 => Ok(()),
        _ => Err(appended.reasons.join("; ")),
    }
}

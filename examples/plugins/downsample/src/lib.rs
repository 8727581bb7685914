//! Every five minutes, the minimum, maximum, average, count and sum of each series in the five
//! minutes before: `temperature` becomes `temperature:5m_min`, `…_max`, `…_avg`, `…_count` and
//! `…_sum`.
//!
//! The configuration is a regular expression for the names of metrics, anchored at both ends;
//! without one, all are taken. Set `schedule: 5m`.

use std::cell::RefCell;
use tidepool_plugin::job::Guest;
use tidepool_plugin::job::store::{self, MatchOp, Matcher};
use tidepool_plugin::types::Batch;
use tidepool_plugin::{BatchBuilder, Series};

const WINDOW_MS: i64 = 5 * 60 * 1000;

/// Maximum number of samples in one append.
const ROWS_MAX: usize = 20_000;

/// Names of this plugin's output, which is not downsampled again.
const OWN: &str = ".*:5m_(min|max|avg|count|sum)";

/// Prometheus' staleness marker, which is not a value.
const STALE_NAN: u64 = 0x7ff0_0000_0000_0002;

struct Downsample;

thread_local! {
    static NAMES: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Aggregates of one series in the window.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    min: f64,
    max: f64,
    sum: f64,
    count: u64,
}

impl Guest for Downsample {
    fn configure(config: String) -> Result<(), String> {
        let names = config.trim();
        NAMES.set(if names.is_empty() { ".+".to_owned() } else { names.to_owned() });
        Ok(())
    }

    fn run(scheduled_ms: i64) -> Result<(), String> {
        let by_name =
            |op, value: &str| Matcher { name: "__name__".to_owned(), op, value: value.to_owned() };
        let names = NAMES.with_borrow(|names| by_name(MatchOp::Regex, names));
        // The end is excluded, because the next window begins with it.
        let (start_ms, end_ms) = (scheduled_ms - WINDOW_MS, scheduled_ms - 1);
        let cursor = store::select(&[names, by_name(MatchOp::NotRegex, OWN)], start_ms, end_ms)
            .map_err(|error| error.to_string())?;
        let mut made = BatchBuilder::new();
        while let Some(batch) = cursor.next().map_err(|error| error.to_string())? {
            summarize(&batch, scheduled_ms, &mut made);
            if made.samples() >= ROWS_MAX {
                append(std::mem::take(&mut made))?;
            }
        }
        append(made)
    }
}

/// Adds five series for each series of a batch, with one sample at the end of the window.
fn summarize(batch: &Batch, end_ms: i64, made: &mut BatchBuilder) {
    let series = Series::of(batch);
    for (place, summary) in summaries(batch).into_iter().enumerate() {
        if summary.count == 0 {
            continue;
        }
        let name = series.label(place, "__name__");
        for (suffix, value) in [
            ("min", summary.min),
            ("max", summary.max),
            ("avg", summary.sum / summary.count as f64),
            ("count", summary.count as f64),
            ("sum", summary.sum),
        ] {
            let name = format!("{name}:5m_{suffix}");
            let others = series.labels(place).filter(|(label, _)| *label != "__name__");
            let new = made.series([("__name__", name.as_str())].into_iter().chain(others));
            made.sample(new, end_ms, value);
        }
    }
}

fn summaries(batch: &Batch) -> Vec<Summary> {
    let nothing = Summary { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0, count: 0 };
    let mut summaries = vec![nothing; batch.series_ends.len()];
    for (series, value) in batch.samples.series.iter().zip(&batch.samples.values) {
        let Some(summary) = summaries.get_mut(*series as usize) else { continue };
        if value.to_bits() == STALE_NAN {
            continue;
        }
        summary.min = summary.min.min(*value);
        summary.max = summary.max.max(*value);
        summary.sum += value;
        summary.count += 1;
    }
    summaries
}

fn append(batch: BatchBuilder) -> Result<(), String> {
    if batch.samples() == 0 {
        return Ok(());
    }
    let appended = store::append(&batch.finish()).map_err(|error| error.to_string())?;
    match appended.refused {
        0 => Ok(()),
        count => Err(format!("{count} rows were refused: {}", appended.reasons.join("; "))),
    }
}

tidepool_plugin::export_job!(Downsample);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_gets_five() {
        let mut batch = BatchBuilder::new();
        let a = batch.series([("__name__", "a"), ("job", "x")]);
        let stale = batch.series([("__name__", "b")]);
        for (series, value) in [(a, 3.0), (stale, f64::from_bits(STALE_NAN)), (a, -1.0), (a, 4.0)] {
            batch.sample(series, 5, value);
        }
        let mut made = BatchBuilder::new();
        summarize(&batch.finish(), 300_000, &mut made);
        let made = made.finish();
        let series = Series::of(&made);
        let names: Vec<&str> = (0..series.count()).map(|i| series.label(i, "__name__")).collect();
        assert_eq!(names, ["a:5m_min", "a:5m_max", "a:5m_avg", "a:5m_count", "a:5m_sum"]);
        assert!((0..series.count()).all(|i| series.label(i, "job") == "x"));
        assert_eq!(made.samples.values, [-1.0, 4.0, 2.0, 3.0, 6.0]);
        assert!(made.samples.timestamps_ms.iter().all(|time| *time == 300_000));
    }
}

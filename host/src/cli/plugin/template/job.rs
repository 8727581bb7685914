//! Runs on a schedule: here, it stores how many samples of the metric that the configuration names
//! came in the last five minutes.

use std::cell::RefCell;
use tidepool_plugin::BatchBuilder;
use tidepool_plugin::job::Guest;
use tidepool_plugin::job::store::{self, MatchOp, Matcher};

const WINDOW_MS: i64 = 5 * 60 * 1000;

struct Plugin;

thread_local! {
    static METRIC: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Guest for Plugin {
    fn configure(config: String) -> Result<(), String> {
        METRIC.set(config.trim().to_owned());
        Ok(())
    }

    fn run(scheduled_ms: i64) -> Result<(), String> {
        let metric = METRIC.with_borrow(String::clone);
        let by_name =
            Matcher { name: "__name__".to_owned(), op: MatchOp::Equal, value: metric.clone() };
        let cursor = store::select(&[by_name], scheduled_ms - WINDOW_MS, scheduled_ms)
            .map_err(|error| error.to_string())?;
        let mut samples = 0;
        while let Some(batch) = cursor.next().map_err(|error| error.to_string())? {
            samples += batch.samples.values.len();
        }
        let mut batch = BatchBuilder::new();
        let series = batch.series([("__name__", "samples_in_5m"), ("metric", &metric)]);
        batch.sample(series, scheduled_ms, samples as f64);
        let appended = store::append(&batch.finish()).map_err(|error| error.to_string())?;
        if appended.refused == 0 { Ok(()) } else { Err(appended.reasons.join("; ")) }
    }
}

tidepool_plugin::export_job!(Plugin);

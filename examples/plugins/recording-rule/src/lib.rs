//! Stores the result of an expression as series of another name: `NAME = EXPRESSION`.

use std::cell::RefCell;
use tidepool_plugin::BatchBuilder;
use tidepool_plugin::job::{Guest, append, instant};

/// Rule that is used without a configuration.
const EXAMPLE: &str = "job:up:sum = sum by (job) (up)";

thread_local! {
    static RULE: RefCell<(String, String)> = RefCell::default();
}

struct RecordingRule;

impl Guest for RecordingRule {
    fn configure(config: String) -> Result<(), String> {
        let config = if config.trim().is_empty() { EXAMPLE } else { &config };
        let rule = config.split_once('=').ok_or("expected NAME = EXPRESSION")?;
        RULE.set((rule.0.trim().to_owned(), rule.1.trim().to_owned()));
        Ok(())
    }

    fn run(time_ms: i64) -> Result<(), String> {
        let (name, expression) = RULE.with_borrow(Clone::clone);
        let answer = instant(&expression, time_ms)?;
        // Printed lines appear in tidepool's log.
        answer.annotations.iter().for_each(|it| println!("{}", it.text));
        let mut batch = BatchBuilder::new();
        answer.series.iter().for_each(|series| series.record_as(&name, &mut batch));
        append(batch)
    }
}

tidepool_plugin::export_job!(RecordingRule);

//! A job that does as its configuration says.

use std::cell::RefCell;
use tidepool_plugin::BatchBuilder;
use tidepool_plugin::job::store::{self, Cursor, MatchOp, Matcher};
use tidepool_plugin::job::{Guest, webhook};

thread_local! {
    static WORD: RefCell<String> = const { RefCell::new(String::new()) };
}

struct Hostile;

impl Guest for Hostile {
    fn configure(config: String) -> Result<(), String> {
        WORD.set(config.trim().to_owned());
        Ok(())
    }

    fn run(scheduled_ms: i64) -> Result<(), String> {
        match WORD.with_borrow(String::clone).as_str() {
            // Reads what it appends while it appends it, as long as it may.
            "append" => loop {
                let cursor = everything()?;
                let mut count = 0;
                while let Some(batch) = cursor.next().map_err(|error| error.to_string())? {
                    count += batch.samples.series.len();
                    append(scheduled_ms, count as f64)?;
                }
                append(scheduled_ms, -1.0)?;
            },
            "webhook" => match webhook::post("http://127.0.0.1:9/", "text/plain", b"x") {
                Err(webhook::WebhookError::Denied(_)) => append(scheduled_ms, 403.0),
                other => Err(format!("{other:?}")),
            },
            // Keeps what it should drop, and then behaves.
            "leak" => {
                for _ in 0..4 {
                    std::mem::forget(everything()?);
                }
                match everything() {
                    Err(_) => append(scheduled_ms, 4.0),
                    Ok(_) => Err("a fifth cursor is open".to_owned()),
                }
            }
            "trap" => panic!("as it was told"),
            _ => append(scheduled_ms, 1.0),
        }
    }
}

fn everything() -> Result<Cursor, String> {
    let (name, value) = ("__name__".to_owned(), String::new());
    let everything = Matcher { name, op: MatchOp::NotEqual, value };
    store::select(&[everything], i64::MIN, i64::MAX).map_err(|error| error.to_string())
}

fn append(scheduled_ms: i64, value: f64) -> Result<(), String> {
    let mut batch = BatchBuilder::new();
    let series = batch.series([("__name__", "job_said"), ("value", &value.to_string())]);
    batch.sample(series, scheduled_ms, value);
    let appended = store::append(&batch.finish()).map_err(|error| error.to_string())?;
    match appended.refused {
        0 => Ok(()),
        _ => Err(appended.reasons.join("; ")),
    }
}

tidepool_plugin::export_job!(Hostile);

//! A job that does what its configuration tells it to do.

use std::cell::RefCell;
use tidepool_plugin::BatchBuilder;
use tidepool_plugin::job::store::{self, Cursor, MatchOp, Matcher};
use tidepool_plugin::job::{Guest, instant, range, webhook};

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
            // Reads while it appends, until a limit ends it.
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
            // Keeps cursors that it should drop, then behaves normally.
            "leak" => {
                for _ in 0..4 {
                    std::mem::forget(everything()?);
                }
                match everything() {
                    Err(_) => append(scheduled_ms, 4.0),
                    Ok(_) => Err("a fifth cursor is open".to_owned()),
                }
            }
            // Exceeds the server's query limits repeatedly, then goes on.
            "bombs" => {
                for bomb in bombs() {
                    match instant(&bomb, scheduled_ms) {
                        Ok(answer) => return Err(format!("{} series", answer.series.len())),
                        Err(error) => println!("the query ended: {error}"),
                    }
                }
                let after = instant("1 + 6", scheduled_ms)?.points();
                append(scheduled_ms, after.first().map_or(0.0, |point| point.value))
            }
            "range" => {
                let start_ms = scheduled_ms - 60_000;
                let expression = "{__name__=\"latency_gauge_fractions\"} or rate(seen[1m])";
                let answer = range(expression, start_ms, scheduled_ms, 15_000)?;
                let samples: usize = answer.series.iter().map(|it| it.samples.len()).sum();
                let histograms: usize = answer.series.iter().map(|it| it.histograms.len()).sum();
                println!("a range of {samples} samples and {histograms} histograms");
                for annotation in &answer.annotations {
                    let kind = if annotation.is_warning { "warning" } else { "info" };
                    println!("{kind}: {}", annotation.text);
                }
                Ok(())
            }
            "trap" => panic!("as it was told"),
            _ => append(scheduled_ms, 1.0),
        }
    }
}

/// Returns expressions with too many steps and too many labels.
fn bombs() -> [String; 2] {
    let steps = "sum_over_time(sum_over_time(vector(1)[1d:1s])[1d:1s])".to_owned();
    let doubled = (0..40).fold("vector(1)".to_owned(), |inner, number| {
        let replacement = if number == 0 { "x" } else { "$1$1" };
        format!("label_replace({inner}, \"i\", \"{replacement}\", \"i\", \"(.*)\")")
    });
    [steps, doubled]
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

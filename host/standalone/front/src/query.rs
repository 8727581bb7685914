//! The command `query`: evaluates an expression and prints the result.

use crate::bindings::tidepool::tsdb::query::{
    self, Evaluation, QueryError, QueryOptions, ResultFormat,
};
use crate::command::{Outcome, STEP_BYTES, now_ms};
use std::io::Write as _;

pub const USAGE: &str = "
       query EXPRESSION [TIME]
       query EXPRESSION START END STEP
                           evaluate an expression in PromQL, now or at a time, or over a range; print
                           resultType and result as Prometheus' HTTP API gives them. Times are seconds
                           since the epoch, the step is seconds";

/// Prometheus' defaults, and the default memory limit of the program `tidepool`.
const OPTIONS: QueryOptions = QueryOptions {
    lookback_ms: 0,
    samples_max: 50_000_000,
    series_max: 0,
    memory_bytes_max: 256 << 20,
    subquery_step_ms: 0,
    experimental_functions: false,
    extended_range_selectors: false,
    binop_fill_modifiers: false,
    delayed_name_removal: false,
    type_and_unit_labels: false,
    start_timestamps: false,
    stats_per_step: false,
};

/// Times of an evaluation, in milliseconds since the epoch.
#[derive(Clone, Copy)]
pub enum Times {
    At(i64),
    Range { start_ms: i64, end_ms: i64, step_ms: i64 },
}

/// Parses the times of a command line; without times, returns the current time.
pub fn times(words: &[&str]) -> Result<Times, String> {
    match words {
        [] => Ok(Times::At(now_ms())),
        [time] => Ok(Times::At(milliseconds(time)?)),
        [start, end, step] => Ok(Times::Range {
            start_ms: milliseconds(start)?,
            end_ms: milliseconds(end)?,
            step_ms: milliseconds(step)?,
        }),
        _ => Err("give one time, or start, end and step".into()),
    }
}

fn milliseconds(seconds: &str) -> Result<i64, String> {
    // Below 1e15, milliseconds fit into an `i64`. NaN fails the comparison.
    let number = seconds.parse::<f64>().ok().filter(|seconds| seconds.abs() < 1e15);
    let number = number.ok_or(format!("`{seconds}` is no number of seconds"))?;
    Ok((number * 1000.0).round() as i64)
}

pub fn run(expression: &str, times: Times) -> Outcome {
    let evaluation = match times {
        Times::At(time_ms) => query::instant(expression, time_ms, OPTIONS),
        Times::Range { start_ms, end_ms, step_ms } => {
            query::range(expression, start_ms, end_ms, step_ms, OPTIONS)
        }
    };
    let evaluation = evaluation.map_err(message)?;
    let mut out = std::io::stdout().lock();
    // The evaluation writes the members of a JSON object without the enclosing braces.
    out.write_all(b"{")?;
    print(&evaluation, &mut out)?;
    out.write_all(b"}\n")?;
    out.flush()?;
    // Annotations go to standard error, so that standard output is only JSON.
    for annotation in evaluation.annotations(0) {
        eprintln!("{}", annotation.text);
    }
    Ok(())
}

fn print(evaluation: &Evaluation, out: &mut impl std::io::Write) -> Outcome {
    loop {
        let bytes = evaluation.next_bytes(ResultFormat::Json, STEP_BYTES).map_err(message)?;
        if bytes.is_empty() {
            return Ok(());
        }
        out.write_all(&bytes)?;
    }
}

fn message(error: QueryError) -> String {
    match error {
        QueryError::Parse(error) => error.text,
        QueryError::Invalid(text) | QueryError::Execution(text) => text,
        QueryError::Limit(limit) => limit.text,
        QueryError::Store(error) => error.to_string(),
    }
}

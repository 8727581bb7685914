//! Queries a data directory without a server. One engine instance has the blocks, and the samples
//! that are only in the logs. Failures have the texts of a server's responses.

use super::Failure;
use super::time::Time;
use super::value::{Metric, Value};
use crate::cli::workspace::report_damaged;
use crate::cli::{CliError, Workspace, quarantine};
use std::cell::RefCell;
use std::path::Path;
use tidepool_protocol::prom::label_name::unescape;
use tidepool_protocol::prom::selection::SelectionCount;
use tidepool_protocol::prom::selector::{matches_empty, parse_counted};
use tidepool_runtime::{
    CallError, Instance, Label, Lookup, Matcher, QueryError, QueryOptions, QueryTimes,
    ResultFormat, TimeRange,
};

/// Minimum size in bytes of each part of a result that one call returns, except the last.
const PART_BYTES: u32 = 1024 * 1024;

/// A server's defaults: points per series of a range query, and samples per query in memory.
const POINTS_MAX: i64 = 11_000;
const SAMPLES_MAX: u64 = 50_000_000;

/// Percentage of the instance's memory for an evaluation. The rest is for samples of the logs and
/// for open blocks.
const MEMORY_PERCENT: u64 = 70;

pub struct Local {
    instance: Instance,
    memory_bytes_max: u64,
    /// Whether a damaged block was left out.
    pub is_damaged: bool,
}

impl Local {
    /// Opens a directory and reads its logs. Fails if a server is running on the directory.
    pub fn open(dir: &Path, memory_bytes_max: u64) -> Result<Local, CliError> {
        let workspace = Workspace::look(dir, memory_bytes_max)?;
        if workspace.data.is_in_use()? {
            return Err(CliError::Served { dir: dir.to_owned() });
        }
        let is_damaged = report_damaged(&workspace.inspector()?.blocks()?);
        quarantine::mention(&workspace.data);
        Ok(Local { instance: workspace.reader()?, memory_bytes_max, is_damaged })
    }

    /// Returns the instance, which has blocks and logs.
    pub fn into_instance(self) -> RefCell<Instance> {
        RefCell::new(self.instance)
    }

    pub fn instant(&mut self, expression: &str, time: Time) -> Result<Value, Failure> {
        self.evaluate(expression, QueryTimes::Instant(time.as_ms()))
    }

    pub fn range(
        &mut self,
        expression: &str,
        (start, end): (Time, Time),
        step_seconds: f64,
    ) -> Result<Value, Failure> {
        // Checked here as in a server, because the engine has no such limit.
        let (start_ms, end_ms) = (start.as_ms(), end.as_ms());
        let step_ms = (step_seconds * 1000.0) as i64;
        if step_ms <= 0 {
            return Err(bad_data(
                "invalid parameter \"step\": zero or negative query resolution step widths are not \
                 accepted. Try a positive integer",
            ));
        }
        if (end_ms - start_ms) / step_ms > POINTS_MAX {
            return Err(bad_data(
                "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the \
                 query resolution (?step=XX)",
            ));
        }
        self.evaluate(expression, QueryTimes::Range { start_ms, end_ms, step_ms })
    }

    pub fn series(
        &mut self,
        selectors: &[String],
        span: (Time, Time),
    ) -> Result<Vec<Metric>, Failure> {
        let cursor = self.instance.series(&lookup(selectors, span)?)?;
        let mut series = Vec::new();
        loop {
            let page = self.instance.next_labels(cursor, PART_BYTES)?;
            if page.is_empty() {
                return Ok(series);
            }
            series.extend(page.into_iter().map(metric));
        }
    }

    pub fn label_values(
        &mut self,
        name: &str,
        selectors: &[String],
        span: (Time, Time),
    ) -> Result<Vec<String>, Failure> {
        let name = unescape(name.to_owned());
        if name.is_empty() {
            return Err(bad_data("invalid label name: \"\""));
        }
        let strings = self.instance.label_values(&name, &lookup(selectors, span)?)?;
        let mut values = Vec::new();
        loop {
            let page = self.instance.next_strings(strings, PART_BYTES)?;
            if page.is_empty() {
                return Ok(values);
            }
            values.extend(page);
        }
    }

    fn evaluate(&mut self, expression: &str, times: QueryTimes) -> Result<Value, Failure> {
        // Zero and false mean the engine's defaults, such as a lookback of 5 minutes.
        let options = QueryOptions {
            lookback_ms: 0,
            samples_max: SAMPLES_MAX,
            series_max: 0,
            memory_bytes_max: self.memory_bytes_max / 100 * MEMORY_PERCENT,
            subquery_step_ms: 0,
            experimental_functions: false,
            extended_range_selectors: false,
            binop_fill_modifiers: false,
            delayed_name_removal: false,
            type_and_unit_labels: false,
            start_timestamps: false,
            stats_per_step: false,
        };
        let evaluation = self.instance.evaluate(expression, times, options)?.map_err(failure)?;
        // The engine writes the members of `data` without the braces around them.
        let mut json = vec![b'{'];
        loop {
            let bytes = self.instance.next_of_query(evaluation, ResultFormat::Json, PART_BYTES)?;
            let bytes = bytes.map_err(failure)?;
            if bytes.is_empty() {
                break;
            }
            json.extend(bytes);
        }
        json.push(b'}');
        let mut value = serde_json::from_slice(&json)
            .map_err(|error| CliError::Crashed(format!("its answer cannot be read: {error}")))?;
        // Prometheus sorts the series of a range by their labels.
        if let Value::Matrix(matrix) = &mut value {
            matrix.sort_by(|one, other| one.metric.cmp(&other.metric));
        }
        Ok(value)
    }
}

fn metric(labels: Vec<Label>) -> Metric {
    Metric(labels.into_iter().map(|label| (label.name, label.value)).collect())
}

fn lookup(selectors: &[String], (start, end): (Time, Time)) -> Result<Lookup, Failure> {
    let mut count = SelectionCount::default();
    let sets = selectors.iter().map(|text| selector(text, &mut count));
    Ok(Lookup {
        limit: 0,
        range: TimeRange { start_ms: start.as_ms(), end_ms: end.as_ms() },
        matcher_sets: sets.collect::<Result<_, _>>()?,
    })
}

/// Parses a selector. As in a server, a selector that may match every series is refused.
fn selector(text: &str, count: &mut SelectionCount) -> Result<Vec<Matcher>, Failure> {
    let wrong =
        |why: &dyn std::fmt::Display| bad_data(&format!("invalid parameter \"match[]\": {why}"));
    let matchers = parse_counted(text, count).map_err(|error| wrong(&error))?;
    match matchers.iter().all(matches_empty) {
        true => Err(wrong(&"match[] must contain at least one non-empty matcher")),
        false => Ok(matchers),
    }
}

fn bad_data(text: &str) -> Failure {
    api("bad_data", text.to_owned())
}

fn api(kind: &str, text: String) -> Failure {
    Failure::Api { kind: kind.to_owned(), text, detail: String::new() }
}

fn failure(error: QueryError) -> Failure {
    let parameter = |text: String| bad_data(&format!("invalid parameter \"query\": {text}"));
    match error {
        QueryError::Parse(error) => parameter(error.text),
        QueryError::Invalid(text) => parameter(text),
        QueryError::Execution(text) => api("execution", text),
        QueryError::Limit(limit) => api("execution", limit.text),
        QueryError::Store(error) => CallError::from(error).into(),
    }
}

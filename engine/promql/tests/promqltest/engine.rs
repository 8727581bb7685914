//! Evaluation by this crate, as the runner needs it.

use super::compare::{Answer, AnsweredSeries};
use super::script::When;
use super::store::Store;
use std::rc::Rc;
use tidepool_promql::annotations::Severity;
use tidepool_promql::eval::{Query, ResultSeries};
use tidepool_promql::model::Value;
use tidepool_promql::plan::Options;
use tidepool_promql::syntax::{ParserOptions, ValueType, parse};

pub struct Evaluated {
    pub answer: Answer,
    pub warnings: Vec<String>,
    pub infos: Vec<String>,
}

/// Evaluates an expression with the features that upstream's scripts need.
pub fn evaluate(store: &Rc<Store>, text: &str, when: When) -> Result<Evaluated, String> {
    let expr = parse(text, &ParserOptions::all()).map_err(|error| error.to_string())?;
    let options = match when {
        When::Instant(time_ms) => Options::instant(time_ms),
        When::Range(start_ms, end_ms, step_ms) => Options::range(start_ms, end_ms, step_ms),
    };
    let options = Options { delayed_name_removal: true, start_timestamps: true, ..options };
    let is_range = options.step_ms.is_some();
    let query = Query::new(&expr, options).map_err(|error| error.to_string())?;
    let mut evaluation = query.evaluate(store.clone()).map_err(|error| error.to_string())?;
    let series: Result<Vec<ResultSeries>, _> = evaluation.by_ref().collect();
    let series = series.map_err(|error| error.to_string())?;
    let answer = match (evaluation.text(), evaluation.returns()) {
        (Some(text), _) => Answer::String(text.to_string()),
        (None, ValueType::Scalar) if !is_range => {
            Answer::Scalar(series.first().map_or(f64::NAN, |it| it.samples.floats[0].value))
        }
        (None, ValueType::Vector) if !is_range => Answer::Vector(
            series.into_iter().map(|series| (series.labels.clone(), value(&series))).collect(),
        ),
        _ => matrix(series),
    };
    let messages = |severity| {
        let annotations = evaluation.annotations().iter();
        annotations.filter(|it| it.severity == severity).map(|it| it.message(text)).collect()
    };
    Ok(Evaluated { warnings: messages(Severity::Warning), infos: messages(Severity::Info), answer })
}

fn value(series: &ResultSeries) -> Value {
    match series.samples.floats.first() {
        Some(point) => Value::Float(point.value),
        None => Value::Histogram(series.samples.histograms[0].histogram.clone()),
    }
}

fn matrix(series: Vec<ResultSeries>) -> Answer {
    let answered = |series: ResultSeries| AnsweredSeries {
        labels: series.labels,
        floats: series.samples.floats.iter().map(|it| (it.time_ms, it.value)).collect(),
        histograms: series
            .samples
            .histograms
            .into_iter()
            .map(|point| (point.time_ms, point.histogram))
            .collect(),
    };
    let mut series: Vec<AnsweredSeries> = series.into_iter().map(answered).collect();
    series.sort_by(|a, b| a.labels.cmp(&b.labels));
    Answer::Matrix(series)
}

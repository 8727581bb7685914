//! Evaluates a query over the store, and returns the answer in pieces.

use super::StoreSource;
use crate::error::Error;
use std::collections::BTreeMap;
use std::rc::Rc;
use tidepool_promql::annotations::Severity;
pub use tidepool_promql::answer::AnswerKind as Kind;
use tidepool_promql::answer::{Json, protobuf_series};
use tidepool_promql::eval::{Estimate, EvalError, Evaluation, Limit, Query, ResultSeries, Stats};
use tidepool_promql::plan::{Options, PlanError};
use tidepool_promql::source::Source;
use tidepool_promql::syntax::{Expr, Span, ValueType};

const POINT_BYTES: usize = 16;

const HISTOGRAM_BYTES: usize = 300;

/// Prometheus' warning if the limit of series left out some.
const TRUNCATED: &str = "results truncated due to limit";

/// Reasons why a query fails, at its start or during its evaluation.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The query is invalid: its answer has no meaning.
    #[error("{0}")]
    Invalid(String),
    /// The evaluation failed on the selected series.
    #[error("{0}")]
    Execution(String),
    /// The query needs more than a limit allows.
    #[error("{text}")]
    Limit {
        /// The limit, and the part of the expression that exceeds it.
        text: String,
        /// Name of the limit, for people.
        what: &'static str,
        /// Largest value that the limit allows.
        max: u64,
    },
    /// The store failed to read samples.
    #[error(transparent)]
    Store(Error),
}

/// An evaluation over the store.
pub struct Answer {
    expression: String,
    source: Rc<StoreSource>,
    evaluation: Evaluation,
    kind: Kind,
    time_ms: i64,
    series_left: u64,
    is_truncated: bool,
    json: Option<Json>,
    is_at_end: bool,
}

impl Answer {
    /// Begins to evaluate `parsed`, whose text is `expression`. A `series_max` of 0 is no limit.
    pub fn new(
        expression: String,
        parsed: &Expr,
        options: Options,
        series_max: u64,
        source: Rc<StoreSource>,
    ) -> Result<Answer, Problem> {
        let (is_range, time_ms) = (options.step_ms.is_some(), options.start_ms);
        let query = Query::new(parsed, options).map_err(|error| match error {
            PlanError::Invalid { text, .. } => Problem::Invalid(text),
            PlanError::Evaluation(error) => problem(error, &expression, &source),
        })?;
        let store: Rc<dyn Source> = source.clone();
        let evaluation = query.evaluate(store);
        let evaluation = evaluation.map_err(|error| problem(error, &expression, &source))?;
        let kind = match evaluation.returns() {
            // A range query returns a matrix, whatever the type of its expression is.
            _ if is_range => Kind::Matrix,
            ValueType::Scalar => Kind::Scalar,
            ValueType::String => Kind::String,
            ValueType::Vector => Kind::Vector,
            ValueType::Matrix => Kind::Matrix,
        };
        Ok(Answer {
            expression,
            source,
            evaluation,
            kind,
            time_ms,
            series_left: if series_max == 0 { u64::MAX } else { series_max },
            is_truncated: false,
            json: None,
            is_at_end: false,
        })
    }

    /// Returns the type of the result.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the text of a string result; empty for other results.
    pub fn text(&self) -> &str {
        self.evaluation.text().unwrap_or_default()
    }

    /// Returns the next series: about `bytes_max` bytes, but at least one series; none at the end.
    pub fn next(&mut self, bytes_max: u32) -> Result<Vec<ResultSeries>, Problem> {
        let mut all = Vec::new();
        let mut bytes = 0;
        // At least one series, since none means the end. Estimates of the sizes suffice here.
        while bytes < bytes_max.max(1) as usize {
            let Some(series) = self.next_series()? else { break };
            let samples = &series.samples;
            bytes += series.labels.bytes()
                + samples.floats.len() * POINT_BYTES
                + samples.histograms.len() * HISTOGRAM_BYTES;
            all.push(series);
        }
        Ok(all)
    }

    /// Returns the next bytes of the fields `resultType` and `result`; none at the end.
    pub fn next_json(&mut self, bytes_max: u32) -> Result<Vec<u8>, Problem> {
        let mut out = Vec::new();
        if self.is_at_end {
            return Ok(out);
        }
        let mut json = match self.json.take() {
            Some(json) => json,
            None => Json::begin(self.kind, &mut out),
        };
        loop {
            match self.next_series()? {
                Some(series) => json.series(&series.labels, &series.samples, &mut out),
                None => {
                    // A string result has no series, so nothing of it was written before.
                    if self.kind == Kind::String {
                        json.text(self.time_ms, self.text(), &mut out);
                    }
                    json.end(&mut out);
                    self.is_at_end = true;
                    return Ok(out);
                }
            }
            if out.len() >= bytes_max as usize {
                self.json = Some(json);
                return Ok(out);
            }
        }
    }

    /// Returns the next bytes of a `prometheus.QueryResult`; none at the end.
    pub fn next_protobuf(&mut self, bytes_max: u32) -> Result<Vec<u8>, Problem> {
        let mut out = Vec::new();
        while out.len() < bytes_max.max(1) as usize {
            let Some(series) = self.next_series()? else { break };
            protobuf_series(&series.labels, &series.samples, &mut out);
        }
        Ok(out)
    }

    /// Returns the annotations of a severity so far, with their positions: at most `texts_max`
    /// texts, then the number of further ones; 0 returns all.
    pub fn annotations(&self, severity: Severity, texts_max: usize) -> Vec<String> {
        let mut texts =
            self.evaluation.annotations().messages(severity, &self.expression, texts_max);
        // The evaluation does not know the limit, so it has no such annotation.
        if self.is_truncated && severity == Severity::Warning {
            texts.push(TRUNCATED.to_owned());
        }
        if severity == Severity::Warning {
            texts.extend(damaged_blocks(&self.source.left_out(), texts_max));
        }
        texts
    }

    /// Encodes the annotations so far, for [`Answer::add_remarks`].
    pub fn remarks(&self) -> Vec<u8> {
        self.evaluation.annotations().to_bytes()
    }

    /// Adds encoded annotations of another evaluation of the same expression.
    pub fn add_remarks(&mut self, remarks: &[u8]) -> Result<(), Problem> {
        let added = self.evaluation.add_annotations(remarks);
        added.ok_or_else(|| Problem::Invalid("these bytes are no remarks".into()))
    }

    /// Returns the cost of the evaluation so far.
    pub fn stats(&self) -> Stats {
        self.evaluation.stats()
    }

    /// Opens the selections as of now, and estimates their size before they are read.
    pub fn prepare(&mut self) -> Result<Estimate, Problem> {
        let estimate = self.evaluation.prepare();
        estimate.map_err(|error| problem(error, &self.expression, &self.source))
    }

    /// Returns whether the series of a range are sorted by labels; known after the first series.
    pub fn is_sorted(&self) -> bool {
        self.evaluation.comes_sorted()
    }

    /// Returns whether the answer at a step depends only on the step's time and on samples that are
    /// not newer; known at the end. False if a damaged block was left out.
    pub fn is_stepwise(&self) -> bool {
        self.evaluation.is_stepwise() && self.source.left_out().is_empty()
    }

    fn next_series(&mut self) -> Result<Option<ResultSeries>, Problem> {
        match self.evaluation.next() {
            None => Ok(None),
            // One series beyond the limit is evaluated, to know whether the limit leaves any out.
            Some(Ok(_)) if self.series_left == 0 => {
                self.is_truncated = true;
                Ok(None)
            }
            Some(Ok(series)) => {
                self.series_left -= 1;
                Ok(Some(series))
            }
            Some(Err(error)) => Err(problem(error, &self.expression, &self.source)),
        }
    }
}

/// Returns a warning for each damaged block, at most `texts_max`, then a count; 0 means all.
fn damaged_blocks(left_out: &BTreeMap<String, String>, texts_max: usize) -> Vec<String> {
    let shown = if texts_max == 0 { left_out.len() } else { texts_max };
    let text = |(block, reason): (&String, &String)| {
        format!("block {block} is damaged and not read: {reason}")
    };
    let mut texts: Vec<String> = left_out.iter().take(shown).map(text).collect();
    match left_out.len().saturating_sub(shown) {
        0 => {}
        more => texts.push(format!("{more} more damaged blocks are not read")),
    }
    texts
}

fn problem(error: EvalError, expression: &str, source: &StoreSource) -> Problem {
    match error {
        // The evaluation has only the error's text; the source has the error itself.
        EvalError::Source(error) => match source.take_failure() {
            Some(failure) => Problem::Store(failure),
            None => Problem::Execution(error.to_string()),
        },
        EvalError::Limit { limit, max, span } => {
            let what = match limit {
                Limit::Bytes => "memory of a query",
                Limit::Samples => "samples of a query",
                Limit::Steps => "steps of a query",
                Limit::Depth => "depth of an expression",
                Limit::LabelBytes => "length of a label",
            };
            let text = format!("{error} (in {:?})", part(expression, span));
            Problem::Limit { text, what, max }
        }
        EvalError::Execution { text } => Problem::Execution(text),
    }
}

/// Returns a part of an expression, cut to a length that fits into a message.
fn part(expression: &str, span: Span) -> &str {
    const BYTES_MAX: usize = 200;
    let part = expression.get(span.start as usize..span.end as usize).unwrap_or(expression);
    &part[..part.floor_char_boundary(BYTES_MAX)]
}

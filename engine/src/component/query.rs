//! Exports the interface `query`: evaluates PromQL expressions to series or encoded answers.

use super::ENGINE;
use super::bindings::exports::tidepool::tsdb::query::{
    self as wit_query, Evaluation, Guest, GuestEvaluation, QueryError, QueryOptions,
};
use super::bindings::tidepool::tsdb::types as wit;
use crate::engine::{First, View};
use crate::error::Error;
use crate::model::TimeRange;
use crate::query::{Answer, Kind, Problem, StoreSource};
use std::cell::RefCell;
use std::rc::Rc;
use tidepool_promql::annotations::Severity;
use tidepool_promql::eval::{Estimate, ResultSeries};
use tidepool_promql::model::{CounterReset, Histogram, Span};
use tidepool_promql::plan::Options;
use tidepool_promql::syntax::{self, LINE_BYTES_MAX, ParseError, ParserOptions, parse};

pub struct OpenEvaluation(RefCell<Answer>);

impl Guest for super::Component {
    type Evaluation = OpenEvaluation;

    fn instant(
        expression: String,
        time_ms: i64,
        options: QueryOptions,
    ) -> Result<Evaluation, QueryError> {
        evaluate(expression, &options, Options::instant(time_ms))
    }

    fn range(
        expression: String,
        start_ms: i64,
        end_ms: i64,
        step_ms: i64,
        options: QueryOptions,
    ) -> Result<Evaluation, QueryError> {
        if step_ms <= 0 {
            // Prometheus' text for the same mistake.
            let text = "zero or negative query resolution step widths are not accepted".into();
            return Err(QueryError::Invalid(text));
        }
        if end_ms < start_ms {
            return Err(QueryError::Invalid("the end is before the start".into()));
        }
        evaluate(expression, &options, Options::range(start_ms, end_ms, step_ms))
    }

    fn format(expression: String, options: QueryOptions) -> Result<String, wit_query::ParseError> {
        Ok(parse(&expression, &written(&options))?.prettified(LINE_BYTES_MAX))
    }

    fn parse(expression: String, options: QueryOptions) -> Result<String, wit_query::ParseError> {
        let expression = parse(&expression, &written(&options))?;
        let mut tree = Vec::new();
        tidepool_promql::answer::push_tree(&expression, &mut tree);
        // The tree is written from strings, so it is UTF-8.
        Ok(String::from_utf8_lossy(&tree).into_owned())
    }

    fn selectors(
        expression: String,
        options: QueryOptions,
    ) -> Result<Vec<Vec<wit::Matcher>>, wit_query::ParseError> {
        let expression = parse(&expression, &parser_options(&options))?;
        let selectors = expression.selectors().into_iter();
        Ok(selectors.map(|selector| selector.matchers.iter().map(Into::into).collect()).collect())
    }
}

fn evaluate(
    expression: String,
    given: &QueryOptions,
    mut options: Options,
) -> Result<Evaluation, QueryError> {
    if given.lookback_ms > 0 {
        options.lookback_ms = given.lookback_ms;
    }
    if given.subquery_step_ms > 0 {
        options.subquery_step_ms = given.subquery_step_ms;
    }
    options.limits.samples_max = match given.samples_max {
        0 => u64::MAX,
        samples => samples,
    };
    options.limits.bytes_max = match given.memory_bytes_max {
        0 => usize::MAX,
        bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
    };
    options.delayed_name_removal = given.delayed_name_removal;
    options.type_and_unit_labels = given.type_and_unit_labels;
    options.start_timestamps = given.start_timestamps;
    options.stats_per_step = given.stats_per_step;
    let parsed = parse(&expression, &parser_options(given))
        .map_err(|error| QueryError::Parse(error.into()))?;
    let source = Rc::new(StoreSource::new(view));
    let answer = Answer::new(expression, &parsed, options, given.series_max, source);
    let answer = answer.map_err(QueryError::from)?;
    Ok(Evaluation::new(OpenEvaluation(RefCell::new(answer))))
}

fn view(range: TimeRange, first: First<'_>) -> Result<View, Error> {
    ENGINE.with_borrow(|engine| match engine {
        Some(engine) => engine.view(range, first),
        None => Err(Error::NotOpen),
    })
}

/// Longest chain of operators to print: the text grows with the square of a chain's length.
const WRITTEN_CHAIN_MAX: u32 = 1000;

fn written(options: &QueryOptions) -> ParserOptions {
    ParserOptions { chain_max: WRITTEN_CHAIN_MAX, ..parser_options(options) }
}

fn parser_options(options: &QueryOptions) -> ParserOptions {
    ParserOptions {
        experimental_functions: options.experimental_functions,
        extended_range_selectors: options.extended_range_selectors,
        fill_modifiers: options.binop_fill_modifiers,
        ..ParserOptions::default()
    }
}

impl GuestEvaluation for OpenEvaluation {
    fn value_type(&self) -> wit_query::ValueType {
        match self.0.borrow().kind() {
            Kind::Scalar => wit_query::ValueType::Scalar,
            Kind::String => wit_query::ValueType::String,
            Kind::Vector => wit_query::ValueType::Vector,
            Kind::Matrix => wit_query::ValueType::Matrix,
        }
    }

    fn text(&self) -> String {
        self.0.borrow().text().to_owned()
    }

    fn next(&self, bytes_max: u32) -> Result<Vec<wit_query::ResultSeries>, QueryError> {
        let series = self.0.borrow_mut().next(bytes_max)?;
        Ok(series.into_iter().map(Into::into).collect())
    }

    fn next_bytes(
        &self,
        format: wit_query::ResultFormat,
        bytes_max: u32,
    ) -> Result<Vec<u8>, QueryError> {
        let mut answer = self.0.borrow_mut();
        Ok(match format {
            wit_query::ResultFormat::Json => answer.next_json(bytes_max)?,
            wit_query::ResultFormat::Protobuf => answer.next_protobuf(bytes_max)?,
        })
    }

    fn annotations(&self, texts_max: u32) -> Vec<wit_query::Annotation> {
        let answer = self.0.borrow();
        let of = |severity| {
            let texts = answer.annotations(severity, texts_max as usize);
            let is_warning = severity == Severity::Warning;
            texts.into_iter().map(move |text| wit_query::Annotation { is_warning, text })
        };
        of(Severity::Warning).chain(of(Severity::Info)).collect()
    }

    fn remarks(&self) -> Vec<u8> {
        self.0.borrow().remarks()
    }

    fn add_remarks(&self, remarks: Vec<u8>) -> Result<(), QueryError> {
        Ok(self.0.borrow_mut().add_remarks(&remarks)?)
    }

    fn stats(&self) -> wit_query::QueryStats {
        let stats = self.0.borrow().stats();
        wit_query::QueryStats {
            series: stats.series,
            samples: stats.samples_total,
            samples_read: stats.samples_read,
            samples_peak: stats.samples_peak,
            memory_peak_bytes: stats.bytes_peak as u64,
        }
    }

    fn samples_per_step(&self) -> Vec<u64> {
        self.0.borrow().stats().samples_per_step
    }

    fn prepare(&self) -> Result<wit_query::Estimate, QueryError> {
        let Estimate { series, start_ms, end_ms } = self.0.borrow_mut().prepare()?;
        Ok(wit_query::Estimate { series: series as u64, start_ms, end_ms })
    }

    fn is_sorted(&self) -> bool {
        self.0.borrow().is_sorted()
    }

    fn is_stepwise(&self) -> bool {
        self.0.borrow().is_stepwise()
    }
}

impl From<ParseError> for wit_query::ParseError {
    fn from(error: ParseError) -> wit_query::ParseError {
        let at = wit_query::Span { start: error.span.start, end: error.span.end };
        wit_query::ParseError { text: error.to_string(), at }
    }
}

impl From<Problem> for QueryError {
    fn from(problem: Problem) -> QueryError {
        match problem {
            Problem::Invalid(text) => QueryError::Invalid(text),
            Problem::Execution(text) => QueryError::Execution(text),
            Problem::Limit { text, what, max } => QueryError::Limit(wit_query::QueryLimit {
                text,
                limit: wit::Limit { what: what.into(), max },
            }),
            Problem::Store(error) => QueryError::Store(error.into()),
        }
    }
}

impl From<&syntax::Matcher> for wit::Matcher {
    fn from(matcher: &syntax::Matcher) -> wit::Matcher {
        let syntax::Matcher { name, op, value } = matcher.clone();
        wit::Matcher { name, op: op.into(), value }
    }
}

impl From<ResultSeries> for wit_query::ResultSeries {
    fn from(series: ResultSeries) -> wit_query::ResultSeries {
        let label =
            |(name, value): (&str, &str)| wit::Label { name: name.into(), value: value.into() };
        let ResultSeries { labels, samples } = series;
        wit_query::ResultSeries {
            labels: labels.iter().map(label).collect(),
            times_ms: samples.floats.iter().map(|point| point.time_ms).collect(),
            values: samples.floats.iter().map(|point| point.value).collect(),
            histogram_times_ms: samples.histograms.iter().map(|point| point.time_ms).collect(),
            histograms: samples.histograms.iter().map(|point| (&*point.histogram).into()).collect(),
        }
    }
}

impl From<&Histogram> for wit_query::NativeHistogram {
    fn from(histogram: &Histogram) -> wit_query::NativeHistogram {
        let spans = |spans: &[Span]| {
            let spans = spans
                .iter()
                .map(|&Span { offset, length }| wit_query::BucketSpan { offset, length });
            spans.collect()
        };
        wit_query::NativeHistogram {
            counter_reset: match histogram.counter_reset {
                CounterReset::Unknown => wit_query::CounterReset::Unknown,
                CounterReset::Reset => wit_query::CounterReset::Reset,
                CounterReset::NotReset => wit_query::CounterReset::NotReset,
                CounterReset::Gauge => wit_query::CounterReset::Gauge,
            },
            schema: histogram.schema,
            zero_threshold: histogram.zero_threshold,
            zero_count: histogram.zero_count,
            count: histogram.count,
            sum: histogram.sum,
            positive_spans: spans(&histogram.positive_spans),
            positive_buckets: histogram.positive_buckets.clone(),
            negative_spans: spans(&histogram.negative_spans),
            negative_buckets: histogram.negative_buckets.clone(),
            custom_values: histogram.custom_values.clone(),
        }
    }
}

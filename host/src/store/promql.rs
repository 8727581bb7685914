//! Queries in PromQL: as reads, a fresh instance for each, on a thread of its own.

use super::query::answer_parts;
use super::{Shared, Store, StoreError};
use crate::wasm::{
    Annotation, EvaluationHandle, Instance, Matcher, ParseError, QueryError, QueryOptions,
    QueryStats, QueryTimes, ResultFormat,
};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender};

/// Bytes of answer that one call into the instance gives at least, if there are as many.
const PART_BYTES: u32 = 64 * 1024;

/// Remarks of each kind that an answer carries; of more there is only their number. Upstream's.
const ANNOTATIONS_MAX: u32 = 10;

/// Part of an instance's memory that the evaluation may hold, in percent: the engine itself, blocks
/// that are open, and the answer's bytes take the rest.
const MEMORY_PERCENT: u64 = 70;

/// A query.
#[derive(Clone, Debug)]
pub struct Expression {
    /// Its text.
    pub text: String,
    /// When it is evaluated.
    pub times: QueryTimes,
    /// How the answer is written.
    pub format: ResultFormat,
    /// How far back instant selectors look, in milliseconds; 0 for the default.
    pub lookback_ms: i64,
    /// Most samples held at a time; 0 for no limit.
    pub samples_max: u64,
    /// Most series of the answer; 0 for no limit.
    pub series_max: u64,
    /// Longest time the query may take, unless reads have less.
    pub timeout: Option<Duration>,
}

/// A part of a query's answer.
#[derive(Debug)]
pub enum QueryPart {
    /// The next bytes.
    Bytes(Bytes),
    /// That was all. An answer without this was cut short.
    End {
        /// Remarks, warnings first.
        annotations: Vec<Annotation>,
        /// What it has cost.
        stats: QueryStats,
    },
}

impl From<ParseError> for StoreError {
    fn from(error: ParseError) -> StoreError {
        StoreError::Expression(error.text)
    }
}

impl From<QueryError> for StoreError {
    fn from(error: QueryError) -> StoreError {
        match error {
            QueryError::Parse(error) => error.into(),
            QueryError::Invalid(text) => StoreError::Expression(text),
            QueryError::Execution(text) => StoreError::Evaluation(text),
            QueryError::Limit(limit) => StoreError::Evaluation(limit.text),
            QueryError::Store(error) => StoreError::Refused(error),
        }
    }
}

impl Store {
    /// Evaluates an expression.
    pub async fn query(
        &self,
        expression: Expression,
    ) -> Result<Receiver<Result<QueryPart, StoreError>>, StoreError> {
        self.answer(move |shared, parts| run(&expression, shared, parts)).await
    }

    /// An expression in Prometheus' layout.
    pub async fn format_query(&self, text: String) -> Result<String, StoreError> {
        self.of_instance(move |instance| Ok(instance.format_query(&text, OPTIONS)??)).await
    }

    /// The tree of an expression as JSON.
    pub async fn parse_query(&self, text: String) -> Result<String, StoreError> {
        self.of_instance(move |instance| Ok(instance.parse_query(&text, OPTIONS)??)).await
    }

    /// The selectors of an expression.
    pub async fn selectors(&self, text: String) -> Result<Vec<Vec<Matcher>>, StoreError> {
        self.of_instance(move |instance| Ok(instance.selectors(&text, OPTIONS)??)).await
    }

    async fn of_instance<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Instance) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let run = move |shared: &Arc<Shared>, parts: &Sender<Result<T, StoreError>>| {
            answer_parts(shared, parts, |instance, send| {
                // If nobody listens any more, nobody needs to know.
                let _ = send(call(instance)?);
                Ok(())
            });
        };
        // A thread that could not be started gives nothing.
        self.answer(run).await?.recv().await.unwrap_or(Err(StoreError::Stopped))
    }
}

/// What all queries have in common.
const OPTIONS: QueryOptions = QueryOptions {
    lookback_ms: 0,
    samples_max: 0,
    series_max: 0,
    memory_bytes_max: 0,
    subquery_step_ms: 0,
    experimental_functions: false,
    extended_range_selectors: false,
    binop_fill_modifiers: false,
    delayed_name_removal: false,
};

/// Answers a query; an error is the last part.
fn run(
    expression: &Expression,
    shared: &Arc<Shared>,
    parts: &Sender<Result<QueryPart, StoreError>>,
) {
    let memory_bytes = shared.live().query_limits.memory_bytes_max as u64;
    let options = QueryOptions {
        lookback_ms: expression.lookback_ms,
        samples_max: expression.samples_max,
        series_max: expression.series_max,
        memory_bytes_max: memory_bytes / 100 * MEMORY_PERCENT,
        ..OPTIONS
    };
    answer_parts(shared, parts, |instance, send| {
        let limit = shared.live().query_limits.deadline;
        if let Some(timeout) = expression.timeout {
            instance.set_deadline(Some(limit.map_or(timeout, |limit| limit.min(timeout))));
        }
        let evaluation = instance.evaluate(&expression.text, expression.times, options)??;
        loop {
            let bytes = instance.next_of_query(evaluation, expression.format, PART_BYTES)??;
            let part = match bytes.is_empty() {
                false => QueryPart::Bytes(bytes.into()),
                true => end(instance, evaluation)?,
            };
            let is_end = matches!(part, QueryPart::End { .. });
            // The instance is dropped after this, and what is open in it closed.
            if send(part).is_err() || is_end {
                return Ok(());
            }
        }
    });
}

fn end(instance: &mut Instance, evaluation: EvaluationHandle) -> Result<QueryPart, StoreError> {
    let annotations = instance.annotations(evaluation, ANNOTATIONS_MAX)?;
    Ok(QueryPart::End { annotations, stats: instance.query_stats(evaluation)? })
}

//! Queries in PromQL: as reads, a fresh instance for each, on a thread of its own.

use super::query::{ReceiverGone, answer_parts, answer_until};
use super::{Shared, Store, StoreError, millis};
use crate::wasm::{
    Annotation, EvaluationHandle, Instance, Matcher, ParseError, QueryError, QueryOptions,
    QueryStats, QueryTimes, ResultFormat,
};
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};
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
    /// How far back instant selectors look, unless as the configuration says.
    pub lookback: Option<Duration>,
    /// Most series of the answer; 0 for no limit.
    pub series_max: u64,
    /// Longest time the query may take, unless the configuration allows less.
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
    /// Evaluates an expression once it has its turn.
    pub async fn query(
        &self,
        expression: Expression,
    ) -> Result<Receiver<Result<QueryPart, StoreError>>, StoreError> {
        let limit = self.shared.live().queries.timeout;
        let limit = expression.timeout.map_or(limit, |timeout| timeout.min(limit));
        let deadline = Instant::now().checked_add(limit);
        self.check_readable()?;
        let turn = self.shared.query_turns.take(deadline).await?;
        self.check_readable()?;
        Ok(self.answer_now(turn, move |shared, parts| run(&expression, deadline, shared, parts)))
    }

    /// An expression in Prometheus' layout.
    pub async fn format_query(&self, text: String) -> Result<String, StoreError> {
        let options = self.shared.live().queries.options();
        self.of_instance(move |instance| Ok(instance.format_query(&text, options)??)).await
    }

    /// The tree of an expression as JSON.
    pub async fn parse_query(&self, text: String) -> Result<String, StoreError> {
        let options = self.shared.live().queries.options();
        self.of_instance(move |instance| Ok(instance.parse_query(&text, options)??)).await
    }

    /// The selectors of an expression.
    pub async fn selectors(&self, text: String) -> Result<Vec<Vec<Matcher>>, StoreError> {
        let options = self.shared.live().queries.options();
        self.of_instance(move |instance| Ok(instance.selectors(&text, options)??)).await
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

/// Answers a query; an error is the last part.
fn run(
    expression: &Expression,
    deadline: Option<Instant>,
    shared: &Arc<Shared>,
    parts: &Sender<Result<QueryPart, StoreError>>,
) {
    answer_until(shared, deadline, parts, |instance, send| {
        evaluate(expression, shared, instance, send).map_err(StoreError::of_query)
    });
}

fn evaluate(
    expression: &Expression,
    shared: &Shared,
    instance: &mut Instance,
    send: &dyn Fn(QueryPart) -> Result<(), ReceiverGone>,
) -> Result<(), StoreError> {
    let live = shared.live();
    let memory_bytes = live.query_limits.memory_bytes_max as u64;
    let mut options = QueryOptions {
        series_max: expression.series_max,
        memory_bytes_max: memory_bytes / 100 * MEMORY_PERCENT,
        ..live.queries.options()
    };
    if let Some(lookback) = expression.lookback {
        options.lookback_ms = millis(lookback);
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
}

fn end(instance: &mut Instance, evaluation: EvaluationHandle) -> Result<QueryPart, StoreError> {
    let annotations = instance.annotations(evaluation, ANNOTATIONS_MAX)?;
    Ok(QueryPart::End { annotations, stats: instance.query_stats(evaluation)? })
}

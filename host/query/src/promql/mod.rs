//! Evaluates a PromQL query: on one thread with one engine instance, or on several threads.

mod evaluator;
mod split;

use super::expression::Expression;
use super::queries::{QueryTimings, of_query};
use super::repeated::Repeated;
use super::{Queries, Shared};
use bytes::Bytes;
use evaluator::{Evaluator, give_known};
use split::Splitter;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidepool_runtime::{
    Annotation, Instance, Matcher, QueryOptions, QueryStats, QueryTimes, ValueType,
};
use tidepool_store::reading::{Part, Reading, ReceiverGone, SMALL_BYTES_MAX, answer_ready};
use tidepool_store::{StoreError, millis};
use tokio::sync::mpsc::{Receiver, Sender};
use tracing::Span;

/// Percentage of an instance's memory for the evaluation; the rest is for blocks and the answer.
const MEMORY_PERCENT: u64 = 70;

/// Maximum length of a query in the log, in bytes.
const LOGGED_BYTES_MAX: usize = 4096;

/// A part of the answer to a query. Parts are sent in the order of the variants.
#[derive(Debug)]
pub enum QueryPart {
    /// The type of the answer, which is always the first part.
    Begin {
        kind: ValueType,
        /// The result of an expression of type `string`; empty for other types.
        text: String,
    },
    Bytes(Bytes),
    /// The end of a complete answer. An answer without this part was cut short.
    End(Box<QueryEnd>),
}

impl Part for QueryPart {
    fn is_small(&self) -> bool {
        match self {
            QueryPart::Begin { text, .. } => text.len() <= SMALL_BYTES_MAX,
            QueryPart::Bytes(bytes) => bytes.len() <= SMALL_BYTES_MAX,
            QueryPart::End(_) => true,
        }
    }

    fn is_last(&self) -> bool {
        matches!(self, QueryPart::End(_))
    }
}

/// An answer with a single part.
struct SinglePart<T>(T);

impl<T> Part for SinglePart<T> {
    fn is_small(&self) -> bool {
        false
    }

    fn is_last(&self) -> bool {
        true
    }
}

/// Statistics and annotations, which are known when the answer is complete.
#[derive(Debug)]
pub struct QueryEnd {
    /// Annotations of the evaluation: warnings first, then infos.
    pub annotations: Vec<Annotation>,
    pub stats: QueryStats,
    /// Number of samples of each step; empty unless requested and enabled.
    pub samples_per_step: Vec<u64>,
    pub timings: QueryTimings,
}

impl Queries {
    /// Waits until the query may run, then evaluates it on another thread.
    pub async fn query(
        &self,
        expression: Expression,
    ) -> Result<Receiver<Result<QueryPart, StoreError>>, StoreError> {
        let shared = &self.shared;
        let limit = shared.config().timeout;
        let limit = expression.timeout.map_or(limit, |timeout| timeout.min(limit));
        let begun = Instant::now();
        // As in Prometheus, the timeout includes the wait in the queue.
        let deadline = begun.checked_add(limit);
        // A store that replays its log or stops refuses the query before it waits.
        shared.reading.check()?;
        let counted = shared.figures.begin();
        let turn = shared.turns.take(deadline).await;
        let queue = begun.elapsed();
        shared.figures.add_wait(queue);
        // Returned only now, so that a wait that timed out is counted as queue time.
        let turn = turn?;
        // The store may have been stopped while the query waited.
        shared.reading.check()?;
        let span = Span::current();
        let of_all = Arc::clone(shared);
        let run = move |_: &Reading, parts: &Sender<_>| {
            let _entered = span.enter();
            run(&expression, deadline, queue, &of_all, parts);
        };
        // Released when the thread ends, even if the client disconnects before.
        Ok(shared.reading.answer_now((counted, turn), run))
    }

    /// Waits until a query may run, then runs `work` in its place on another thread. Returns the
    /// receiver of what it sends.
    pub async fn in_place_of_query<P: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        work: impl FnOnce(&Reading, &Sender<P>) + Send + 'static,
    ) -> Result<Receiver<P>, StoreError> {
        self.shared.reading.check()?;
        let turn = self.shared.turns.take(deadline).await?;
        // The store may have been stopped while the query waited.
        self.shared.reading.check()?;
        Ok(self.shared.reading.answer_now(turn, work))
    }

    /// Returns the configured lookback delta of instant selectors.
    pub fn lookback(&self) -> Duration {
        self.shared.config().lookback
    }

    /// Formats an expression in Prometheus' layout.
    pub async fn format_query(&self, text: String) -> Result<String, StoreError> {
        let options = self.shared.config().options();
        self.of_instance(move |instance| Ok(instance.format_query(&text, options)??)).await
    }

    /// Parses an expression and returns its syntax tree as JSON.
    pub async fn parse_query(&self, text: String) -> Result<String, StoreError> {
        let options = self.shared.config().options();
        self.of_instance(move |instance| Ok(instance.parse_query(&text, options)??)).await
    }

    /// Parses an expression and returns the matchers of each selector.
    pub async fn selectors(&self, text: String) -> Result<Vec<Vec<Matcher>>, StoreError> {
        let options = self.shared.config().options();
        self.of_instance(move |instance| Ok(instance.selectors(&text, options)??)).await
    }

    async fn of_instance<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Instance) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let run = move |reading: &Reading, parts: &Sender<Result<SinglePart<T>, StoreError>>| {
            reading.answer_parts(parts, |instance, send| {
                // A send fails only if the client has disconnected.
                let _ = send(SinglePart(call(instance)?));
                Ok(())
            });
        };
        // If the thread could not be started, nothing is received.
        let answer = self.shared.reading.answer(run).await?.recv().await;
        answer.unwrap_or(Err(StoreError::Stopped)).map(|SinglePart(answer)| answer)
    }
}

/// Evaluates a query and sends its parts. An error is sent as the last part.
fn run(
    expression: &Expression,
    deadline: Option<Instant>,
    queue: Duration,
    shared: &Shared,
    parts: &Sender<Result<QueryPart, StoreError>>,
) {
    // The entry in `queries.active` is cleared on drop. After a crash, the next start finds it.
    let _active = shared.active.begin(&expression.text);
    let mut cost = Cost {
        begun: Instant::now(),
        timings: QueryTimings { queue, ..QueryTimings::default() },
        is_prepared: false,
        before: NO_COST,
        stats: None,
        answer_bytes: 0,
        error: None,
    };
    let repeated = Repeated::of(expression, shared);
    match repeated.as_ref().and_then(Repeated::whole) {
        Some((answer, steps)) => {
            answer_ready(parts, deadline, |send| give_known(&answer, steps, &mut cost, send));
        }
        None => shared.reading.answer_until(deadline, parts, of_query, |instance, send| {
            let is_gone = {
                // Helping threads check this, so that they end when the client disconnects.
                let parts = parts.clone();
                Arc::new(move || parts.is_closed())
            };
            let options = options(expression, shared);
            let splitter = Splitter { expression, options, shared, deadline, is_gone };
            let mut evaluator = Evaluator { expression, options, instance, cost: &mut cost };
            let evaluated = evaluate(&mut evaluator, &splitter, repeated, send);
            // An expired deadline is reported as `query timed out`, unlike for remote reads.
            let evaluated = evaluated.map_err(of_query);
            cost.error = evaluated.as_ref().err().map(ToString::to_string);
            evaluated
        }),
    }
    shared.figures.add_run(&cost.timings, cost.stats.as_ref());
    let logged_from = shared.config().logged_from;
    // The time includes the wait, so that queries delayed by a full queue are logged as well.
    if !logged_from.is_zero() && cost.total() >= logged_from {
        cost.log(expression);
    }
}

/// The cost of a query so far, and the error if it failed.
struct Cost {
    begun: Instant,
    timings: QueryTimings,
    is_prepared: bool,
    /// Cost of the evaluations that have completed.
    before: QueryStats,
    /// Cost of all evaluations; `None` until an evaluation has returned a part.
    stats: Option<QueryStats>,
    answer_bytes: u64,
    error: Option<String>,
}

/// Cost of a query that reads nothing.
const NO_COST: QueryStats =
    QueryStats { samples: 0, samples_read: 0, samples_peak: 0, memory_peak_bytes: 0, series: 0 };

impl Cost {
    fn stats(&self) -> QueryStats {
        self.stats.unwrap_or(NO_COST)
    }

    /// Adds the cost of a helping thread, and the time that this thread waited for it.
    fn add_other(&mut self, waited: Duration, other: QueryStats) {
        // Only the wait is evaluation time: the rest ran in parallel with this thread's evaluation.
        self.timings.evaluation += waited;
        let own = self.stats();
        self.stats = Some(QueryStats {
            samples: own.samples + other.samples,
            // Threads run concurrently, so peaks are added. Mostly they read the same series.
            samples_read: own.samples_read + other.samples_read,
            samples_peak: own.samples_peak + other.samples_peak,
            memory_peak_bytes: own.memory_peak_bytes + other.memory_peak_bytes,
            series: own.series.max(other.series),
        });
    }

    /// Adds the time of a preparation. The first preparation includes all time since the start.
    fn add_preparation(&mut self, begun: Instant) {
        let is_first = !std::mem::replace(&mut self.is_prepared, true);
        let begun = if is_first { self.begun } else { begun };
        self.timings.preparation += begun.elapsed();
    }

    /// Sets the cost of the evaluation in progress.
    fn set_stats(&mut self, stats: QueryStats) {
        let before = self.before;
        self.stats = Some(QueryStats {
            samples: before.samples + stats.samples,
            samples_read: before.samples_read + stats.samples_read,
            // Evaluations of one instance run one after the other, so the higher peak is used.
            samples_peak: before.samples_peak.max(stats.samples_peak),
            memory_peak_bytes: before.memory_peak_bytes.max(stats.memory_peak_bytes),
            series: before.series + stats.series,
        });
    }

    /// Returns the time since the request arrived, including the wait in the queue.
    fn total(&self) -> Duration {
        self.timings.queue + self.begun.elapsed()
    }

    fn log(&self, expression: &Expression) {
        let QueryTimings { queue, preparation, evaluation } = self.timings;
        let (start_ms, end_ms, step_ms) = match expression.times {
            QueryTimes::Instant(time_ms) => (time_ms, time_ms, 0),
            QueryTimes::Range { start_ms, end_ms, step_ms } => (start_ms, end_ms, step_ms),
        };
        let text = &expression.text;
        let stats = self.stats.as_ref();
        tracing::info!(
            query = &text[..text.floor_char_boundary(LOGGED_BYTES_MAX)],
            start_ms,
            end_ms,
            step_ms,
            seconds = self.total().as_secs_f64(),
            queue_seconds = queue.as_secs_f64(),
            preparation_seconds = preparation.as_secs_f64(),
            evaluation_seconds = evaluation.as_secs_f64(),
            series = stats.map(|stats| stats.series),
            samples = stats.map(|stats| stats.samples),
            samples_read = stats.map(|stats| stats.samples_read),
            peak_samples = stats.map(|stats| stats.samples_peak),
            peak_bytes = stats.map(|stats| stats.memory_peak_bytes),
            answer_bytes = self.answer_bytes,
            error = self.error,
            "slow query"
        );
    }
}

/// Returns the engine's options for an expression.
fn options(expression: &Expression, shared: &Shared) -> QueryOptions {
    let config = shared.config();
    let memory_bytes = shared.reading.limits().memory_bytes_max as u64;
    let options = QueryOptions {
        series_max: expression.series_max,
        // Divided first, which cannot overflow; the rounding does not matter for a limit.
        memory_bytes_max: memory_bytes / 100 * MEMORY_PERCENT,
        // A request cannot enable a feature that the configuration disables.
        stats_per_step: expression.per_step && config.features.per_step_stats,
        ..config.options()
    };
    match expression.lookback {
        Some(lookback) => QueryOptions { lookback_ms: millis(lookback), ..options },
        None => options,
    }
}

fn evaluate(
    evaluator: &mut Evaluator<'_>,
    splitter: &Splitter<'_>,
    repeated: Option<Repeated<'_>>,
    send: &dyn Fn(QueryPart) -> Result<(), ReceiverGone>,
) -> Result<(), StoreError> {
    if let Some(repeated) = &repeated
        && let Some((answer, steps)) =
            repeated.complete(|times, reader| evaluator.piece(times, reader))?
    {
        return give_known(&answer, steps, evaluator.cost, send);
    }
    let times = evaluator.expression.times;
    let mut evaluation = evaluator.begin(times)??;
    if let Some(parts) = splitter.parts(evaluator, evaluation)?
        // A helping thread is counted as a query, and only a query that runs alone is split.
        && let Some(_turns) = splitter.shared.turns.more_for_one(parts.len() - 1)
    {
        evaluator.end(evaluation)?;
        if splitter.give(evaluator, &parts, repeated.as_ref(), send)? {
            return Ok(());
        }
        // Nothing was sent yet, so the query can start again with one evaluation.
        evaluation = evaluator.begin(times)??;
    }
    let (kind, text) = evaluator.instance.type_of_query(evaluation)?;
    if send(QueryPart::Begin { kind, text }).is_ok() {
        evaluator.give(evaluation, repeated.as_ref(), send)?;
    }
    evaluator.end(evaluation)
}

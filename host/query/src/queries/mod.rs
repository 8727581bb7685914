//! Admission of queries: how many may run and wait, and the configuration of all queries.
//!
//! [`ActiveQueries`] lists running queries, for the log of a start after a crash. [`QueryFigures`]
//! has the metrics.

mod active;
mod figures;

pub use active::ActiveQueries;
pub use figures::{QueryFigures, QueryTimings};

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_runtime::QueryOptions;
use tidepool_store::{StoreError, millis};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of waiting queries for each query that may run.
const WAITING_FACTOR: usize = 10;

/// Phase in which the timeout of a query expired, with Prometheus' texts.
const QUEUE: &str = "query queue";
const EVALUATION: &str = "expression evaluation";

/// Limits of queries, and the enabled features of PromQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryConfig {
    /// Maximum number of concurrent queries. Further queries wait.
    pub running_max: usize,
    /// Timeout of a query, from its request to the end of its answer.
    pub timeout: Duration,
    /// Maximum number of samples that a query holds at a time; 0 for no limit.
    pub samples_max: u64,
    /// Lookback delta of instant selectors.
    pub lookback: Duration,
    /// Step of subqueries that state none.
    pub subquery_step: Duration,
    /// Minimum duration of queries that are logged; zero logs none.
    pub logged_from: Duration,
    /// Maximum number of threads of one query.
    pub threads_max: usize,
    /// Number of samples, at least one, for which a query uses one more thread.
    pub thread_samples: u64,
    /// Maximum size of cached answers in bytes; zero disables the cache. Not reloadable.
    pub cache_bytes_max: u64,
    /// Features that are off by default.
    pub features: QueryFeatures,
}

/// Features of PromQL that need a flag in Prometheus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueryFeatures {
    /// Functions and aggregations that Prometheus calls experimental.
    pub experimental_functions: bool,
    /// The modifiers `anchored` and `smoothed` of range selectors.
    pub extended_range_selectors: bool,
    /// The modifiers `fill`, `fill_left` and `fill_right` of binary operators.
    pub binop_fill_modifiers: bool,
    /// Metric names are dropped at the end of an evaluation, not by each function.
    pub delayed_name_removal: bool,
    /// Counters are recognised by the label `__type__` instead of by name.
    pub type_and_unit_labels: bool,
    pub start_timestamps: bool,
    pub per_step_stats: bool,
}

impl QueryFeatures {
    /// Converts to options of the engine without limits, with the default lookback delta and step.
    pub fn options(&self) -> QueryOptions {
        QueryOptions {
            lookback_ms: 0,
            samples_max: 0,
            series_max: 0,
            memory_bytes_max: 0,
            subquery_step_ms: 0,
            experimental_functions: self.experimental_functions,
            extended_range_selectors: self.extended_range_selectors,
            binop_fill_modifiers: self.binop_fill_modifiers,
            delayed_name_removal: self.delayed_name_removal,
            type_and_unit_labels: self.type_and_unit_labels,
            start_timestamps: self.start_timestamps,
            stats_per_step: false,
        }
    }
}

impl QueryConfig {
    /// Converts to options of the engine. Limits of series and memory are left at their defaults.
    pub fn options(&self) -> QueryOptions {
        QueryOptions {
            lookback_ms: millis(self.lookback),
            samples_max: self.samples_max,
            subquery_step_ms: millis(self.subquery_step),
            ..self.features.options()
        }
    }
}

/// Permits for running queries, given in the order of arrival.
pub struct QueryTurns {
    running: Arc<Semaphore>,
    running_max: usize,
    waiting: AtomicUsize,
    waiting_max: usize,
}

/// A place in the queue, freed on drop.
struct QueueTicket<'a>(&'a AtomicUsize);

impl QueryTurns {
    pub fn new(running_max: usize) -> QueryTurns {
        QueryTurns {
            running: Arc::new(Semaphore::new(running_max)),
            running_max,
            waiting: AtomicUsize::new(0),
            waiting_max: running_max.saturating_mul(WAITING_FACTOR),
        }
    }

    /// Waits for a permit. Dropping it lets the next query run.
    pub async fn take(
        &self,
        deadline: Option<Instant>,
    ) -> Result<OwnedSemaphorePermit, StoreError> {
        if let Ok(turn) = Arc::clone(&self.running).try_acquire_owned() {
            return Ok(turn);
        }
        // Dropped on every return, so that a query that times out leaves the queue.
        let _place = self.place()?;
        let turn = Arc::clone(&self.running).acquire_owned();
        let turn = match deadline {
            None => turn.await,
            Some(deadline) => tokio::time::timeout_at(deadline.into(), turn)
                .await
                .map_err(|_| StoreError::QueryTimeout(QUEUE))?,
        };
        turn.map_err(|_| StoreError::Stopped)
    }

    /// Takes further permits for a running query; `None` if another query runs.
    pub fn more_for_one(&self, turns: usize) -> Option<OwnedSemaphorePermit> {
        // The caller has one permit itself. Any other missing permit belongs to another query.
        if self.running.available_permits() + 1 < self.running_max {
            return None;
        }
        let turns = u32::try_from(turns).ok()?;
        Arc::clone(&self.running).try_acquire_many_owned(turns).ok()
    }

    pub fn running_max(&self) -> usize {
        self.running_max
    }

    /// Refuses further permits, even to queries that already wait.
    pub fn close(&self) {
        self.running.close();
    }

    fn place(&self) -> Result<QueueTicket<'_>, StoreError> {
        // Created before the count is checked, so that its drop also undoes a refused increment.
        let place = QueueTicket(&self.waiting);
        match self.waiting.fetch_add(1, Relaxed) {
            waiting if waiting < self.waiting_max => Ok(place),
            _ => Err(StoreError::TooManyQueries { waiting_max: self.waiting_max }),
        }
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Reports an expired deadline as a query timeout.
pub fn of_query(error: StoreError) -> StoreError {
    match error {
        StoreError::Deadline => StoreError::QueryTimeout(EVALUATION),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_ends_with_a_turn_or_a_timeout() -> Result<(), StoreError> {
        let turns = QueryTurns::new(1);
        let soon = || Instant::now().checked_add(Duration::from_millis(1));
        let first = turns.take(soon()).await?;
        let refused = turns.take(soon()).await.err();
        let refused = refused.map(|error| error.to_string());
        assert_eq!(refused.as_deref(), Some("query timed out in query queue"));
        let (second, ()) = tokio::join!(turns.take(None), async { drop(first) });
        drop(second?);
        assert!(turns.take(soon()).await.is_ok());
        assert_eq!(turns.waiting.load(Relaxed), 0);
        turns.close();
        assert!(matches!(turns.take(None).await, Err(StoreError::Stopped)));
        Ok(())
    }

    #[tokio::test]
    async fn the_queue_has_an_end() -> Result<(), StoreError> {
        let turns = QueryTurns::new(1);
        let _first = turns.take(None).await?;
        let places: Result<Vec<_>, _> = (0..WAITING_FACTOR).map(|_| turns.place()).collect();
        let places = places?;
        let refused = turns.take(None).await.err();
        assert!(matches!(refused, Some(StoreError::TooManyQueries { waiting_max: 10 })));
        assert_eq!(turns.waiting.load(Relaxed), WAITING_FACTOR);
        drop(places);
        assert_eq!(turns.waiting.load(Relaxed), 0);
        Ok(())
    }
}

//! PromQL queries over the store: admission, evaluation, and a cache for results of range queries.
//!
//! ```text
//! Expression ─▶ a turn ─▶ cached steps ─┬─ all steps ────────────────────────────▶ QueryPart …
//!                                       └─ others: an instance, several for a large one ─┘
//!                                              │ tidepool_store::reading
//!                          the ledger, threads, instances, the memory of reads
//! ```
//!
//! Invariant: an answer is byte for byte the same as from one evaluation of all its steps, even if
//! steps come from the cache or are evaluated by several threads.
//!
//! Start with [`Queries`] and [`QueryConfig`], which [`flags`] builds. This crate does not depend
//! on HTTP, plugins or clients. It uses the store through [`tidepool_store::reading`], like all
//! readers; the store does not depend on queries.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod expression;
pub mod flags;
mod promql;
mod queries;
mod repeated;
mod results;

pub use expression::Expression;
pub use promql::{QueryEnd, QueryPart};
pub use queries::{QueryConfig, QueryFeatures, QueryTimings};

use queries::{ActiveQueries, QueryFigures, QueryTurns};
use results::Results;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidepool_runtime::QueryOptions;
use tidepool_store::Store;
use tidepool_store::reading::Reading;
use tidepool_telemetry::MetricsText;

/// A handle for queries on a store; clones share their state.
#[derive(Clone)]
pub struct Queries {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    reading: Reading,
    config: Mutex<QueryConfig>,
    turns: QueryTurns,
    figures: Arc<QueryFigures>,
    results: Results,
    active: ActiveQueries,
}

impl Queries {
    /// Opens the queries of a store, and the file in its data directory that lists running queries.
    pub fn open(store: &Store, config: QueryConfig) -> Queries {
        let reading = store.reading();
        let results = Results::new(config.cache_bytes_max, &store.read_memory(), reading.ledger());
        let shared = Shared {
            reading,
            turns: QueryTurns::new(config.running_max),
            figures: Arc::default(),
            results,
            active: ActiveQueries::open(&store.config().data_dir, config.running_max),
            store: store.clone(),
            config: Mutex::new(config),
        };
        Queries { shared: Arc::new(shared) }
    }

    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Replaces limits and features for future queries. Running queries keep the old limits.
    pub fn reload(&self, config: QueryConfig) {
        *self.shared.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// Returns the options of an expression that no request asks for, such as of a rule.
    pub fn options(&self) -> QueryOptions {
        self.shared.config().options()
    }

    /// Returns the timeout of a query.
    pub fn timeout(&self) -> Duration {
        self.shared.config().timeout
    }

    /// Returns the bytes of cached results, which are part of the memory limit for reads.
    pub fn kept_bytes(&self) -> usize {
        self.shared.results.shared_bytes()
    }

    /// Writes the metrics of queries and of the result cache.
    pub fn show(&self, text: &mut MetricsText) {
        self.shared.figures.show(text, self.shared.turns.running_max());
        self.shared.results.show(text);
    }

    /// Refuses further queries, including queries that wait. Called before the store is closed.
    pub fn close(&self) {
        self.shared.turns.close();
    }
}

impl Shared {
    fn config(&self) -> QueryConfig {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

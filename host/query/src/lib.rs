//! Queries in PromQL over the store: their turns, their evaluation, and results that are kept for
//! the next time.
//!
//! ```text
//! Expression ─▶ a turn ─▶ what is kept ─┬─ all steps ────────────────────────────▶ QueryPart …
//!                                       └─ others: an instance, several for a large one ─┘
//!                                              │ tidepool_store::reading
//!                          the ledger, threads, instances, the memory of reads
//! ```
//!
//! Invariant: an answer is what one evaluation of all its steps would give, byte for byte, whether
//! steps of it were kept, or evaluated by several threads.
//!
//! Begin with [`Queries`] and [`QueryConfig`], which [`flags`] make. Nothing here knows of HTTP, of
//! plugins or of who asks; of the store it uses what [`tidepool_store::reading`] offers to all that
//! read, and the store knows nothing of queries.

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
use tidepool_store::Store;
use tidepool_store::reading::Reading;
use tidepool_telemetry::MetricsText;

/// A handle to the queries of a store; clones share it.
#[derive(Clone)]
pub struct Queries {
    shared: Arc<Shared>,
}

/// What all queries have in common.
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
    /// Queries of a store, which is open: a file in its directory lists those that run.
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

    /// The store that they read.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Takes over what can change while they run: what each may take and use. Those that run
    /// already are not changed.
    pub fn reload(&self, config: QueryConfig) {
        *self.shared.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// Bytes of the memory of reads that kept results take.
    pub fn kept_bytes(&self) -> usize {
        self.shared.results.shared_bytes()
    }

    /// Shows what queries took, and what is kept of their results.
    pub fn show(&self, text: &mut MetricsText) {
        self.shared.figures.show(text, self.shared.turns.running_max());
        self.shared.results.show(text);
    }

    /// Refuses all further turns, also those that are waited for. Before the store is closed.
    pub fn close(&self) {
        self.shared.turns.close();
    }
}

impl Shared {
    fn config(&self) -> QueryConfig {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

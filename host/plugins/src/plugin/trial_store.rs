//! A temporary store for trial runs of jobs. Its directory is removed at the end.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidepool_query::{Queries, QueryConfig};
use tidepool_runtime::{RemoteWriteVersion, WriteOutcome};
use tidepool_store::{BodyRoom, Store, StoreConfig, StoreError, StoreThreads};

/// Interval at which the store is polled until it is ready.
const LOOK: Duration = Duration::from_millis(5);

pub struct TrialStore {
    directory: Directory,
    queries: Queries,
    threads: StoreThreads,
}

/// A directory that is removed when this value is dropped.
struct Directory(PathBuf);

#[derive(Debug, thiserror::Error)]
pub enum TrialStoreError {
    #[error("could not make a directory in {}: {source}", .directory.display())]
    Directory {
        /// Parent directory, for temporary files.
        directory: PathBuf,
        source: io::Error,
    },
    #[error("{0}")]
    Config(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TrialStore {
    /// Starts an empty store. `config` returns the configuration for the store's directory.
    pub async fn open(
        config: impl FnOnce(&Path) -> Result<(StoreConfig, QueryConfig), String>,
    ) -> Result<TrialStore, TrialStoreError> {
        let parent = std::env::temp_dir();
        let directory = parent.join(format!("tidepool-plugin-{}", ulid::Ulid::generate()));
        std::fs::create_dir(&directory)
            .map_err(|source| TrialStoreError::Directory { directory: parent, source })?;
        // From here on, the directory is removed on every error.
        let directory = Directory(directory);
        let (config, of_queries) = config(&directory.0).map_err(TrialStoreError::Config)?;
        let (store, mut threads) = Store::open(config)?;
        let queries = Queries::open(&store, of_queries);
        // A store that is still starting would refuse the calls of a job.
        while !store.is_ready() {
            if let Ok(error) = threads.failed.try_recv() {
                return Err(error.into());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(TrialStore { directory, queries, threads })
    }

    /// Returns the queries of the store, and thereby the store.
    pub fn handle(&self) -> Queries {
        self.queries.clone()
    }

    pub async fn append(
        &self,
        version: RemoteWriteVersion,
        body: Vec<u8>,
    ) -> Result<WriteOutcome, StoreError> {
        self.queries.store().append(version, body, BodyRoom::none()).await
    }

    pub fn close(self) {
        let TrialStore { directory, queries, threads } = self;
        queries.close();
        // An error does not matter, because the directory is removed.
        let _ = queries.store().clone().close(threads);
        drop(directory);
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // If it cannot be removed, it remains among the temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

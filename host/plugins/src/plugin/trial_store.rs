//! A store for trying jobs: a real one in a directory of its own, which is gone afterwards.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidepool_query::{Queries, QueryConfig};
use tidepool_runtime::{RemoteWriteVersion, WriteOutcome};
use tidepool_store::{BodyRoom, Store, StoreConfig, StoreError, StoreThreads};

/// How often it is looked whether the store is ready.
const LOOK: Duration = Duration::from_millis(5);

/// A store in a directory for temporary files.
pub struct TrialStore {
    directory: Directory,
    queries: Queries,
    threads: StoreThreads,
}

/// Goes with what is in it.
struct Directory(PathBuf);

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum TrialStoreError {
    /// Its directory could not be made.
    #[error("could not make a directory in {}: {source}", .directory.display())]
    Directory {
        /// The one for temporary files.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It has no configuration.
    #[error("{0}")]
    Config(String),
    /// It does not start.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TrialStore {
    /// Starts an empty one, with the configuration for a store in a given directory, and for its
    /// queries.
    pub async fn open(
        config: impl FnOnce(&Path) -> Result<(StoreConfig, QueryConfig), String>,
    ) -> Result<TrialStore, TrialStoreError> {
        let parent = std::env::temp_dir();
        let directory = parent.join(format!("tidepool-plugin-{}", ulid::Ulid::generate()));
        std::fs::create_dir(&directory)
            .map_err(|source| TrialStoreError::Directory { directory: parent, source })?;
        let directory = Directory(directory);
        let (config, of_queries) = config(&directory.0).map_err(TrialStoreError::Config)?;
        let (store, mut threads) = Store::open(config)?;
        let queries = Queries::open(&store, of_queries);
        while !store.is_ready() {
            if let Ok(error) = threads.failed.try_recv() {
                return Err(error.into());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(TrialStore { directory, queries, threads })
    }

    /// A handle to its queries, and so to it.
    pub fn handle(&self) -> Queries {
        self.queries.clone()
    }

    /// Stores a remote-write body.
    pub async fn append(
        &self,
        version: RemoteWriteVersion,
        body: Vec<u8>,
    ) -> Result<WriteOutcome, StoreError> {
        self.queries.store().append(version, body, BodyRoom::none()).await
    }

    /// Stops it and removes its directory.
    pub fn close(self) {
        let TrialStore { directory, queries, threads } = self;
        queries.close();
        // Its directory goes with it.
        let _ = queries.store().clone().close(threads);
        drop(directory);
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed lies where things may be lost.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

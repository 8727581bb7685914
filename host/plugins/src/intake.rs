//! The way of every write into the store: past the plugins, if there are any.

use crate::plugin::Plugins;
use tidepool_runtime::{RemoteWriteVersion, WriteOutcome};
use tidepool_store::{Body, BodyRoom, Store, StoreError};

/// The store behind its plugins.
#[derive(Clone)]
pub struct Intake {
    store: Store,
    plugins: Option<Plugins>,
}

impl Intake {
    /// The way into a store.
    pub fn new(store: Store, plugins: Option<Plugins>) -> Intake {
        Intake { store, plugins }
    }

    /// As [`Store::append`].
    pub async fn append(
        &self,
        version: RemoteWriteVersion,
        body: impl Into<Body>,
        room: BodyRoom,
    ) -> Result<WriteOutcome, StoreError> {
        match &self.plugins {
            None => self.store.append(version, body, room).await,
            Some(plugins) => plugins.append(version, body.into(), room).await,
        }
    }

    /// Whether a plugin looks at writes, so that all must come as requests.
    pub fn is_watched(&self) -> bool {
        self.plugins.as_ref().is_some_and(Plugins::watch_writes)
    }

    /// The store itself.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

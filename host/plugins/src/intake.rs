//! The entry for writes to the store. They pass the plugins, if there are any.

use crate::plugin::Plugins;
use tidepool_runtime::{RemoteWriteVersion, WriteOutcome};
use tidepool_store::{Body, BodyRoom, Store, StoreError};

/// A store together with the plugins that its writes pass.
#[derive(Clone)]
pub struct Intake {
    store: Store,
    plugins: Option<Plugins>,
}

impl Intake {
    pub fn new(store: Store, plugins: Option<Plugins>) -> Intake {
        Intake { store, plugins }
    }

    /// Applies the transforms to a request, then appends it as [`Store::append`] does.
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

    /// Returns whether a transform or observer sees writes, which must then come as requests.
    pub fn is_watched(&self) -> bool {
        self.plugins.as_ref().is_some_and(Plugins::watch_writes)
    }

    /// Returns the store, for reads and for writes that bypass plugins.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

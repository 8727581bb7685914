//! The way of every request into the store: past the plugins, if there are any.

use super::context::Context;
use crate::plugin::Plugins;
use crate::store::{Body, BodyRoom, Store, StoreError};
use crate::wasm::{RemoteWriteVersion, WriteOutcome};

/// The store behind its plugins.
pub struct Intake {
    store: Store,
    plugins: Option<Plugins>,
}

impl Context {
    /// The way into the store.
    pub fn intake(&self) -> Intake {
        Intake { store: self.store.clone(), plugins: self.plugins.clone() }
    }
}

impl Intake {
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
}

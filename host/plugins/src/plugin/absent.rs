//! Replaces plugins in a build without the feature. It has the settings, so that configuration
//! files are read the same way, and a type without values, so that callers need no `cfg`.

pub mod config;
mod push;

pub use push::{Decoded, PushRequest, Undecoded};

use config::PluginsConfig;
use tidepool_query::Queries;
use tidepool_runtime::{RemoteWriteVersion, WriteOutcome};
use tidepool_store::{Body, BodyRoom, StoreError};
use tidepool_telemetry::MetricsText;
use tokio::runtime::Handle;

/// A type without values, because this build has no plugins.
#[derive(Clone)]
pub enum Plugins {}

impl Plugins {
    /// Returns an error, because this build has no plugins.
    pub fn open(_: PluginsConfig, _: &Queries, _: Handle) -> Result<Plugins, String> {
        Err("this build has no plugins: build it with the feature `plugins`".to_owned())
    }

    pub fn reload(&self, _: &PluginsConfig) {
        match *self {}
    }

    pub async fn append(
        &self,
        _: RemoteWriteVersion,
        _: Body,
        _: BodyRoom,
    ) -> Result<WriteOutcome, StoreError> {
        match *self {}
    }

    pub fn watch_writes(&self) -> bool {
        match *self {}
    }

    pub fn at_path(&self, _: &str) -> Option<String> {
        match *self {}
    }

    pub fn check_decoder(&self, _: &str) -> Result<(), Undecoded> {
        match *self {}
    }

    pub async fn decode(&self, _: &str, _: PushRequest) -> Result<Decoded, Undecoded> {
        match *self {}
    }

    pub fn show(&self, _: &mut MetricsText) {
        match *self {}
    }
}

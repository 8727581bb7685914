//! The module in a build without plugins: what can be set, so that a configuration file is read the
//! same, and a type of which there is no value. What calls it needs no `cfg`.

pub mod config;
mod push;

pub use push::{Decoded, PushRequest, Undecoded};

use config::PluginsConfig;
use tidepool_query::Queries;
use tidepool_runtime::{RemoteWriteVersion, WriteOutcome};
use tidepool_store::{Body, BodyRoom, StoreError};
use tidepool_telemetry::MetricsText;
use tokio::runtime::Handle;

/// There are none.
#[derive(Clone)]
pub enum Plugins {}

impl Plugins {
    /// Says that this build has none.
    pub fn open(_: PluginsConfig, _: &Queries, _: Handle) -> Result<Plugins, String> {
        Err("this build has no plugins: build it with the feature `plugins`".to_owned())
    }

    /// Never called.
    pub fn reload(&self, _: &PluginsConfig) {
        match *self {}
    }

    /// Never called.
    pub async fn append(
        &self,
        _: RemoteWriteVersion,
        _: Body,
        _: BodyRoom,
    ) -> Result<WriteOutcome, StoreError> {
        match *self {}
    }

    /// Never called.
    pub fn watch_writes(&self) -> bool {
        match *self {}
    }

    /// Never called.
    pub fn at_path(&self, _: &str) -> Option<String> {
        match *self {}
    }

    /// Never called.
    pub fn check_decoder(&self, _: &str) -> Result<(), Undecoded> {
        match *self {}
    }

    /// Never called.
    pub async fn decode(&self, _: &str, _: PushRequest) -> Result<Decoded, Undecoded> {
        match *self {}
    }

    /// Never called.
    pub fn show(&self, _: &mut MetricsText) {
        match *self {}
    }
}

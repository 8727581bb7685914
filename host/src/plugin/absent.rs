//! What stands for plugins in a build without them: a type of which there is no value.

use super::config::PluginsConfig;
use super::{Decoded, PushRequest, Undecoded};
use crate::store::{Body, BodyRoom, Store, StoreError};
use crate::telemetry::MetricsText;
use crate::wasm::{RemoteWriteVersion, WriteOutcome};
use tokio::runtime::Handle;

/// There are none.
#[derive(Clone)]
pub enum Plugins {}

impl Plugins {
    /// Says that this build has none.
    pub fn open(_: PluginsConfig, _: &Store, _: Handle) -> Result<Plugins, String> {
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
    pub fn write_metrics(&self, _: &mut MetricsText) {
        match *self {}
    }
}

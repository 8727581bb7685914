//! Runs a plugin without a server, for checks and for trials with given samples.

use super::batch::{Interest, View};
use super::code::{CodeError, check_component};
use super::config::{OnFault, PluginSettings, World};
use super::fault::Fault;
use super::figures::PluginFigures;
use super::pool::{Making, Plugin};
use super::push::{Decoded, PushRequest, Undecoded};
use super::record::{Record, RecordedOutput};
use super::runtime::{LinkError, Linked, PluginRuntime};
use super::state::Around;
use super::transforms::{Link, Request, Transforms};
use super::{batch, decoders};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidepool_lifecycle::boxed::BoxFuture;
use tidepool_query::Queries;
use tidepool_runtime::{MemoryPool, RemoteWriteVersion};
use tidepool_store::StoreError;
use wasmtime::component::Component;

/// Maximum size of columns that are printed, in bytes.
const SHOWN_BYTES_MAX: usize = 1 << 30;

pub struct TrialPlugin {
    runtime: PluginRuntime,
    linked: Linked,
    settings: PluginSettings,
}

pub struct Trial {
    plugin: Arc<Plugin>,
    record: Arc<Record>,
}

#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The file is not a component, or cannot be compiled.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The component is made for no world, or for another world than configured.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The plugin does not start, or a call fails.
    #[error(transparent)]
    Start(#[from] Fault),
    /// A transform failed on the samples.
    #[error("{0}")]
    Failed(String),
    /// The given samples are invalid.
    #[error(transparent)]
    Samples(StoreError),
    /// The decoder could not decode the body.
    #[error(transparent)]
    Undecoded(#[from] Undecoded),
    #[error("{0:#}")]
    Runtime(wasmtime::Error),
}

impl TrialPlugin {
    /// Compiles a plugin in this process, without the cache.
    pub fn compile(wasm: &[u8], settings: PluginSettings) -> Result<TrialPlugin, TrialError> {
        check_component(wasm)?;
        let runtime = PluginRuntime::new().map_err(TrialError::Runtime)?;
        let component = Component::new(runtime.engine(), wasm)
            .map_err(|error| CodeError::NoComponent(format!("{error:#}")))?;
        let linked = runtime.link(&component, settings.world)?;
        Ok(TrialPlugin { runtime, linked, settings })
    }

    pub fn world(&self) -> World {
        self.linked.world()
    }

    /// Starts the plugin. A fault of a transform fails the trial. `queries` are for jobs.
    pub fn start(self, queries: Option<Queries>) -> BoxFuture<'static, Result<Trial, TrialError>> {
        Box::pin(async move {
            let TrialPlugin { runtime, linked, mut settings } = self;
            // With `pass`, a fault could not be distinguished from an unchanged batch.
            settings.on_fault = OnFault::Reject;
            let memory = MemoryPool::new(settings.limits.memory_bytes_max);
            let record = Arc::<Record>::default();
            let around = Around::new(queries, Some(Arc::clone(&record)));
            let figures = Arc::<PluginFigures>::default();
            let making = Making { runtime: &runtime, memory: &memory, around, figures };
            Ok(Trial { plugin: Arc::new(Plugin::load(settings, linked, making).await?), record })
        })
    }
}

/// Remote-write bodies with their versions.
pub type Bodies = Vec<(RemoteWriteVersion, Vec<u8>)>;

impl Trial {
    pub fn world(&self) -> World {
        self.plugin.world
    }

    /// Returns the columns that the plugin asks for in addition to labels.
    pub fn interest(&self) -> Vec<&'static str> {
        let all = [(Interest::SAMPLES, "samples"), (Interest::HISTOGRAMS, "histograms")];
        let wanted = all.into_iter().filter(|(flag, _)| self.plugin.interest.contains(*flag));
        wanted.map(|(_, name)| name).collect()
    }

    /// Returns the linear memory of all instances in bytes.
    pub fn memory_bytes(&self) -> u64 {
        AtomicU64::load(&self.plugin.figures.memory_bytes, Relaxed)
    }

    pub fn seconds(&self) -> f64 {
        self.plugin.figures.seconds()
    }

    /// Returns the plugin's output for a remote-write body.
    pub fn transform(
        &self,
        version: RemoteWriteVersion,
        body: Vec<u8>,
    ) -> BoxFuture<'_, Result<Bodies, TrialError>> {
        Box::pin(async move {
            let chain = Transforms { chain: vec![Link::Loaded(Arc::clone(&self.plugin))] };
            let made = chain.apply(Request { version, body: body.into() }).await;
            let made = made.map_err(|error| match error {
                StoreError::Plugin { why, .. } => TrialError::Failed(why),
                other => TrialError::Samples(other),
            })?;
            Ok(made.requests.into_iter().map(|made| (made.version, made.body.to_vec())).collect())
        })
    }

    pub fn observe<'a>(
        &'a self,
        version: RemoteWriteVersion,
        body: &'a [u8],
    ) -> BoxFuture<'a, Result<(), TrialError>> {
        Box::pin(async move {
            let view = View::of(version, body, self.plugin.interest, SHOWN_BYTES_MAX);
            let view = view.map_err(Fault::from)?;
            let seen =
                self.plugin.call(async |instance, time| instance.observe(&view.batch, time).await);
            Ok(seen.await?)
        })
    }

    /// Runs a job once, with the given scheduled time.
    pub fn run_job(&self, scheduled_ms: i64) -> BoxFuture<'_, Result<(), TrialError>> {
        Box::pin(async move {
            let run =
                self.plugin.call(async |instance, time| instance.run(scheduled_ms, time).await);
            Ok(run.await?)
        })
    }

    /// Returns the samples appended and the requests posted since the last call.
    pub fn kept(&self) -> RecordedOutput {
        self.record.take()
    }

    pub fn decode(&self, request: PushRequest) -> BoxFuture<'_, Result<Decoded, TrialError>> {
        Box::pin(async move { Ok(decoders::decode(&self.plugin, request).await?) })
    }
}

/// Formats the rows of a remote-write body, one line each: series, value, milliseconds.
pub fn rows(version: RemoteWriteVersion, body: &[u8]) -> Result<Vec<String>, StoreError> {
    batch::rows(version, body, SHOWN_BYTES_MAX)
}

/// Returns the time of a body's newest float sample; `None` if it has none.
pub fn newest_ms_of(version: RemoteWriteVersion, body: &[u8]) -> Result<Option<i64>, StoreError> {
    batch::newest_ms(version, body, SHOWN_BYTES_MAX)
}

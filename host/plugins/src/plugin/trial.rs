//! A plugin alone, without a server: to check it and to try it on samples.

use super::batch::{Interest, View};
use super::code::{CodeError, check_component};
use super::config::{OnFault, PluginSettings, World};
use super::fault::Fault;
use super::figures::PluginFigures;
use super::pool::{Making, Plugin};
use super::push::{Decoded, PushRequest, Undecoded};
use super::record::{Kept, Record};
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

/// Columns of what is shown.
const SHOWN_BYTES_MAX: usize = 1 << 30;

/// A plugin that can be started.
pub struct TrialPlugin {
    runtime: PluginRuntime,
    linked: Linked,
    settings: PluginSettings,
}

/// A plugin that was started.
pub struct Trial {
    plugin: Arc<Plugin>,
    record: Arc<Record>,
}

/// Why a plugin cannot be tried.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// It is no component, or cannot be compiled.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// It is made for no world, or for another one.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It does not start.
    #[error(transparent)]
    Start(#[from] Fault),
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// The samples are wrong.
    #[error(transparent)]
    Samples(StoreError),
    /// It does not decode the body.
    #[error(transparent)]
    Undecoded(#[from] Undecoded),
    /// The runtime could not be started.
    #[error("{0:#}")]
    Runtime(wasmtime::Error),
}

impl TrialPlugin {
    /// Compiles a plugin in this process.
    pub fn compile(wasm: &[u8], settings: PluginSettings) -> Result<TrialPlugin, TrialError> {
        check_component(wasm)?;
        let runtime = PluginRuntime::new().map_err(TrialError::Runtime)?;
        let component = Component::new(runtime.engine(), wasm)
            .map_err(|error| CodeError::NoComponent(format!("{error:#}")))?;
        let linked = runtime.link(&component, settings.world)?;
        Ok(TrialPlugin { runtime, linked, settings })
    }

    /// Its world.
    pub fn world(&self) -> World {
        self.linked.world()
    }

    /// Starts it with its settings. A failing transform fails the trial; a job works on the store
    /// of these queries.
    pub fn start(self, queries: Option<Queries>) -> BoxFuture<'static, Result<Trial, TrialError>> {
        Box::pin(async move {
            let TrialPlugin { runtime, linked, mut settings } = self;
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

/// Remote-write bodies.
pub type Bodies = Vec<(RemoteWriteVersion, Vec<u8>)>;

impl Trial {
    /// Its world.
    pub fn world(&self) -> World {
        self.plugin.world
    }

    /// The columns that it asks for beside labels.
    pub fn interest(&self) -> Vec<&'static str> {
        let all = [(Interest::SAMPLES, "samples"), (Interest::HISTOGRAMS, "histograms")];
        let wanted = all.into_iter().filter(|(flag, _)| self.plugin.interest.contains(*flag));
        wanted.map(|(_, name)| name).collect()
    }

    /// Linear memory of its instances.
    pub fn memory_bytes(&self) -> u64 {
        AtomicU64::load(&self.plugin.figures.memory_bytes, Relaxed)
    }

    /// Time that it took in all.
    pub fn seconds(&self) -> f64 {
        self.plugin.figures.seconds()
    }

    /// Its output for a remote-write body.
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

    /// Shows it a remote-write body.
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

    /// Runs it once, as if it were this time.
    pub fn run_job(&self, scheduled_ms: i64) -> BoxFuture<'_, Result<(), TrialError>> {
        Box::pin(async move {
            let run =
                self.plugin.call(async |instance, time| instance.run(scheduled_ms, time).await);
            Ok(run.await?)
        })
    }

    /// The samples and requests that it has appended and posted so far.
    pub fn kept(&self) -> Kept {
        self.record.take()
    }

    /// Its result for a body.
    pub fn decode(&self, request: PushRequest) -> BoxFuture<'_, Result<Decoded, TrialError>> {
        Box::pin(async move { Ok(decoders::decode(&self.plugin, request).await?) })
    }
}

/// The rows of a remote-write body, a line each: series, value, milliseconds.
pub fn rows(version: RemoteWriteVersion, body: &[u8]) -> Result<Vec<String>, StoreError> {
    batch::rows(version, body, SHOWN_BYTES_MAX)
}

/// When the newest sample of a remote-write body is; `None` if it has none.
pub fn newest_ms_of(version: RemoteWriteVersion, body: &[u8]) -> Result<Option<i64>, StoreError> {
    batch::newest_ms(version, body, SHOWN_BYTES_MAX)
}

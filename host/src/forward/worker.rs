//! The thread of one destination: a life after the other, each with an engine instance of its own,
//! until it is time to stop.

use super::ForwardError;
use super::client::Client;
use super::config::DestinationConfig;
use super::figures::Figures;
use super::life::{LOOK_EVERY, Life};
use super::needs::Needs;
use super::position::{Position, PositionFile};
use super::sender::Sender;
use super::tail::Tails;
use crate::disk::wal::FORWARD_DIR;
use crate::shutdown::Shutdown;
use crate::store::Store;
use crate::wasm::{Destination, ForwardSettings, Label, RemoteWriteVersion};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// First pause before a worker that failed begins anew; it doubles.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Longest of these pauses; a life that lasted longer has not failed at once.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(60);

/// What a worker works with.
pub(super) struct Parts {
    pub number: u64,
    pub config: DestinationConfig,
    pub external_labels: Vec<Label>,
    /// Memory of the engine instance.
    pub memory_bytes_max: usize,
    pub figures: Arc<Figures>,
    pub needs: Arc<Needs>,
    pub store: Store,
    pub runtime: Handle,
    /// Of the process, and of this destination alone.
    pub shutdown: [Shutdown; 2],
}

/// The thread's state over all of its lives.
pub(super) struct Worker {
    parts: Parts,
    sender: Arc<Sender>,
    file: PositionFile,
    position: Position,
    version: RemoteWriteVersion,
}

impl Worker {
    pub fn new(parts: Parts, client: Client, file: PositionFile, position: Position) -> Worker {
        let sender = Arc::new(Sender {
            client,
            queue: parts.config.queue.clone(),
            figures: Arc::clone(&parts.figures),
            name: parts.config.name.clone(),
        });
        let version = parts.config.version;
        Worker { parts, sender, file, position, version }
    }

    /// Works until it is time to stop. What fails is begun anew from the written position.
    pub fn run(mut self) {
        let Parts { config, .. } = &self.parts;
        let url = shown_url(config);
        tracing::info!(remote_name = config.name, url, "samples are forwarded");
        let mut pause = RESTART_PAUSE;
        loop {
            let begun = Instant::now();
            let stopping = match self.live() {
                Ok(()) => true,
                Err(error) => {
                    let remote_name = &self.parts.config.name;
                    tracing::error!(
                        remote_name, %error,
                        again_in_seconds = pause.as_secs(),
                        "forwarding failed; it goes on from where delivery stood"
                    );
                    let stops = self.parts.is_stopping_within(pause);
                    // Each life reads all series anew: what fails at once is not tried all the time.
                    pause = match begun.elapsed() > RESTART_PAUSE_MAX {
                        true => RESTART_PAUSE,
                        false => (pause * 2).min(RESTART_PAUSE_MAX),
                    };
                    stops
                }
            };
            if stopping {
                return;
            }
        }
    }

    fn live(&mut self) -> Result<(), ForwardError> {
        let Worker { parts, sender, file, position, version } = self;
        while !parts.store.is_ready() {
            if parts.is_stopping_within(LOOK_EVERY) {
                return Ok(());
            }
        }
        let Parts { config, external_labels, store, .. } = &*parts;
        let settings = ForwardSettings {
            external_labels: external_labels.clone(),
            rules: config.rules.clone(),
            exemplars: config.send_exemplars,
            histograms: config.send_native_histograms,
            shards: position.shards.len().max(1) as u32,
        };
        let instance = store.forwarding_instance(parts.memory_bytes_max)?;
        let mut destination = Destination::new(instance, &settings)?;
        destination.resume(&position.shards, &position.gaps)?;
        let tails = Tails::open(store.data(), &position.shards, &mut destination)?;
        let mut life = Life::new(parts, sender, file, version, destination, tails)?;
        let ended = life.work();
        let last = life.last_position();
        drop(life);
        if let Err(error) = &ended {
            tracing::debug!(%error, "a life of forwarding ended");
            // The next one begins where this one's last answer left it.
            if let Some(last) = last {
                *position = last;
            } else {
                let dir = parts.store.data().path().join(FORWARD_DIR);
                if let Ok((opened, Some(read))) = PositionFile::open(&dir, &parts.config.name) {
                    (*file, *position) = (opened, read);
                }
            }
        }
        ended
    }
}

impl Parts {
    /// Waits; gives whether it is time to stop.
    pub fn is_stopping_within(&self, pause: Duration) -> bool {
        let [mut all, mut one] = self.shutdown.clone();
        self.runtime.block_on(async {
            tokio::select! {
                () = all.wait() => true,
                () = one.wait() => true,
                () = tokio::time::sleep(pause) => false,
            }
        })
    }
}

/// The URL without what is secret in it.
pub(super) fn shown_url(config: &DestinationConfig) -> String {
    let mut url = config.url.clone();
    // A URL with a host takes both.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.to_string()
}

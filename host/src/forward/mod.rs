//! Store and forward: what is stored is sent on to other receivers of remote write, and waits here
//! as long as they cannot be reached.
//!
//! ```text
//! wal/, wbl/ ─▶ tail ─▶┌─ the engine's destination ─┐   ┌─▶ sender ─▶ client ─▶ receiver
//!                      │ shard 0 ▒▒▒▒ shard 1 ▒▒ …   │──▶│      one request a shard at a time
//! blocks, head ─▶ backlog ─▶└───────────────────────┘   └─▶ …          │ answered
//!                      ▲ positions ◀── forward/<name>.position ◀────────┘
//! ```
//!
//! Each destination has a thread and an engine instance of its own, and knows nothing of others.
//! Reading order: [`config`], `tail` (the logs), `backlog` (what the logs have no more), `worker`
//! (the thread), `sender` (one request until it is answered), `client` (sockets), `position` (files),
//! `resharding` (how many shards), [`figures`].
//!
//! Invariants: a row is delivered, counted as dropped, or at or behind the written position; what
//! comes twice was on its way when the process ended; rows of a series keep their order.

mod backlog;
mod client;
pub mod config;
pub mod figures;
mod position;
mod resharding;
mod sender;
mod tail;
mod worker;

pub use config::{DestinationConfig, ForwardConfig};

use crate::disk::DiskError;
use crate::disk::wal::{FORWARD_DIR, HeldSegments};
use crate::prom::external_labels::ExternalLabels;
use crate::shutdown::Shutdown;
use crate::store::{Store, StoreError};
use crate::wasm::{CallError, Label, Place, ShardPosition};
use client::{Client, ClientError};
use figures::Figures;
use position::{Position, PositionFile};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::runtime::Handle;
use worker::Worker;

/// Why forwarding cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The files of a destination cannot be used.
    #[error("where delivery to {name} stands cannot be read or written: {source}")]
    Position {
        /// The destination.
        name: String,
        /// What happened.
        source: io::Error,
    },
    /// Certificates or credentials cannot be used.
    #[error("remote write to {name}: {source}")]
    Client {
        /// The destination.
        name: String,
        /// What is wrong.
        source: ClientError,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The engine refused a call, or its instance ended.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All destinations, before there is a store to read.
pub struct Forwarding {
    prepared: Vec<Prepared>,
    figures: Vec<Arc<Figures>>,
    log_bytes_max: u64,
}

struct Prepared {
    config: DestinationConfig,
    client: Client,
    file: PositionFile,
    position: Position,
}

/// The running threads.
pub struct ForwardThreads(Vec<JoinHandle<()>>);

/// Which segments the destinations still need, and whose turn it is to delete the others.
struct Needs {
    held: HeldSegments,
    log_bytes_max: u64,
    /// Of each destination, first segments of both logs.
    first: Vec<[AtomicU32; 2]>,
    deleting: Mutex<()>,
}

impl Needs {
    /// Notes what a destination needs, and deletes what nobody does.
    pub fn note(&self, destination: usize, (ordered, late): (u32, u32)) -> Result<(), DiskError> {
        if let Some(first) = self.first.get(destination) {
            first[0].store(ordered, Relaxed);
            first[1].store(late, Relaxed);
        }
        let least = |log: usize| self.first.iter().map(|f| f[log].load(Relaxed)).min();
        let _one = self.deleting.lock().unwrap_or_else(PoisonError::into_inner);
        self.held.release(least(0).unwrap_or(u32::MAX), least(1).unwrap_or(u32::MAX))
    }

    /// Whether more is held than may be, and a destination that needs this is to blame.
    pub fn is_too_much(&self, (ordered, late): (u32, u32)) -> bool {
        use crate::disk::wal::LogKind;
        let is_held = |log, first| self.held.last(log).is_some_and(|last: u32| first <= last);
        (is_held(LogKind::Ordered, ordered) || is_held(LogKind::Late, late))
            && self.held.bytes() > self.log_bytes_max
    }
}

impl Forwarding {
    /// Reads where delivery stands. A destination that is new begins with what is written from now
    /// on; so this comes before the store is opened, with which a new segment begins.
    pub fn open(config: &ForwardConfig, data_dir: &Path) -> Result<Forwarding, ForwardError> {
        let mut prepared = Vec::new();
        let mut figures = Vec::new();
        for config in &config.destinations {
            let name = config.name.clone();
            let failed = |source| ForwardError::Position { name: name.clone(), source };
            let opened = PositionFile::open(&data_dir.join(FORWARD_DIR), &config.name);
            let (mut file, position) = opened.map_err(failed)?;
            let position = match position {
                Some(position) => position,
                None => {
                    let place = |log| {
                        Ok(Place { segment: next_segment(&data_dir.join(log))?, record: 0, row: 0 })
                    };
                    let (ordered, late) =
                        (place("wal").map_err(failed)?, place("wbl").map_err(failed)?);
                    let new = ShardPosition {
                        ordered,
                        late,
                        store_window_ms: i64::MIN,
                        store_labels: Vec::new(),
                        store_time_ms: i64::MIN,
                    };
                    let shards = vec![new; config.queue.min_shards as usize];
                    file.write(&shards, None).and_then(|()| file.sync()).map_err(failed)?;
                    Position { shards, gaps: Vec::new() }
                }
            };
            let client = Client::open(config)
                .map_err(|source| ForwardError::Client { name: config.name.clone(), source })?;
            figures.push(Arc::new(Figures::new(config)));
            prepared.push(Prepared { config: config.clone(), client, file, position });
        }
        Ok(Forwarding { prepared, figures, log_bytes_max: config.log_bytes_max })
    }

    /// What is counted, by destination.
    pub fn figures(&self) -> Vec<Arc<Figures>> {
        self.figures.clone()
    }

    /// Starts the threads, which end at the stop signal.
    pub fn spawn(
        self,
        store: &Store,
        external_labels: &ExternalLabels,
        shutdown: &Shutdown,
    ) -> io::Result<ForwardThreads> {
        let held = HeldSegments::open(store.data());
        if self.prepared.is_empty() {
            // Nobody reads what an earlier life has kept.
            if let Err(error) = held.clear() {
                tracing::warn!(%error, "log segments that were kept for forwarding take space");
            }
            return Ok(ForwardThreads(Vec::new()));
        }
        let first = self.prepared.iter().map(|prepared| {
            let (ordered, late) = tail::segments(&prepared.position.shards);
            [AtomicU32::new(ordered), AtomicU32::new(late)]
        });
        let needs = Arc::new(Needs {
            held,
            log_bytes_max: self.log_bytes_max,
            first: first.collect(),
            deleting: Mutex::new(()),
        });
        let label = |(name, value): (&str, &str)| Label { name: name.into(), value: value.into() };
        let labels: Vec<Label> = external_labels.iter().map(label).collect();
        let mut threads = Vec::new();
        for ((at, prepared), figures) in self.prepared.into_iter().enumerate().zip(self.figures) {
            let Prepared { config, client, file, position } = prepared;
            let worker = Worker::new(
                worker::Parts {
                    number: at,
                    config,
                    external_labels: labels.clone(),
                    figures,
                    needs: Arc::clone(&needs),
                    store: store.clone(),
                    runtime: Handle::current(),
                    shutdown: shutdown.clone(),
                },
                client,
                file,
                position,
            );
            let thread = std::thread::Builder::new().name(format!("forward-{at}"));
            threads.push(thread.spawn(move || worker.run())?);
        }
        Ok(ForwardThreads(threads))
    }
}

impl ForwardThreads {
    /// Waits for the end of all.
    pub fn join(self) {
        for thread in self.0 {
            if thread.join().is_err() {
                tracing::error!("a thread that forwards samples panicked");
            }
        }
    }
}

/// The number that the next life's first segment gets in a log.
fn next_segment(dir: &Path) -> io::Result<u32> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut next = 0;
    for entry in entries {
        let name = entry?.file_name();
        let name = name.to_str().unwrap_or_default();
        let number = name.strip_prefix("checkpoint.").unwrap_or(name).parse::<u32>();
        next = next.max(number.map_or(0, |number| number.saturating_add(1)));
    }
    Ok(next)
}

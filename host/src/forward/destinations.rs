//! All destinations: where delivery stands at the start, a thread for each, and what a changed
//! configuration makes of them.

use super::ForwardError;
use super::client::Client;
use super::config::{DestinationConfig, ForwardConfig};
use super::figures::{Figures, ForwardFigures};
use super::needs::Needs;
use super::position::{Position, PositionFile};
use super::tail::{end_of, segments};
use super::tls::files_checksum;
use super::worker::{Parts, Worker};
use crate::disk::wal::{FORWARD_DIR, HeldSegments, LogKind};
use crate::prom::external_labels::ExternalLabels;
use crate::shutdown::{Shutdown, ShutdownTrigger};
use crate::store::Store;
use crate::wasm::{Label, Place};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::runtime::Handle;

/// All destinations, before there is a store to read.
pub struct Forwarding {
    prepared: Vec<Prepared>,
    config: ForwardConfig,
    figures: ForwardFigures,
}

/// One that can be started.
struct Prepared {
    config: DestinationConfig,
    client: Client,
    file: PositionFile,
    position: Position,
}

/// All destinations while the store runs; clones share them.
#[derive(Clone)]
pub struct Destinations(Arc<Shared>);

struct Shared {
    store: Store,
    runtime: Handle,
    shutdown: Shutdown,
    needs: Arc<Needs>,
    figures: ForwardFigures,
    memory_bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Vec<Running>,
    /// Number of the next one.
    next: u64,
    has_ended: bool,
}

struct Running {
    number: u64,
    config: DestinationConfig,
    labels: Vec<Label>,
    files_checksum: u32,
    figures: Arc<Figures>,
    stop: ShutdownTrigger,
    thread: JoinHandle<()>,
}

impl Forwarding {
    /// Reads where delivery stands. A destination that is new begins with what is written from now
    /// on; so this comes before the store is opened, with which a new segment begins.
    pub fn open(config: ForwardConfig, data_dir: &Path) -> Result<Forwarding, ForwardError> {
        let dir = data_dir.join(FORWARD_DIR);
        let mut prepared = Vec::new();
        for config in &config.destinations {
            let client = open_client(config)?;
            let now = || {
                let place = |log| -> io::Result<Place> {
                    Ok(Place { segment: next_segment(&data_dir.join(log))?, record: 0, row: 0 })
                };
                Ok((place("wal")?, place("wbl")?))
            };
            prepared.push(Prepared::open(config, client, &dir, now)?);
        }
        forget_others(&dir, &config);
        Ok(Forwarding { prepared, config, figures: ForwardFigures::default() })
    }

    /// What is counted, once they are started.
    pub fn figures(&self) -> ForwardFigures {
        self.figures.clone()
    }

    /// Starts the threads, which end at the stop signal.
    pub fn spawn(
        self,
        store: &Store,
        labels: &ExternalLabels,
        shutdown: &Shutdown,
    ) -> Result<Destinations, ForwardError> {
        let Forwarding { prepared, config, figures } = self;
        let needs = Needs::new(HeldSegments::open(store.data()), config.log_bytes_max);
        let destinations = Destinations(Arc::new(Shared {
            store: store.clone(),
            runtime: Handle::current(),
            shutdown: shutdown.clone(),
            needs: Arc::new(needs),
            figures,
            memory_bytes_max: config.memory_bytes_max,
            state: Mutex::default(),
        }));
        let shared = &*destinations.0;
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let labels = labels_of(labels);
        for prepared in prepared {
            shared.start(&mut state, prepared, &labels)?;
        }
        if state.running.is_empty() {
            shared.hold_nothing();
        }
        shared.show(&state, &config);
        drop(state);
        Ok(destinations)
    }
}

impl Prepared {
    /// Where an earlier life left off, or as `now` says.
    fn open(
        config: &DestinationConfig,
        client: Client,
        dir: &Path,
        now: impl FnOnce() -> Result<(Place, Place), io::Error>,
    ) -> Result<Prepared, ForwardError> {
        let failed = |source| ForwardError::Position { name: config.name.clone(), source };
        let (mut file, position) = PositionFile::open(dir, &config.name).map_err(failed)?;
        let position = match position {
            Some(position) => position,
            None => {
                let (ordered, late) = now().map_err(failed)?;
                let position = Position::at(ordered, late, config.queue.min_shards);
                file.write(&position.shards, None).and_then(|()| file.sync()).map_err(failed)?;
                position
            }
        };
        Ok(Prepared { config: config.clone(), client, file, position })
    }
}

impl Destinations {
    /// Makes the destinations those of a configuration, and gives whether any is another one than
    /// before. Those that are as they were go on; one that is changed goes on where it stood; one that
    /// is new begins with what is written from now on; one that is gone is forgotten. Nothing changes
    /// if a new one cannot be used.
    pub fn reload(
        &self,
        config: &ForwardConfig,
        labels: &ExternalLabels,
    ) -> Result<bool, ForwardError> {
        let shared = &*self.0;
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.has_ended {
            return Ok(false);
        }
        shared.needs.set_log_bytes_max(config.log_bytes_max);
        let labels = labels_of(labels);
        let stays = |running: &Running| {
            config.destinations.iter().any(|config| running.is_as(config, &labels))
        };
        let mut clients = Vec::new();
        for config in &config.destinations {
            if !state.running.iter().any(|running| running.is_as(config, &labels)) {
                clients.push((config, open_client(config)?));
            }
        }
        let all = std::mem::take(&mut state.running);
        let (same, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(stays);
        state.running = same;
        let changes = !gone.is_empty() || !clients.is_empty();
        let old = shared.end(gone);
        let started = shared.start_all(&mut state, clients, &labels);
        // Only now: who goes on under the same name needs what it did not deliver.
        for number in old {
            shared.forget(number);
        }
        forget_others(&shared.store.data().path().join(FORWARD_DIR), config);
        if state.running.is_empty() {
            shared.hold_nothing();
        }
        shared.show(&state, config);
        started.map(|()| changes)
    }

    /// Waits for the end of all, which the stop signal has told to.
    pub fn join(&self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.has_ended = true;
        let running = std::mem::take(&mut state.running);
        running.into_iter().for_each(Running::join);
    }
}

impl Shared {
    fn start_all(
        &self,
        state: &mut State,
        clients: Vec<(&DestinationConfig, Client)>,
        labels: &[Label],
    ) -> Result<(), ForwardError> {
        let data = self.store.data();
        let dir = data.path().join(FORWARD_DIR);
        if !clients.is_empty() {
            // Before it is looked where the log ends.
            data.holding().turn_on();
        }
        let mut started = Ok(());
        for (config, client) in clients {
            let now = || {
                let end = |log| end_of(data, log).map_err(io::Error::other);
                Ok((end(LogKind::Ordered)?, end(LogKind::Late)?))
            };
            let one = Prepared::open(config, client, &dir, now)
                .and_then(|prepared| self.start(state, prepared, labels));
            // The others are started all the same.
            started = started.and(one);
        }
        started
    }

    fn start(
        &self,
        state: &mut State,
        prepared: Prepared,
        labels: &[Label],
    ) -> Result<(), ForwardError> {
        let Prepared { config, client, file, position } = prepared;
        let number = state.next;
        state.next += 1;
        self.needs.add(number, segments(&position.shards));
        let figures = Arc::new(Figures::new(&config));
        let (stop, stopped) = Shutdown::manual();
        let parts = Parts {
            number,
            config: config.clone(),
            external_labels: labels.to_vec(),
            memory_bytes_max: self.memory_bytes_max,
            figures: Arc::clone(&figures),
            needs: Arc::clone(&self.needs),
            store: self.store.clone(),
            runtime: self.runtime.clone(),
            shutdown: [self.shutdown.clone(), stopped],
        };
        let files_checksum = files_checksum(&config.tls);
        let worker = Worker::new(parts, client, file, position);
        let thread = std::thread::Builder::new().name(format!("forward-{number}"));
        let thread = thread.spawn(move || worker.run()).map_err(ForwardError::Thread)?;
        let labels = labels.to_vec();
        state.running.push(Running {
            number,
            config,
            labels,
            files_checksum,
            figures,
            stop,
            thread,
        });
        Ok(())
    }

    /// Ends some, and gives their numbers.
    fn end(&self, gone: Vec<Running>) -> Vec<u64> {
        let mut threads = Vec::new();
        for Running { number, config, stop, thread, .. } in gone {
            tracing::info!(remote_name = config.name, "samples are not forwarded there any more");
            stop.stop();
            threads.push((number, thread));
        }
        let end = |(number, thread)| {
            join(thread);
            number
        };
        threads.into_iter().map(end).collect()
    }

    fn forget(&self, number: u64) {
        if let Err(error) = self.needs.forget(number) {
            tracing::warn!(%error, "log segments that were kept for forwarding take space");
        }
    }

    /// Nobody reads what was kept, nor what would be.
    fn hold_nothing(&self) {
        self.store.data().holding().turn_off();
        if let Err(error) = HeldSegments::open(self.store.data()).clear() {
            tracing::warn!(%error, "log segments that were kept for forwarding take space");
        }
    }

    /// Shows the figures in the configuration's order.
    fn show(&self, state: &State, config: &ForwardConfig) {
        let of = |config: &DestinationConfig| {
            let mut running = state.running.iter();
            running.find(|running| running.config.name == config.name)
        };
        let all = config.destinations.iter().filter_map(of);
        self.figures.set(all.map(|running| Arc::clone(&running.figures)).collect());
    }
}

impl Running {
    /// Whether it is configured so, and its files are as they were.
    fn is_as(&self, config: &DestinationConfig, labels: &[Label]) -> bool {
        let labels_of =
            |labels: &[Label]| labels.iter().map(|l| (l.name.clone(), l.value.clone())).collect();
        let (was, is): (Vec<_>, Vec<_>) = (labels_of(&self.labels), labels_of(labels));
        self.config.is_same(config)
            && was == is
            && self.files_checksum == files_checksum(&config.tls)
    }

    fn join(self) {
        join(self.thread);
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread that forwards samples panicked");
    }
}

fn open_client(config: &DestinationConfig) -> Result<Client, ForwardError> {
    let failed = |source| ForwardError::Client { name: config.name.clone(), source };
    Client::open(config).map_err(failed)
}

fn labels_of(labels: &ExternalLabels) -> Vec<Label> {
    let label = |(name, value): (&str, &str)| Label { name: name.into(), value: value.into() };
    labels.iter().map(label).collect()
}

/// Removes where delivery to others stood. If that fails it is tried again at the next start.
fn forget_others(dir: &Path, config: &ForwardConfig) {
    let names: Vec<&str> = config.destinations.iter().map(|config| config.name.as_str()).collect();
    if let Err(error) = PositionFile::keep_only(dir, &names) {
        tracing::warn!(%error, "files of destinations that are gone were not removed");
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

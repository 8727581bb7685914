//! Manages all destinations: their positions at the start, a thread for each, and changes of the
//! configuration.

use super::ForwardError;
use super::client::Client;
use super::config::{DestinationConfig, ForwardConfig};
use super::figures::{Figures, ForwardFigures};
use super::needs::Needs;
use super::position::{Position, PositionFile};
use super::resources::Resources;
use super::tail::{end_of, segments};
use super::worker::{DeliveryState, Start, join, run, settings};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tidepool_disk::wal::{FORWARD_DIR, HeldSegments, LogKind};
use tidepool_lifecycle::shutdown::{Shutdown, ShutdownTrigger};
use tidepool_protocol::prom::external_labels::ExternalLabels;
use tidepool_runtime::{CallError, Destination, Label, Place};
use tidepool_store::Store;
use tokio::runtime::Handle;

/// All destinations, prepared before the store is opened.
pub struct Forwarding {
    prepared: Vec<Prepared>,
    config: ForwardConfig,
    figures: ForwardFigures,
}

/// A destination that is ready to be started.
struct Prepared {
    config: DestinationConfig,
    client: Client,
    stand: DeliveryState,
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
    /// Number that the next destination gets.
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
    thread: JoinHandle<Option<DeliveryState>>,
}

/// A destination that was asked to stop.
struct Stopped {
    number: u64,
    name: String,
    figures: Arc<Figures>,
    thread: JoinHandle<Option<DeliveryState>>,
}

/// A destination whose thread waits for the position at which delivery starts.
struct Waiting {
    running: Running,
    start: Sender<Start>,
}

impl Forwarding {
    /// Reads the positions. A new destination starts at the end of the log. The end is read before
    /// the store is opened, because opening starts a new segment.
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
            let stand = open_stand(config, &dir, now)?;
            prepared.push(Prepared { config: config.clone(), client, stand });
        }
        Ok(Forwarding { prepared, config, figures: ForwardFigures::default() })
    }

    /// Returns the figures of the destinations. They are empty until `spawn`.
    pub fn figures(&self) -> ForwardFigures {
        self.figures.clone()
    }

    /// Starts a thread for each destination. The threads end at the stop signal.
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
        for Prepared { config, client, stand } in prepared {
            // Checked here, so that a configuration that the engine refuses fails the start.
            shared.try_out(&config, &labels)?;
            let waiting = shared.spawn(&mut state, &config, client, &labels)?;
            shared.start(&mut state, waiting, stand);
        }
        // Dropped last: a start that fails leaves all positions as they were.
        shared.drop_others(&config);
        if state.running.is_empty() {
            shared.hold_nothing();
        }
        shared.show(&state, &config);
        drop(state);
        Ok(destinations)
    }
}

impl Destinations {
    /// Applies a new configuration, and returns whether any destination has changed. An unchanged
    /// destination is left running, a changed one continues from its position, a new one starts at
    /// the end of the log, and a removed one is dropped. Nothing changes if a new destination is
    /// unusable.
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
        let labels = labels_of(labels);
        let stays = |running: &Running| {
            config.destinations.iter().any(|config| running.is_as(config, &labels))
        };
        let wanted = config.destinations.iter();
        let is_other =
            |config: &&DestinationConfig| !state.running.iter().any(|r| r.is_as(config, &labels));
        let wanted: Vec<&DestinationConfig> = wanted.filter(is_other).collect();
        let ready = shared.prepare(&mut state, &wanted, &labels).inspect_err(|_| {
            shared.drop_others_than(&state);
        })?;
        // Nothing can fail from here on, so running destinations may be stopped.
        shared.needs.set_log_bytes_max(config.log_bytes_max);
        let all = std::mem::take(&mut state.running);
        let (same, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(stays);
        state.running = same;
        let changes = !gone.is_empty() || !ready.is_empty();
        shared.replace(&mut state, gone, ready);
        shared.drop_others(config);
        if state.running.is_empty() {
            shared.hold_nothing();
        }
        shared.show(&state, config);
        Ok(changes)
    }

    /// Waits until all threads have ended, after the stop signal.
    pub fn join(&self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.has_ended = true;
        let running = std::mem::take(&mut state.running);
        for Running { thread, .. } in running {
            join(thread);
        }
    }
}

impl Shared {
    /// Does everything that can fail while the current destinations still run: makes a thread for
    /// each wanted destination, and opens the position of each new destination.
    fn prepare(
        &self,
        state: &mut State,
        wanted: &[&DestinationConfig],
        labels: &[Label],
    ) -> Result<Vec<(Waiting, Option<DeliveryState>)>, ForwardError> {
        let data = self.store.data();
        let mut ready = Vec::new();
        for config in wanted {
            let client = open_client(config)?;
            self.try_out(config, labels)?;
            let is_new = state.running.iter().all(|running| running.config.name != config.name);
            let stand = match is_new {
                false => None,
                true => {
                    // Before the end is read, so that no segment from there on is deleted.
                    data.holding().turn_on();
                    let now = || {
                        let end = |log| end_of(data, log).map_err(io::Error::other);
                        Ok((end(LogKind::InOrder)?, end(LogKind::OutOfOrder)?))
                    };
                    Some(open_stand(config, &data.path().join(FORWARD_DIR), now)?)
                }
            };
            ready.push((self.spawn(state, config, client, labels)?, stand));
        }
        Ok(ready)
    }

    /// Checks that the engine can work with a destination's configuration.
    fn try_out(&self, config: &DestinationConfig, labels: &[Label]) -> Result<(), ForwardError> {
        let name = &config.name;
        let instance = self.store.forwarding_instance(self.memory_bytes_max);
        let instance = instance.map_err(|error| ForwardError::from(error).of(name))?;
        let settings = settings(config, labels, config.queue.min_shards as usize);
        let made = Destination::new(instance, &settings);
        let tried = made.and_then(|mut destination| destination.pending().map(drop));
        tried.map_err(|source| match source {
            CallError::Memory(_) => ForwardError::Memory { name: name.clone() },
            source => ForwardError::Unusable { name: name.clone(), source },
        })
    }

    /// Makes a thread that waits for the position at which delivery starts.
    fn spawn(
        &self,
        state: &mut State,
        config: &DestinationConfig,
        client: Client,
        labels: &[Label],
    ) -> Result<Waiting, ForwardError> {
        let number = state.next;
        state.next += 1;
        let figures = Arc::new(Figures::new(config));
        let (stop, stopped) = Shutdown::manual();
        let parts = Resources {
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
        let (start, started) = channel();
        let thread = std::thread::Builder::new().name(format!("forward-{number}"));
        // A thread that is never given a position ends when the sender is dropped.
        let thread = thread.spawn(move || run(parts, client, started.recv().ok()?));
        let running = Running {
            number,
            config: config.clone(),
            labels: labels.to_vec(),
            files_checksum: config.http.files_checksum(),
            figures,
            stop,
            thread: thread.map_err(ForwardError::Thread)?,
        };
        Ok(Waiting { running, start })
    }

    /// Starts a destination at its position.
    fn start(&self, state: &mut State, waiting: Waiting, stand: DeliveryState) {
        let Waiting { running, start } = waiting;
        self.needs.add(running.number, segments(&stand.position.shards));
        // The send fails only if the thread has ended; then no one needs the position.
        let _ = start.send(Start::At(Box::new(stand)));
        state.running.push(running);
    }

    /// Stops `gone` and starts `ready`; a changed destination continues at its old position.
    fn replace(
        &self,
        state: &mut State,
        gone: Vec<Running>,
        ready: Vec<(Waiting, Option<DeliveryState>)>,
    ) {
        let mut gone: Vec<Stopped> = gone.into_iter().map(Running::stop).collect();
        for (waiting, stand) in ready {
            let name = &waiting.running.config.name;
            let before = gone.iter().position(|gone| gone.name == *name);
            match (stand, before.map(|at| gone.swap_remove(at))) {
                (Some(stand), _) => self.start(state, waiting, stand),
                (None, Some(Stopped { number, thread, .. })) => {
                    let Waiting { running, start } = waiting;
                    // The log keeps its segments until the thread has written the last position.
                    self.needs.add_as(running.number, number);
                    let _ = start.send(Start::Behind(thread, number));
                    state.running.push(running);
                }
                // Unreachable: `prepare` omits the position only of a running destination.
                (None, None) => {}
            }
        }
        for Stopped { number, name: remote_name, figures, thread } in gone {
            let samples = figures.pending.load(Relaxed) + figures.gap_rows.load(Relaxed);
            tracing::info!(remote_name, samples, "forwarding to a removed destination stopped");
            // Joined first: a running thread would record its needs again.
            join(thread);
            self.drop_destination(number);
        }
    }

    fn drop_destination(&self, number: u64) {
        if let Err(error) = self.needs.drop_destination(number) {
            tracing::warn!(%error, "could not delete WAL segments kept for forwarding");
        }
    }

    /// Removes and counts the positions of destinations that are not configured. A failure is
    /// retried at the next start.
    fn drop_others(&self, config: &ForwardConfig) {
        let dir = self.store.data().path().join(FORWARD_DIR);
        match PositionFile::keep_only(&dir, &names(config)) {
            Ok(gone) => {
                for remote_name in gone {
                    self.figures.count_dropped_position();
                    tracing::warn!(
                        remote_name,
                        "position of a destination that is no longer configured removed; its \
                         backlog is not sent. A destination without `name` becomes another one \
                         when its URL changes: to keep the position, set this name first"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(%error, "could not delete files of removed destinations");
            }
        }
    }

    /// Removes position files of new destinations that could not be started.
    fn drop_others_than(&self, state: &State) {
        let destinations = state.running.iter().map(|running| running.config.clone()).collect();
        let config = ForwardConfig { destinations, ..ForwardConfig::default() };
        let dir = self.store.data().path().join(FORWARD_DIR);
        if let Err(error) = PositionFile::keep_only(&dir, &names(&config)) {
            tracing::warn!(%error, "could not delete files of removed destinations");
        }
        if state.running.is_empty() {
            self.hold_nothing();
        }
    }

    /// Deletes the segments kept for forwarding, and stops keeping segments: no one reads them.
    fn hold_nothing(&self) {
        self.store.data().holding().turn_off();
        if let Err(error) = HeldSegments::open(self.store.data()).clear() {
            tracing::warn!(%error, "could not delete WAL segments kept for forwarding");
        }
    }

    /// Publishes the figures in the order of the configuration.
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
    /// Returns whether the configuration, its files and the external labels are unchanged.
    fn is_as(&self, config: &DestinationConfig, labels: &[Label]) -> bool {
        let labels_of =
            |labels: &[Label]| labels.iter().map(|l| (l.name.clone(), l.value.clone())).collect();
        let (was, is): (Vec<_>, Vec<_>) = (labels_of(&self.labels), labels_of(labels));
        self.config.is_same(config)
            && was == is
            && self.files_checksum == config.http.files_checksum()
    }

    fn stop(self) -> Stopped {
        let Running { number, config, figures, stop, thread, .. } = self;
        stop.stop();
        Stopped { number, name: config.name, figures, thread }
    }
}

/// Opens the position of an earlier run. Without one, `now` gives the ends of the two logs.
fn open_stand(
    config: &DestinationConfig,
    dir: &Path,
    now: impl FnOnce() -> Result<(Place, Place), io::Error>,
) -> Result<DeliveryState, ForwardError> {
    let failed = |source| ForwardError::Position { name: config.name.clone(), source };
    let (mut file, position) = PositionFile::open(dir, &config.name).map_err(failed)?;
    let position = match position {
        Some(position) => position,
        None => {
            let (in_order, out_of_order) = now().map_err(failed)?;
            let position = Position::at(in_order, out_of_order, config.queue.min_shards);
            // Synced at once: after a crash, a later start position would skip samples.
            let written = file.write(&position.shards, None, None).and_then(|()| file.sync());
            written.map_err(failed)?;
            position
        }
    };
    Ok(DeliveryState { file, position })
}

fn open_client(config: &DestinationConfig) -> Result<Client, ForwardError> {
    let failed = |source| ForwardError::Client { name: config.name.clone(), source };
    Client::open(config).map_err(failed)
}

fn labels_of(labels: &ExternalLabels) -> Vec<Label> {
    let label = |(name, value): (&str, &str)| Label { name: name.into(), value: value.into() };
    labels.iter().map(label).collect()
}

fn names(config: &ForwardConfig) -> Vec<&str> {
    config.destinations.iter().map(|config| config.name.as_str()).collect()
}

/// Returns the number of the segment that opening the store will start in a log.
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

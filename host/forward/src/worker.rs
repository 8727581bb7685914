//! The thread of one destination. It makes delivery runs one after the other, each with its own
//! engine instance, until it is stopped.

use super::ForwardError;
use super::client::Client;
use super::config::DestinationConfig;
use super::delivery::Delivery;
use super::housekeeper::stored_ms;
use super::position::{Position, PositionFile};
use super::resources::{LOOK_EVERY, Resources, TIDY_EVERY};
use super::sender::Sender;
use super::tail::{Tails, bytes_behind, segments};
use super::version::Negotiated;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidepool_disk::wal::FORWARD_DIR;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::{Destination, ForwardSettings, Label, Place};

/// Pause before a failed run is restarted. It doubles with each further failure.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Maximum of that pause. After a run that lasted longer, the pause starts at the minimum again.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(60);

/// The position file and its content. A changed destination's new worker receives them.
pub(super) struct DeliveryState {
    pub file: PositionFile,
    pub position: Position,
}

/// Source of the position at which a worker starts.
pub(super) enum Start {
    /// The position is already known.
    At(Box<DeliveryState>),
    /// The position at which another worker ends: its thread, which was asked to stop, and number.
    Behind(JoinHandle<Option<DeliveryState>>, u64),
}

/// State of the thread that outlives its runs.
struct Worker {
    parts: Resources,
    sender: Arc<Sender>,
    stand: DeliveryState,
    version: Negotiated,
    /// Time at which the thread started, by the node's clock.
    begun_ms: i64,
}

/// Works until a stop signal, and returns the position at that time.
pub(super) fn run(parts: Resources, client: Client, start: Start) -> Option<DeliveryState> {
    // A name derived from the URL tells people nothing, so the span has the URL. The level is that
    // of errors, so that the span is shown at every log level.
    let _span = tracing::error_span!("forwarding", url = %parts.config.url).entered();
    let stand = begin(&parts, start)?;
    let sender = Arc::new(Sender {
        client,
        queue: parts.config.queue.clone(),
        figures: Arc::clone(&parts.figures),
        name: parts.config.name.clone(),
        has_counted: AtomicBool::new(false),
    });
    let version = Negotiated::new(parts.config.version);
    Some(Worker { parts, sender, stand, version, begun_ms: system_now_ms() }.run())
}

/// Waits for the worker before this one, if there is any; returns `None` if a stop signal arrives
/// before its position is known.
fn begin(parts: &Resources, start: Start) -> Option<DeliveryState> {
    let (thread, number) = match start {
        Start::At(stand) => return Some(*stand),
        Start::Behind(thread, number) => (thread, number),
    };
    let mut stand = join(thread);
    while stand.is_none() {
        let dir = parts.store.data().path().join(FORWARD_DIR);
        match PositionFile::open(&dir, &parts.config.name) {
            Ok((file, position)) => {
                let position = position.unwrap_or_else(Position::oldest);
                stand = Some(DeliveryState { file, position });
            }
            Err(error) => {
                let remote_name = &parts.config.name;
                tracing::error!(remote_name, %error, "could not read the delivery position");
                if parts.is_stopping_within(RESTART_PAUSE) {
                    return None;
                }
            }
        }
    }
    let stand = stand?;
    // Replaced only now: until here the needs of the worker before this one were kept.
    parts.needs.add(parts.number, segments(&stand.position.shards));
    if let Err(error) = parts.needs.drop_destination(number) {
        tracing::warn!(%error, "could not delete WAL segments kept for forwarding");
    }
    Some(stand)
}

/// Waits until a worker's thread has ended, and returns its position.
pub(super) fn join(thread: JoinHandle<Option<DeliveryState>>) -> Option<DeliveryState> {
    thread.join().unwrap_or_else(|_| {
        tracing::error!("a thread that forwards samples panicked");
        None
    })
}

/// Returns the settings of a destination's engine instance.
pub(super) fn settings(
    config: &DestinationConfig,
    labels: &[Label],
    shards: usize,
) -> ForwardSettings {
    ForwardSettings {
        external_labels: labels.to_vec(),
        rules: config.rules.clone(),
        exemplars: config.send_exemplars,
        histograms: config.send_native_histograms,
        shards: shards.max(1) as u32,
    }
}

impl Worker {
    /// Works until a stop signal. After a failure, a new run starts from the position.
    fn run(mut self) -> DeliveryState {
        tracing::info!(remote_name = self.parts.config.name, "forwarding started");
        let mut pause = RESTART_PAUSE;
        while !self.parts.is_stopping_within(Duration::ZERO) {
            let begun = Instant::now();
            let Err(error) = self.live() else { break };
            let remote_name = &self.parts.config.name;
            tracing::error!(
                remote_name, %error,
                again_in_seconds = pause.as_secs(),
                "forwarding failed; restarting from the delivery position"
            );
            // Each run reads all series again, so a run that fails at once is retried after a
            // pause.
            self.stand_by(pause);
            pause = match begun.elapsed() > RESTART_PAUSE_MAX {
                true => RESTART_PAUSE,
                false => (pause * 2).min(RESTART_PAUSE_MAX),
            };
        }
        self.stand
    }

    fn live(&mut self) -> Result<(), ForwardError> {
        let Worker { parts, sender, stand, version, .. } = self;
        while !parts.store.is_ready() {
            if parts.is_stopping_within(LOOK_EVERY) {
                return Ok(());
            }
        }
        let DeliveryState { file, position } = stand;
        let Resources { config, external_labels, store, .. } = &*parts;
        let named = |error: ForwardError| error.of(&config.name);
        let settings = settings(config, external_labels, position.shards.len());
        let instance = store.forwarding_instance(parts.memory_bytes_max);
        let instance = instance.map_err(|error| named(error.into()))?;
        let destination = Destination::new(instance, &settings);
        let mut destination = destination.map_err(|error| named(error.into()))?;
        let resumed = destination.resume(&position.shards, &position.gaps);
        resumed.map_err(|error| named(error.into()))?;
        let tails = Tails::open(store.data(), &position.shards, &mut destination).map_err(named)?;
        let delivered_ms = position.delivered_ms;
        let run = Delivery::new(parts, sender, file, version, destination, tails, delivered_ms);
        let mut run = run.map_err(named)?;
        let ended = run.work();
        let last = run.last_position();
        drop(run);
        // The next run starts at the position after this run's last answer.
        match last {
            Some(last) => *position = last,
            // The instance has failed, so its position is lost; the file has the last one written.
            None => {
                let dir = parts.store.data().path().join(FORWARD_DIR);
                if let Ok((opened, Some(read))) = PositionFile::open(&dir, &config.name) {
                    (*file, *position) = (opened, read);
                }
            }
        }
        ended.map_err(named)
    }

    /// Waits for `pause` or a stop signal. Meanwhile updates the figures, and keeps the log within
    /// its bound.
    fn stand_by(&mut self, pause: Duration) {
        let until = Instant::now() + pause;
        loop {
            self.show_stand();
            self.bound_log();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.parts.is_stopping_within(left.min(TIDY_EVERY)) {
                return;
            }
        }
    }

    /// Updates the figures that can be read without an engine instance.
    fn show_stand(&mut self) {
        let Resources { store, runtime, figures, .. } = &self.parts;
        let Position { shards, delivered_ms, .. } = &mut self.stand.position;
        if let Some((oldest_ms, newest_ms)) =
            runtime.block_on(stored_ms(store, delivered_ms.is_none()))
        {
            figures.newest_ms.store(newest_ms, Relaxed);
            // Nothing was delivered yet, so the lag is measured from the oldest sample.
            delivered_ms.get_or_insert(oldest_ms.min(self.begun_ms));
        }
        figures.delivered_ms.store(delivered_ms.unwrap_or(0), Relaxed);
        figures.bytes_left.store(bytes_behind(store.data(), shards), Relaxed);
        figures.segment.store(u64::from(segments(shards).0), Relaxed);
        figures.pending.store(0, Relaxed);
        figures.shards.store(shards.len() as u64, Relaxed);
    }

    /// Drops the oldest kept segments beyond the bound. Without an engine instance, their rows
    /// cannot be moved to a gap, the list of ranges to read from the store.
    fn bound_log(&mut self) {
        let Resources { number, config, needs, figures, .. } = &self.parts;
        let DeliveryState { file, position } = &mut self.stand;
        let remote_name = &config.name;
        let needed = segments(&position.shards);
        let (first, bytes) = match needs.is_too_much(needed) {
            true => needs.within_bound(needed),
            false => (needed, 0),
        };
        if first != needed {
            for shard in &mut position.shards {
                shard.in_order = not_before(shard.in_order, first.0);
                shard.out_of_order = not_before(shard.out_of_order, first.1);
            }
            figures.log_bytes_dropped.fetch_add(bytes, Relaxed);
            tracing::error!(
                remote_name,
                bytes,
                "forwarding cannot start, and its WAL segments exceed --remote-write-log-size: \
                 the oldest are dropped unsent"
            );
            // Written first: the old position refers to the segments that are deleted below.
            if let Err(error) = file.write(&position.shards, None, position.delivered_ms) {
                tracing::error!(remote_name, %error, "could not write the delivery position");
                return;
            }
        }
        if let Err(error) = needs.note(*number, first, None) {
            tracing::warn!(%error, "could not delete WAL segments kept for forwarding");
        }
    }
}

/// Returns `place`, or the beginning of `segment` if the place is in an earlier segment.
fn not_before(place: Place, segment: u32) -> Place {
    match place.segment < segment {
        true => Place { segment, record: 0, row: 0 },
        false => place,
    }
}

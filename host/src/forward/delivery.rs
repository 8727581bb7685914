//! What a destination's thread does until something fails: it reads, hands requests to senders, and
//! writes down where delivery stands after each answer. It waits for nobody but the engine and its own
//! files.

use super::ForwardError;
use super::backlog::{Pace, Window};
use super::needs::Needed;
use super::position::{Position, PositionFile};
use super::progress::Progress;
use super::resharding::Resharding;
use super::sender::{Outcome, Sender};
use super::tail::{Tails, segments};
use super::version::Negotiated;
use super::worker::Parts;
use crate::disk::SyncPolicy;
use crate::store::system_now_ms;
use crate::wasm::{Destination, RemoteWriteVersion};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How often the log is looked at while nothing happens.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often figures are taken, segments deleted, and limits looked at.
pub(super) const TIDY_EVERY: Duration = Duration::from_secs(1);

/// Longest time at the end that requests on their way are waited for.
const END_WAIT: Duration = Duration::from_secs(3);

/// A request that is on its way.
pub(super) struct OnItsWay {
    pub task: JoinHandle<()>,
    pub version: RemoteWriteVersion,
    pub rows: u64,
    pub newest_ms: i64,
}

#[derive(Default)]
pub(super) struct Shard {
    pub on_its_way: Option<OnItsWay>,
    /// Since when rows wait without a request.
    pub since: Option<Instant>,
}

/// Shard, generation of shards, and how it ended.
pub(super) type Answered = (u32, u64, Outcome);

/// One run: it ends with the process, or with its instance.
pub(super) struct Delivery<'w> {
    pub parts: &'w Parts,
    pub sender: &'w Arc<Sender>,
    pub file: &'w mut PositionFile,
    pub version: &'w mut Negotiated,
    pub destination: Destination,
    pub tails: Tails,
    pub shards: Vec<Shard>,
    pub generation: u64,
    /// One from each request that was sent. None may be lost: its shard would wait for ever.
    pub answers: (mpsc::Sender<Answered>, Receiver<Answered>),
    pub resharding: Resharding,
    pub resharded: Instant,
    /// Shards that there are to be once no row waits.
    pub wanted: Option<u32>,
    pub window: Option<Window>,
    /// The window that was opened last.
    pub last_window: Option<i64>,
    /// Rows that it should have and that were not taken yet; not known of one that an earlier run
    /// has begun.
    pub rows_left: Option<u64>,
    /// Whether an earlier run may have delivered some of the first window.
    pub has_resumed_window: bool,
    pub pace: Pace,
    /// Reads of the store that failed since the last that gave a row.
    pub store_failures: u32,
    /// When that was told last.
    pub store_failure_told: Option<Instant>,
    /// When the log had no more.
    pub log_ended: Option<Instant>,
    pub tidied: Instant,
    pub synced: Instant,
    /// What the position that was written last needs of the logs.
    pub needed: Needed,
    pub progress: Progress,
    /// Whether the written position says how far delivery has come.
    pub is_timed: bool,
    /// Whether delivery stands elsewhere, since a write failed.
    pub is_unwritten: bool,
    pub detached: Option<Instant>,
    pub delivered: Option<Instant>,
    pub metadata_sent: Option<Instant>,
    pub metadata_task: Option<JoinHandle<()>>,
    pub compressor: snap::raw::Encoder,
}

impl<'w> Delivery<'w> {
    /// Nothing is read or sent yet.
    pub fn new(
        parts: &'w Parts,
        sender: &'w Arc<Sender>,
        file: &'w mut PositionFile,
        version: &'w mut Negotiated,
        mut destination: Destination,
        tails: Tails,
        delivered_ms: Option<i64>,
    ) -> Result<Delivery<'w>, ForwardError> {
        let positions = destination.positions()?;
        let has_resumed_window = destination.store_window()?.is_some();
        let now = Instant::now();
        let settles = match parts.store.config().wal.sync {
            SyncPolicy::Batch { interval, .. } => interval,
            SyncPolicy::Off | SyncPolicy::Interval(_) | SyncPolicy::Always => Duration::ZERO,
        };
        Ok(Delivery {
            parts,
            sender,
            file,
            version,
            destination,
            tails,
            shards: positions.iter().map(|_| Shard::default()).collect(),
            generation: 0,
            answers: mpsc::channel(),
            resharding: Resharding::default(),
            resharded: now,
            wanted: None,
            window: None,
            last_window: None,
            rows_left: None,
            has_resumed_window,
            pace: Pace::new(parts.config.backlog.samples_per_second),
            store_failures: 0,
            store_failure_told: None,
            log_ended: None,
            tidied: now,
            synced: now,
            needed: segments(&positions),
            progress: Progress::new(delivered_ms, system_now_ms(), settles),
            is_timed: delivered_ms.is_some(),
            is_unwritten: false,
            detached: None,
            delivered: None,
            metadata_sent: None,
            metadata_task: None,
            compressor: snap::raw::Encoder::new(),
        })
    }

    /// Works until it is time to stop.
    pub fn work(&mut self) -> Result<(), ForwardError> {
        self.begin()?;
        self.write_position(false)?;
        loop {
            let mut has_done = self.take_answers(Duration::ZERO)?;
            has_done |= self.read()?;
            has_done |= self.send()?;
            if self.tidied.elapsed() >= TIDY_EVERY {
                self.tidied = Instant::now();
                self.tidy()?;
            }
            if has_done {
                if self.parts.is_stopping_within(Duration::ZERO) {
                    return self.end();
                }
                continue;
            }
            self.take_answers(LOOK_EVERY)?;
            if self.parts.is_stopping_within(Duration::ZERO) {
                return self.end();
            }
        }
    }

    /// Gives requests that are on their way some time to be answered.
    fn end(&mut self) -> Result<(), ForwardError> {
        let until = Instant::now() + END_WAIT;
        while self.shards.iter().any(|shard| shard.on_its_way.is_some()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.take_answers(left)? {
                break;
            }
        }
        if self.is_unwritten {
            self.write_position(true)?;
        }
        if let Err(error) = self.file.sync() {
            let remote_name = &self.parts.config.name;
            tracing::warn!(remote_name, %error, "could not sync the delivery position");
        }
        Ok(())
    }

    /// Ends all requests; whether they were delivered nobody will know.
    pub fn abort(&mut self) {
        self.generation += 1;
        for shard in &mut self.shards {
            if let Some(sent) = shard.on_its_way.take() {
                sent.task.abort();
            }
            shard.since = None;
        }
        if let Some(task) = self.metadata_task.take() {
            task.abort();
        }
    }

    /// Writes down where delivery stands; gaps only if they may have changed. While that fails, as on a
    /// full disk, samples go on being delivered, and no segment is deleted that the position needs
    /// which is written.
    pub fn write_position(&mut self, with_gaps: bool) -> Result<(), ForwardError> {
        let shards = self.destination.positions()?;
        let with_gaps = with_gaps || self.is_unwritten;
        let gaps = if with_gaps { Some(self.destination.gaps()?) } else { None };
        let needed = segments(&shards);
        self.parts.figures.segment.store(u64::from(needed.0), Relaxed);
        let written = self.file.write(&shards, gaps, self.progress.delivered_ms());
        let written = written.and_then(|()| self.sync_position());
        let remote_name = &self.parts.config.name;
        match written {
            Ok(()) => {
                if self.is_unwritten {
                    tracing::info!(remote_name, "the delivery position can be written again");
                }
                (self.needed, self.is_unwritten) = (needed, false);
                self.is_timed = self.progress.delivered_ms().is_some();
            }
            Err(error) => {
                if !self.is_unwritten {
                    tracing::error!(
                        remote_name, %error,
                        "cannot write the delivery position; delivery continues, and a restart \
                         would send samples again"
                    );
                }
                self.is_unwritten = true;
            }
        }
        Ok(())
    }

    /// As often as the log is synced.
    fn sync_position(&mut self) -> io::Result<()> {
        let every = match self.parts.store.config().wal.sync {
            SyncPolicy::Off => return Ok(()),
            SyncPolicy::Interval(interval) | SyncPolicy::Batch { interval, .. } => interval,
            SyncPolicy::Always => TIDY_EVERY,
        };
        if self.synced.elapsed() >= every {
            self.synced = Instant::now();
            self.file.sync()?;
        }
        Ok(())
    }

    /// Where delivery stands, for the next run; nothing if the instance has ended.
    pub fn last_position(&mut self) -> Option<Position> {
        let shards = self.destination.positions().ok()?;
        let gaps = self.destination.gaps().ok()?;
        Some(Position { shards, gaps, delivered_ms: self.progress.delivered_ms() })
    }

    /// Samples before this are too old to be sent.
    pub fn not_before_ms(&self) -> i64 {
        let limit = self.parts.config.queue.sample_age_limit;
        match limit.is_zero() {
            true => i64::MIN,
            false => system_now_ms().saturating_sub(limit.as_millis() as i64),
        }
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        self.abort();
    }
}

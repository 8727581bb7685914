//! Writes down where a run's delivery stands, and how far it has come.
//!
//! While writing fails, as on a full disk, samples go on being delivered, and no segment is deleted
//! that the position needs which is written.

use super::ForwardError;
use super::needs::Needed;
use super::parts::{Parts, TIDY_EVERY};
use super::position::PositionFile;
use super::progress::Progress;
use super::tail::segments;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tidepool_disk::SyncPolicy;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::{Destination, ShardPosition};

/// The position of a run, on disk.
pub(super) struct PositionWriter<'w> {
    parts: &'w Parts,
    file: &'w mut PositionFile,
    progress: Progress,
    synced: Instant,
    /// What the position that was written last needs of the logs.
    needed: Needed,
    /// Whether the written position says how far delivery has come.
    is_timed: bool,
    /// Whether delivery stands elsewhere, since a write failed.
    is_unwritten: bool,
}

impl<'w> PositionWriter<'w> {
    /// Goes on from what the file holds: these positions, and this time if delivery had come so
    /// far.
    pub fn new(
        parts: &'w Parts,
        file: &'w mut PositionFile,
        positions: &[ShardPosition],
        delivered_ms: Option<i64>,
    ) -> PositionWriter<'w> {
        let settles = match parts.store.config().wal.sync {
            SyncPolicy::Batch { interval, .. } => interval,
            SyncPolicy::Off | SyncPolicy::Interval(_) | SyncPolicy::Always => Duration::ZERO,
        };
        PositionWriter {
            parts,
            file,
            progress: Progress::new(delivered_ms, system_now_ms(), settles),
            synced: Instant::now(),
            needed: segments(positions),
            is_timed: delivered_ms.is_some(),
            is_unwritten: false,
        }
    }

    /// How far delivery has come.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// How far delivery has come; what changes is shown by [`PositionWriter::show_progress`].
    pub fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    /// Shows how far delivery has come.
    pub fn show_progress(&self) {
        let delivered_ms = self.progress.delivered_ms().unwrap_or(0);
        self.parts.figures.delivered_ms.store(delivered_ms, Relaxed);
    }

    /// What the position that was written last needs of the logs.
    pub fn needed(&self) -> Needed {
        self.needed
    }

    /// Writes the position if reading alone has moved it, or if the last write failed.
    pub fn write_if_moved(
        &mut self,
        destination: &mut Destination,
        positions: &[ShardPosition],
    ) -> Result<(), ForwardError> {
        // Reading moves it, too, where nothing of what is read is sent.
        let is_timed = self.is_timed || self.progress.delivered_ms().is_none();
        let has_moved = segments(positions) != self.needed;
        match self.is_unwritten || has_moved || !is_timed {
            true => self.write(destination, false),
            false => Ok(()),
        }
    }

    /// Writes down where delivery stands; gaps only if they may have changed.
    pub fn write(
        &mut self,
        destination: &mut Destination,
        with_gaps: bool,
    ) -> Result<(), ForwardError> {
        let shards = destination.positions()?;
        let with_gaps = with_gaps || self.is_unwritten;
        let gaps = if with_gaps { Some(destination.gaps()?) } else { None };
        let needed = segments(&shards);
        self.parts.figures.segment.store(u64::from(needed.0), Relaxed);
        let written = self.file.write(&shards, gaps, self.progress.delivered_ms());
        let written = written.and_then(|()| self.sync_if_due());
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
    fn sync_if_due(&mut self) -> io::Result<()> {
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

    /// Writes what a failure has left unwritten, and syncs the file.
    pub fn end(&mut self, destination: &mut Destination) -> Result<(), ForwardError> {
        if self.is_unwritten {
            self.write(destination, true)?;
        }
        if let Err(error) = self.file.sync() {
            let remote_name = &self.parts.config.name;
            tracing::warn!(remote_name, %error, "could not sync the delivery position");
        }
        Ok(())
    }
}

//! Writes a run's delivery position, and its progress.
//!
//! While writing fails, as on a full disk, delivery goes on, and no segment is deleted that the
//! written position needs.

use super::ForwardError;
use super::needs::Needed;
use super::position::PositionFile;
use super::progress::Progress;
use super::resources::{Resources, TIDY_EVERY};
use super::tail::segments;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tidepool_disk::SyncPolicy;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::{Destination, ShardPosition};

/// The position of a run, on disk.
pub(super) struct PositionWriter<'w> {
    parts: &'w Resources,
    file: &'w mut PositionFile,
    progress: Progress,
    synced: Instant,
    /// Segments that the last written position needs.
    needed: Needed,
    /// Whether the written position has a time of progress.
    is_timed: bool,
    /// Whether a write failed, so that the position on disk is an older one.
    is_unwritten: bool,
}

impl<'w> PositionWriter<'w> {
    /// Goes on from the content of the file: these positions, and this progress if there is one.
    pub fn new(
        parts: &'w Resources,
        file: &'w mut PositionFile,
        positions: &[ShardPosition],
        delivered_ms: Option<i64>,
    ) -> PositionWriter<'w> {
        // A batch reaches the log only when its interval ends.
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

    /// Returns the progress of delivery.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Returns the progress; [`PositionWriter::show_progress`] shows a change.
    pub fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    /// Copies the progress to the figures.
    pub fn show_progress(&self) {
        let delivered_ms = self.progress.delivered_ms().unwrap_or(0);
        self.parts.figures.delivered_ms.store(delivered_ms, Relaxed);
    }

    /// Returns the segments that the last written position needs.
    pub fn needed(&self) -> Needed {
        self.needed
    }

    /// Writes the position if reading alone has moved it, or if the last write failed.
    pub fn write_if_moved(
        &mut self,
        destination: &mut Destination,
        positions: &[ShardPosition],
    ) -> Result<(), ForwardError> {
        // Reading moves the position as well, where no row is to be sent.
        let is_timed = self.is_timed || self.progress.delivered_ms().is_none();
        let has_moved = segments(positions) != self.needed;
        match self.is_unwritten || has_moved || !is_timed {
            true => self.write(destination, false),
            false => Ok(()),
        }
    }

    /// Writes the position; gaps only if they may have changed.
    pub fn write(
        &mut self,
        destination: &mut Destination,
        with_gaps: bool,
    ) -> Result<(), ForwardError> {
        let shards = destination.positions()?;
        // The write that failed may have been one with changed gaps.
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
                // Segments are released by what is on disk, never by a position that is not.
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

    /// Syncs the file as often as the log is synced.
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

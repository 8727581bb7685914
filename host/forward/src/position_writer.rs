//! Writes the position and the progress of a delivery run.
//!
//! While writes fail, such as on a full disk, delivery continues. Segments that the position on
//! disk needs are not deleted.

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

/// Keeps the position on disk up to date.
pub(super) struct PositionWriter<'w> {
    parts: &'w Resources,
    file: &'w mut PositionFile,
    progress: Progress,
    synced: Instant,
    /// Segments that the position on disk needs.
    needed: Needed,
    /// Whether the position on disk has a time of progress.
    is_timed: bool,
    /// Whether the last write failed, so that the position on disk is out of date.
    is_unwritten: bool,
}

impl<'w> PositionWriter<'w> {
    /// Continues from the content of the file: these positions, and this progress if there is any.
    pub fn new(
        parts: &'w Resources,
        file: &'w mut PositionFile,
        positions: &[ShardPosition],
        delivered_ms: Option<i64>,
    ) -> PositionWriter<'w> {
        // In this mode samples reach the log only when the interval of their batch ends.
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

    /// Returns the progress for a change; [`PositionWriter::show_progress`] publishes the change.
    pub fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    /// Copies the progress to the metrics.
    pub fn show_progress(&self) {
        let delivered_ms = self.progress.delivered_ms().unwrap_or(0);
        self.parts.figures.delivered_ms.store(delivered_ms, Relaxed);
    }

    /// Returns the segments that the position on disk needs.
    pub fn needed(&self) -> Needed {
        self.needed
    }

    /// Writes the position if it has moved without a delivery, or if the last write failed.
    pub fn write_if_moved(
        &mut self,
        destination: &mut Destination,
        positions: &[ShardPosition],
    ) -> Result<(), ForwardError> {
        // The position moves without a delivery over records without a row for this destination.
        let is_timed = self.is_timed || self.progress.delivered_ms().is_none();
        let has_moved = segments(positions) != self.needed;
        match self.is_unwritten || has_moved || !is_timed {
            true => self.write(destination, false),
            false => Ok(()),
        }
    }

    /// Writes the position, and with `with_gaps` the gaps as well.
    pub fn write(
        &mut self,
        destination: &mut Destination,
        with_gaps: bool,
    ) -> Result<(), ForwardError> {
        let shards = destination.positions()?;
        // The failed write may have been one with changed gaps.
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
                // Segments are released only by the position on disk.
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

    /// Syncs the file at the interval at which the log is synced.
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

    /// Retries a failed write, and syncs the file.
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

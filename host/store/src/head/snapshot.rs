//! Head snapshots: a clean stop writes a snapshot, and the next start loads it.

use super::{HeadInstance, HeadThread, StartError, Started, StoreError};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tidepool_disk::head_snapshot::{HeadSnapshot, HeadSnapshotError, HeadSnapshotWriter};
use tidepool_disk::wal::Logs;
use tidepool_runtime::{CallError, CallLimit};

const PIECE_BYTES: u32 = 1024 * 1024;

/// Maximum time for writing a snapshot, because service managers limit the time of a stop.
const WRITE_TIME_MAX: Duration = Duration::from_secs(5);

/// Limit of one call. On a slow device, writing ends between two calls instead.
pub(super) const CALL_LIMIT: CallLimit =
    CallLimit { what: "the head snapshot", time: WRITE_TIME_MAX };

/// Reason for which a head snapshot was not loaded or not written.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    #[error(transparent)]
    File(#[from] HeadSnapshotError),
    #[error("{0}")]
    Instance(#[from] CallError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl HeadThread {
    /// Starts an instance from the head snapshot, if it exists and no program has changed the
    /// directory since. Deletes the snapshot, unless the store is stopping.
    pub(super) fn start_from_snapshot(&self) -> Result<Option<Started>, StartError> {
        let started = Instant::now();
        let loaded = match self.shared.config.head_snapshot {
            true => self.load_snapshot(),
            false => Ok(None),
        };
        let loaded = match loaded {
            // Nothing was written to the logs, so the snapshot is kept for the next start.
            Err(SnapshotError::Store(StoreError::Stopped)) => return Err(StartError::Stopped),
            loaded => loaded,
        };
        if let Err(error) = &loaded {
            tracing::warn!(%error, "head snapshot cannot be used; replaying the WAL instead");
        }
        if let Err(error) = self.data.remove_head_snapshot() {
            // After further writes it does not match the logs, and cannot be loaded by mistake.
            tracing::warn!(%error, "head snapshot could not be deleted; the next start deletes it");
        }
        let Ok(Some((started_head, snapshot))) = loaded else { return Ok(None) };
        self.shared.head.state.snapshot_used.store(true, Relaxed);
        tracing::info!(
            bytes = snapshot.size_bytes(),
            seconds = started.elapsed().as_secs_f64(),
            "head snapshot loaded; the store is ready"
        );
        // On a thread, because freeing the file's space takes time. If none starts, freed here.
        let closing = std::thread::Builder::new().name("closing".into());
        let _ = closing.spawn(move || drop(snapshot));
        Ok(Some(started_head))
    }

    fn load_snapshot(&self) -> Result<Option<(Started, HeadSnapshot)>, SnapshotError> {
        let Some(mut snapshot) = HeadSnapshot::open(&self.data)? else { return Ok(None) };
        let mut logs = Logs::open(&self.data, self.shared.config.wal).map_err(StoreError::from)?;
        logs.skip_replay();
        let (mut instance, logs) = self.instantiate(logs)?;
        let mut piece = Vec::new();
        let mut is_done = false;
        while snapshot.next(&mut piece)? {
            if self.shared.stopping.load(Relaxed) {
                return Err(StoreError::Stopped.into());
            }
            is_done = instance.load_head(&piece)?;
        }
        if !is_done {
            let (offset, reason) = (snapshot.size_bytes(), "the head is not whole");
            return Err(HeadSnapshotError::Damaged { offset, reason }.into());
        }
        self.take_brief_stats(&mut instance)?;
        Ok(Some(((HeadInstance::new(instance, &logs), logs), snapshot)))
    }

    /// Writes the head snapshot. The logs must be synced, and nothing may be written to them later.
    /// A failure only makes the next start longer.
    pub(super) fn save_snapshot(&self, head: &mut HeadInstance) {
        // After a start without replay, the empty head does not represent the log.
        let is_of_log = self.shared.head.shortage().is_none();
        if !self.shared.config.head_snapshot || head.crashed.is_some() || !is_of_log {
            return;
        }
        let started = Instant::now();
        match self.write_snapshot(head) {
            Ok(bytes) => tracing::info!(
                bytes,
                seconds = started.elapsed().as_secs_f64(),
                "head snapshot written"
            ),
            Err(error) => tracing::warn!(
                %error,
                "head snapshot could not be written; no data is lost, but the next start replays the WAL"
            ),
        }
    }

    fn write_snapshot(&self, head: &mut HeadInstance) -> Result<u64, SnapshotError> {
        let mut writer = HeadSnapshotWriter::begin(&self.data, WRITE_TIME_MAX)?;
        head.instance.set_limit(Some(CALL_LIMIT));
        let saved = head.instance.save_head()?;
        loop {
            head.instance.set_limit(Some(CALL_LIMIT));
            let piece = head.instance.next_of_saved_head(saved, PIECE_BYTES)?;
            if piece.is_empty() {
                return Ok(writer.commit()?);
            }
            writer.add(&piece)?;
        }
    }
}

impl super::HeadHandle {
    /// Returns whether the last start loaded a head snapshot, and the duration of the start.
    pub fn start_figures(&self) -> (bool, Duration) {
        let nanos = self.state.start_nanos.load(Relaxed);
        (self.state.snapshot_used.load(Relaxed), Duration::from_nanos(nanos))
    }
}

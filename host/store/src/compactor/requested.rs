//! Tasks that the compactor thread does on request: deletions, cleaning of tombstones, snapshots.

use super::Compactor;
use crate::tasks::Task;
use crate::{StoreError, random_seed};
use tidepool_disk::SnapshotWriter;
use tidepool_lifecycle::clock::system_now;
use tidepool_runtime::{Damage, Deletion, Instance, Matcher, TimeRange};

impl Compactor {
    /// Does a task, even if the client that requested it has disconnected.
    pub(super) fn do_task(&mut self, task: Task) {
        let limit_bytes = self.shared.config.memory.compactor_bytes;
        let of_compaction = |error: StoreError| error.of_compaction(limit_bytes);
        // A reply fails only if the client has disconnected, which does not matter here.
        match task {
            Task::Delete { selectors, range, reply } => {
                let _ = reply.send(self.delete(selectors, range).map_err(of_compaction));
            }
            Task::CleanTombstones { reply } => {
                let _ = reply.send(self.clean_tombstones().map_err(of_compaction));
            }
            Task::Snapshot { with_head, reply } => {
                let _ = reply.send(self.snapshot(with_head).map_err(of_compaction));
            }
            Task::Wake => {}
        }
    }

    fn clean_tombstones(&mut self) -> Result<Vec<Damage>, StoreError> {
        let instance = self.instance(self.shared.blocks.clone())?;
        let mut left_out = Vec::new();
        self.work_in_slices(instance, Instance::clean_tombstones, &mut left_out)?;
        Ok(left_out)
    }

    fn delete(
        &self,
        selectors: Vec<Vec<Matcher>>,
        range: TimeRange,
    ) -> Result<Deletion, StoreError> {
        // Cuts run on this thread, so none runs between the deletions in head and blocks.
        let mut instance = self.instance(self.shared.blocks.clone())?;
        let deletion = instance.delete(&selectors, range);
        // A failed deletion may have deleted some samples.
        self.shared.ledger.changed();
        let deletion = deletion?;
        tracing::info!(
            head_series = deletion.head_series,
            blocks = deletion.blocks.len(),
            start_ms = range.start_ms,
            end_ms = range.end_ms,
            "samples deleted"
        );
        Ok(deletion)
    }

    fn snapshot(&self, with_head: bool) -> Result<String, StoreError> {
        let name = snapshot_name();
        let reserve_bytes = self.shared.space.figures().reserve_bytes;
        let snapshot = SnapshotWriter::begin(&self.data, &name, reserve_bytes)?;
        for block in self.shared.blocks.list()? {
            snapshot.add_block(&block)?;
        }
        if with_head {
            // The instance writes the head into the snapshot, not into the store's own blocks.
            let mut instance = self.instance(snapshot.blocks())?;
            while !instance.snapshot_head(self.shared.clock.now_ms())?.done {
                if self.is_stopping() {
                    return Err(StoreError::Stopped);
                }
            }
        }
        snapshot.commit()?;
        tracing::info!(name, "snapshot made");
        Ok(name)
    }
}

/// Returns a name in upstream's form: the time in UTC, and a random number.
pub fn snapshot_name() -> String {
    let now = system_now().strftime("%Y%m%dT%H%M%SZ");
    // 63 bits, because upstream's number is an `Int63`.
    format!("{now}-{:016x}", random_seed() >> 1)
}

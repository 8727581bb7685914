//! Deletions that only the tombstones of blocks record, of samples that the log has as well.
//!
//! If blocks do not prove that they hold all samples of their time, replay also reads the log's
//! samples of that time ([`deleted_beside_log`]). Prometheus ignores these samples of its log, so
//! its deletions of that time are only in blocks. Here they are applied to the samples of the
//! in-order log, and then written to the log, once for each state of a block's tombstones. Samples
//! that are stored later are not deleted, whatever their time.
//!
//! ```text
//! in-order log:      samples … │                                         │ tombstones, applied │ …
//! out-of-order log:            │ replayed next; newer than the block
//! meta.json of the block:                      notes at last that the log has the tombstones ▲
//! ```

use super::Log;
use super::deletion::TOMBSTONES_PER_RECORD;
use crate::block::{
    BlockError, BlockMeta, BlockReader, Tombstones, are_deletions_in_log, meta_with_tombstones,
};
use crate::compact::deleted_beside_log;
use crate::error::Result;
use crate::head::Head;
use crate::storage::{Blocks, LogKind, StorageError};
use crate::wal::{TombstoneRecord, deletions_applied_record, tombstones_record};
use std::rc::Rc;

/// Deletions that are to be written to the log.
pub struct BlockDeletions {
    blocks: Rc<dyn Blocks>,
    ulids: Vec<String>,
    /// Deletions from series of the in-order log; `None` until that log is replayed.
    found: Option<Vec<TombstoneRecord>>,
}

impl BlockDeletions {
    /// Returns the deletions of blocks with these metas. An unreadable block deletes nothing.
    pub fn of(blocks: &Rc<dyn Blocks>, metas: &[BlockMeta]) -> Option<BlockDeletions> {
        let is_new = |ulid: &str| -> std::result::Result<bool, BlockError> {
            let tombstones = Tombstones::read(&**blocks, ulid)?;
            Ok(!are_deletions_in_log(&**blocks, ulid, &tombstones)?)
        };
        let ulids: Vec<String> = deleted_beside_log(metas)
            .filter(|meta| is_new(&meta.ulid).unwrap_or(false))
            .map(|meta| meta.ulid.clone())
            .collect();
        (!ulids.is_empty()).then(|| BlockDeletions {
            blocks: Rc::clone(blocks),
            ulids,
            found: None,
        })
    }

    /// Applies a block's tombstones to a head that has replayed only the in-order log.
    fn apply_of(
        &self,
        ulid: &str,
        head: &mut Head,
        found: &mut Vec<TombstoneRecord>,
    ) -> std::result::Result<(), BlockError> {
        let block = BlockReader::open(&*self.blocks, ulid)?;
        for (series, range) in block.tombstones().iter() {
            let labels = block.series_labels(series)?;
            if let Ok(Some(series_ref)) = head.replay_block_deletion(&labels, range) {
                found.push(TombstoneRecord { series_ref, range });
            }
        }
        block.rest();
        Ok(())
    }
}

impl Log {
    /// Applies the block deletions: after the in-order log, before the out-of-order log.
    pub(super) fn apply_block_deletions(&mut self, head: &mut Head) {
        let Some(deletions) = &mut self.block_deletions else { return };
        if deletions.found.is_some() {
            return;
        }
        let mut found = Vec::new();
        // Reads leave a damaged block out as well; the next start tries again.
        let mut ulids = std::mem::take(&mut deletions.ulids);
        ulids.retain(|ulid| deletions.apply_of(ulid, head, &mut found).is_ok());
        deletions.ulids = ulids;
        deletions.found = Some(found);
    }

    /// Returns whether some block deletions are not in the log yet.
    pub fn has_block_deletions(&self) -> bool {
        self.block_deletions.is_some()
    }

    /// Writes the applied block deletions to the log, unless that was done.
    pub fn log_block_deletions(&mut self, head: &Head) -> Result<()> {
        let Some(deletions) = self.block_deletions.take() else { return Ok(()) };
        let logged = self.log_found(head, &deletions);
        if logged.is_err() {
            // Kept for another attempt before the next batch.
            self.block_deletions = Some(deletions);
        }
        logged
    }

    fn log_found(&mut self, head: &Head, deletions: &BlockDeletions) -> Result<()> {
        let found = deletions.found.as_deref().unwrap_or_default();
        if !found.is_empty() {
            self.apply_deletions(head)?;
            let records = found.chunks(TOMBSTONES_PER_RECORD);
            let records = records.map(|found| tombstones_record(found.iter().copied()));
            // Written in one call, because tombstones alone would hide out-of-order samples too.
            let applied = deletions_applied_record(head.floor_ms());
            let records: Vec<Vec<u8>> = records.chain([applied]).collect();
            let segment = self.wal.append(LogKind::InOrder, &records)?;
            let end_ms = found.iter().map(|it| it.range.end_ms).max();
            self.note(segment, end_ms.unwrap_or(i64::MIN));
            // Ending the segment syncs the records, before a block notes that the log has them.
            self.cut_in_order()?;
            self.restart_columns();
        }
        for ulid in &deletions.ulids {
            // Other errors must not block writes, so they are ignored.
            if let Err(BlockError::Storage(error @ StorageError::NoSpace { .. })) =
                note_in_block(&*deletions.blocks, ulid)
            {
                return Err(error.into());
            }
        }
        Ok(())
    }
}

/// Notes in a block's `meta.json` that the log has its deletions.
fn note_in_block(blocks: &dyn Blocks, ulid: &str) -> std::result::Result<(), BlockError> {
    let tombstones = Tombstones::read(blocks, ulid)?;
    let meta = meta_with_tombstones(blocks, ulid, &tombstones, true)?;
    Ok(blocks.replace_tombstones(ulid, &tombstones.encode(), &meta)?)
}

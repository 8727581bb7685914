//! Work on request: deleting samples, cleaning tombstones, and snapshots of the head.

use super::upkeep::{Room, Task, UpkeepProgress};
use super::{Engine, Role, compile};
use crate::compact::{BadBlock, delete_from_blocks};
use crate::error::{Error, Result};
use crate::model::{Matcher, MatcherSpec, TimeRange};

/// Result of a deletion in head and blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Number of series of the head with samples in the range.
    pub head_series: u64,
    /// ULIDs of the blocks in which more is deleted than before.
    pub blocks: Vec<String>,
    /// Blocks in which nothing could be deleted, with reasons.
    pub bad: Vec<BadBlock>,
}

impl Engine {
    /// Deletes the samples in a range of all series that any selector matches: first in the head,
    /// which may be another instance's, then in the blocks, if the role has any. Samples written
    /// later are kept, whatever their time. If storage fails, a repeated call completes the
    /// deletion.
    pub fn delete(&mut self, selectors: &[Vec<MatcherSpec>], range: TimeRange) -> Result<Deleted> {
        if self.role == Role::Query {
            return Err(Error::WrongRole { call: "delete" });
        }
        self.check_replayed()?;
        // Compiled first, so that an invalid matcher deletes nothing.
        let compiled: Vec<Vec<Matcher>> =
            selectors.iter().map(|matchers| compile(matchers)).collect::<Result<_>>()?;
        let mut deleted = Deleted::default();
        if range.end_ms < range.start_ms || selectors.is_empty() {
            return Ok(deleted);
        }
        // The head comes first, so that a block cut in between does not hold the samples.
        deleted.head_series = self.head.delete(selectors, range)?;
        if self.upkeep.is_some() {
            let in_blocks = delete_from_blocks(&*self.blocks, &compiled, range)?;
            deleted.blocks = in_blocks.blocks;
            deleted.bad = in_blocks.bad;
        }
        Ok(deleted)
    }

    /// Does a slice of rewriting the blocks from which samples were deleted.
    pub fn clean_tombstones(&mut self, now_ms: i64, room: Room) -> Result<UpkeepProgress> {
        let room = self.room_beside_head(room);
        self.work_on("clean-tombstones", Task::CleanTombstones, now_ms, room)
    }

    /// Does a slice of writing a block of all samples of the head. Head and log stay as they are.
    pub fn snapshot_head(&mut self, now_ms: i64) -> Result<UpkeepProgress> {
        let memory_bytes = match self.memory_bytes_max {
            0 => u64::MAX,
            bytes_max => bytes_max,
        };
        let room = Room { free_bytes: u64::MAX, other_bytes: 0, memory_bytes };
        self.work_on("snapshot-head", Task::SnapshotHead, now_ms, self.room_beside_head(room))
    }

    /// Returns a number that changes when samples of the head are deleted.
    pub fn deletion_mark(&self) -> Result<u64> {
        self.head.deletion_mark()
    }

    fn work_on(
        &mut self,
        call: &'static str,
        task: Task,
        now_ms: i64,
        room: Room,
    ) -> Result<UpkeepProgress> {
        match &mut self.upkeep {
            Some(upkeep) if self.role != Role::Query => upkeep.step(task, now_ms, room),
            _ => Err(Error::WrongRole { call }),
        }
    }
}

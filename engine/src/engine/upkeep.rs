//! Background work on blocks: cutting, merging, dropping.
//!
//! Each call does a slice, in this order: deleting blocks that a crash left beside the block merged
//! from them; retention; the cut of the head, for which these deletions make room; then one merge.
//! A damaged block is left out, and reported once.
//!
//! Requested work is done the same way: rewriting blocks without deleted samples, and a block of
//! the whole head.

use crate::block::{BlockMeta, BlockReader};
use crate::compact::{
    BadBlock, BlockMerge, Cut, CutProgress, DroppedFor, Levels, MergeError, MergeProgress, Plan,
    Retention, SizedBlock, Survey, beyond_retention, block_bytes, largest_merge_bytes, plan,
    plan_cleaning, superseded, survey,
};
use crate::error::{Error, Result};
use crate::select::HeadSource;
use crate::storage::{Blocks, StorageError};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Settings of block ranges and retention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpkeepOptions {
    /// Time range of one block in milliseconds.
    pub block_duration_ms: i64,
    /// Longest range of a merged block in milliseconds; 0 derives it from the retention.
    pub block_duration_max_ms: i64,
    /// A block is dropped when it ends this long before the newest block; 0 keeps all.
    pub retention_ms: i64,
    /// Limit of the bytes of blocks and all other files together; 0 means no limit.
    pub retention_bytes: u64,
    /// Seed of the hashes of labels.
    pub hash_seed: u64,
}

/// Space and memory that the host reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that may still be written.
    pub free_bytes: u64,
    /// Bytes in use that are not blocks, such as the logs; they count towards the size limit.
    pub other_bytes: u64,
    /// Memory for this engine, in bytes. A merge that needs more gives up; a cut that needs more
    /// makes several blocks.
    pub memory_bytes: u64,
}

/// Result of a slice of upkeep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpkeepProgress {
    /// Whether nothing is left to do now.
    pub done: bool,
    /// The block that this slice committed, if any.
    pub committed: Option<CommittedBlock>,
    /// ULIDs of the blocks that this slice deleted, with reasons.
    pub deleted: Vec<(String, DeletedFor)>,
    /// Blocks that were found to be damaged, and are left out from now on.
    pub bad: Vec<BadBlock>,
    /// Blocks that could not be merged, and stay as they are from now on.
    pub unmerged: Vec<BadBlock>,
}

/// A block that was cut or merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedBlock {
    /// ULID of the new block.
    pub ulid: String,
    /// 1 for a block cut from the head; a merge adds one.
    pub level: u32,
    /// Number of samples in the block.
    pub samples: u64,
}

/// Reason why a block was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletedFor {
    /// A merged block holds its samples.
    Merged,
    /// The block exceeded the age limit of retention.
    Age,
    /// The blocks exceeded the size limit of retention.
    Size,
}

/// Kind of work for the next slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Due,
    /// Rewriting blocks from which samples were deleted.
    CleanTombstones,
    /// Writing one block of all samples of the head.
    SnapshotHead,
}

/// Background work on a store's blocks.
pub struct Upkeep {
    head: Rc<dyn HeadSource>,
    blocks: Rc<dyn Blocks>,
    options: UpkeepOptions,
    levels: Levels,
    running: Option<Work>,
    /// Blocks that are excluded from merges.
    excluded: BTreeSet<String>,
    /// Pinned blocks, which are neither merged nor dropped for their age.
    pinned: BTreeSet<String>,
}

enum Work {
    Cut(Cut),
    Snapshot(Cut),
    Merge(Box<BlockMerge>),
}

impl UpkeepOptions {
    /// Returns the time range of each level of blocks.
    pub fn levels(&self) -> Levels {
        let levels = Levels::new(self.block_duration_ms, self.retention_ms);
        match self.block_duration_max_ms {
            0 => levels,
            max_ms => {
                let ranges = levels.ranges_ms().iter().copied();
                Levels::from_ranges(ranges.filter(|range_ms| *range_ms <= max_ms))
            }
        }
    }
}

impl Upkeep {
    pub fn new(head: Rc<dyn HeadSource>, blocks: Rc<dyn Blocks>, options: UpkeepOptions) -> Upkeep {
        let levels = options.levels();
        Upkeep {
            head,
            blocks,
            options,
            levels,
            running: None,
            excluded: BTreeSet::new(),
            pinned: BTreeSet::new(),
        }
    }

    /// Excludes blocks from merges, such as blocks that an earlier `Upkeep` reported as bad.
    pub fn exclude(&mut self, blocks: impl IntoIterator<Item = String>) {
        self.excluded.extend(blocks);
    }

    /// Pins these blocks, in place of those pinned before.
    pub fn pin(&mut self, blocks: impl IntoIterator<Item = String>) {
        self.pinned = blocks.into_iter().collect();
    }

    /// Does the next slice; work that was begun is finished first.
    pub fn step(&mut self, task: Task, now_ms: i64, room: Room) -> Result<UpkeepProgress> {
        let mut progress = UpkeepProgress::default();
        let work = match self.running.take() {
            Some(work) => work,
            None => match self.next(task, now_ms, room, &mut progress)? {
                Some(work) => work,
                None => {
                    // Now that a block is deleted or excluded, other work may be due.
                    let changed =
                        [&progress.bad, &progress.unmerged].iter().any(|list| !list.is_empty());
                    progress.done = progress.deleted.is_empty() && !changed;
                    return Ok(progress);
                }
            },
        };
        match work {
            Work::Cut(cut) => self.cut(cut, now_ms, &mut progress)?,
            Work::Snapshot(mut cut) => {
                let CutProgress { done, block, samples } = cut.step(now_ms)?;
                progress.committed = block.map(|ulid| CommittedBlock { ulid, level: 1, samples });
                progress.done = done;
                self.running = (!done).then_some(Work::Snapshot(cut));
            }
            Work::Merge(merge) => self.merge(merge, now_ms, &mut progress)?,
        }
        Ok(progress)
    }

    fn cut(&mut self, mut cut: Cut, now_ms: i64, progress: &mut UpkeepProgress) -> Result<()> {
        match cut.step(now_ms) {
            Ok(CutProgress { done, block, samples }) => {
                progress.committed = block.map(|ulid| CommittedBlock { ulid, level: 1, samples });
                if !done {
                    self.running = Some(Work::Cut(cut));
                }
                Ok(())
            }
            // The block is committed; only the truncation waits for open reads.
            Err(Error::Busy) => {
                self.running = Some(Work::Cut(cut));
                Err(Error::Busy)
            }
            // A cut that failed has left no trace, and is planned again.
            Err(error) => Err(error),
        }
    }

    fn merge(
        &mut self,
        mut merge: Box<BlockMerge>,
        now_ms: i64,
        progress: &mut UpkeepProgress,
    ) -> Result<()> {
        match merge.step(now_ms) {
            Ok(MergeProgress { done, committed, deleted, .. }) => {
                progress.committed = committed.map(|meta| CommittedBlock {
                    ulid: meta.ulid,
                    level: meta.compaction.level,
                    samples: meta.stats.num_samples,
                });
                // Retention may have deleted other blocks in the same slice.
                progress.deleted.extend(deleted.into_iter().map(|b| (b, DeletedFor::Merged)));
                if !done {
                    self.running = Some(Work::Merge(merge));
                }
                Ok(())
            }
            Err(MergeError::BadParent(bad)) => {
                self.leave_out(bad, progress);
                Ok(())
            }
            Err(MergeError::Refused { parents, source }) => {
                // Another attempt would end the same way.
                for block in parents {
                    let reason = source.to_string();
                    if self.excluded.insert(block.clone()) {
                        let bad = BadBlock { block, file: None, offset: None, reason };
                        progress.unmerged.push(bad);
                    }
                }
                Ok(())
            }
            // The merge is discarded; the next plan reads the new tombstones.
            Err(MergeError::Deleted { .. }) => Ok(()),
            Err(MergeError::Storage(error)) => Err(error.into()),
        }
    }

    fn leave_out(&mut self, bad: BadBlock, progress: &mut UpkeepProgress) {
        if self.excluded.insert(bad.block.clone()) {
            progress.bad.push(bad);
        }
    }

    /// Begins the next work of a task; for due work, after dropping blocks.
    fn next(
        &mut self,
        task: Task,
        now_ms: i64,
        room: Room,
        progress: &mut UpkeepProgress,
    ) -> Result<Option<Work>> {
        let (head, blocks) = (Rc::clone(&self.head), Rc::clone(&self.blocks));
        if task == Task::SnapshotHead {
            let seed = self.options.hash_seed;
            let cut = Cut::of_whole_head(head, blocks, seed, room.memory_bytes)?;
            return Ok(Some(Work::Snapshot(cut)));
        }
        // An error is returned only below: it must not stop the cut, which frees memory.
        let kept = self.drop_blocks(task, now_ms, room, progress);
        if task == Task::Due
            && let Some(range) = head.plan_cut()?
        {
            // Errors in older blocks are found again, and reported, once the cut is done.
            let seed = self.options.hash_seed;
            let cut = Cut::new(head, blocks, range, seed, room.memory_bytes)?;
            return Ok(Some(Work::Cut(cut)));
        }
        let sized = kept?;
        let fits = |parents: &[&BlockMeta]| {
            let bytes_of = |meta: &&BlockMeta| {
                let found = sized.iter().find(|sized| sized.meta.ulid == meta.ulid);
                found.map_or(0, |sized| sized.bytes)
            };
            parents.iter().map(bytes_of).sum::<u64>() < room.free_bytes
        };
        let metas: Vec<BlockMeta> = sized.iter().map(|sized| sized.meta.clone()).collect();
        let next = match task {
            Task::Due => plan(&metas, &self.levels, fits),
            _ => plan_cleaning(&metas, fits),
        };
        let Some(plan) = next else {
            // Clean-up on request reports a lack of space; background merges wait for space.
            return match plan_cleaning(&metas, |_| true) {
                Some(plan) if task == Task::CleanTombstones => Err(no_room(&plan)),
                _ => Ok(None),
            };
        };
        match BlockMerge::new(blocks, plan, self.options.hash_seed) {
            Ok(merge) => {
                let merge = merge.with_memory_bytes_max(room.memory_bytes);
                Ok(Some(Work::Merge(Box::new(merge))))
            }
            Err(MergeError::Storage(error)) => Err(error.into()),
            Err(MergeError::BadParent(bad)) => {
                self.leave_out(bad, progress);
                Ok(None)
            }
            Err(MergeError::Refused { .. } | MergeError::Deleted { .. }) => Ok(None),
        }
    }

    /// Deletes superseded blocks and blocks beyond retention; returns the remaining blocks.
    fn drop_blocks(
        &mut self,
        task: Task,
        now_ms: i64,
        room: Room,
        progress: &mut UpkeepProgress,
    ) -> Result<Vec<SizedBlock>> {
        let blocks = Rc::clone(&self.blocks);
        let Survey { mut metas, bad } = survey(&*blocks)?;
        for bad in bad {
            self.leave_out(bad, progress);
        }
        self.drop_superseded(&mut metas, progress)?;
        for meta in &metas {
            if self.excluded.contains(&meta.ulid) {
                continue;
            }
            // Finds damage early; otherwise only a query might find it, perhaps never.
            if let Err(error) = BlockReader::check_ends(&*blocks, &meta.ulid)
                && !error.is_unread()
            {
                self.leave_out(BadBlock::of(&meta.ulid, &error), progress);
            }
        }
        for meta in &mut metas {
            // Clean-up on request rewrites pinned blocks too.
            let is_pinned = task == Task::Due && self.pinned.contains(&meta.ulid);
            meta.compaction.failed |= is_pinned || self.excluded.contains(&meta.ulid);
        }
        let sized = metas
            .into_iter()
            .map(|meta| {
                let bytes = block_bytes(&*blocks, &meta.ulid)?;
                Ok(SizedBlock { bytes, is_pinned: self.pinned.contains(&meta.ulid), meta })
            })
            .collect::<Result<Vec<_>>>()?;
        match task {
            Task::Due => self.drop_beyond_retention(sized, now_ms, room, progress),
            _ => Ok(sized),
        }
    }

    /// Deletes parents that a crash left after the commit of their merged block.
    fn drop_superseded(
        &self,
        metas: &mut Vec<BlockMeta>,
        progress: &mut UpkeepProgress,
    ) -> Result<()> {
        // Mostly no block is superseded; then the blocks need not be opened.
        if superseded(metas).is_empty() {
            return Ok(());
        }
        // If a merged block cannot be opened, its parents must be kept.
        let opens = |meta: &&BlockMeta| BlockReader::open(&*self.blocks, &meta.ulid).is_ok();
        let sound: Vec<BlockMeta> = metas.iter().filter(opens).cloned().collect();
        for ulid in superseded(&sound) {
            self.blocks.delete(&ulid)?;
            metas.retain(|meta| meta.ulid != ulid);
            progress.deleted.push((ulid, DeletedFor::Merged));
        }
        Ok(())
    }

    fn drop_beyond_retention(
        &self,
        mut sized: Vec<SizedBlock>,
        now_ms: i64,
        room: Room,
        progress: &mut UpkeepProgress,
    ) -> Result<Vec<SizedBlock>> {
        let retention = Retention {
            age_ms: self.options.retention_ms,
            bytes_max: self.options.retention_bytes,
            other_bytes: room.other_bytes,
            reserve_bytes: largest_merge_bytes(&sized, &self.levels),
        };
        for dropped in beyond_retention(&sized, &retention, now_ms) {
            self.blocks.delete(&dropped.ulid)?;
            sized.retain(|sized| sized.meta.ulid != dropped.ulid);
            let reason = match dropped.reason {
                DroppedFor::Nothing => DeletedFor::Merged,
                DroppedFor::Age => DeletedFor::Age,
                DroppedFor::Size => DeletedFor::Size,
            };
            progress.deleted.push((dropped.ulid, reason));
        }
        Ok(sized)
    }
}

fn no_room(plan: &Plan) -> Error {
    let ulids: Vec<&str> = plan.parents.iter().map(|parent| parent.ulid.as_str()).collect();
    let what = format!("block {} without what was deleted from it", ulids.join(", "));
    StorageError::NoSpace { what }.into()
}

//! Choice of the blocks to merge next: a pure function that returns a plain value.
//!
//! Blocks grow by levels. A level's range is three times that of the level before, and ranges are
//! aligned to multiples of themselves since the epoch:
//!
//! ```text
//! 2 h    │a│b│c│d│e│f│g│h│i│j│
//! 6 h    │a b c│d e f│g h i│      j waits: its range still grows
//! 18 h   │a . . . . . . . i│
//! ```
//!
//! In this order, the first that applies is due:
//!
//! 1. blocks whose ranges overlap, all of a run together, so that of two samples at one time the
//!    newer block's is known;
//! 2. blocks of one aligned range, smallest range first, when they fill it or the newest block
//!    lies behind it; the newest block itself is left alone for as long as it is the newest;
//! 3. one block with deletions for more than 5 % of its series, if it is too large to be merged
//!    soon, or of all series.
//!
//! A block whose [`failed`](crate::block::CompactionMeta::failed) flag is set never takes part, and
//! keeps its aligned range from being merged; the caller sets the flag in its list when a merge
//! named the block. A `deletable` block is ignored. Time is that of the blocks, so a wrong clock
//! changes nothing here. The rules are those of upstream's `LeveledCompactor` (`tsdb/compact.go`),
//! except that upstream's rule 3 looks no further back than the last small block.

use crate::block::{BlockDesc, BlockMeta};
use std::collections::{BTreeMap, BTreeSet};
use tidepool_model::sort;

/// A level's range is this many times that of the level below.
pub const LEVEL_FACTOR: i64 = 3;

/// Largest number of levels of a store.
pub const LEVELS_MAX: usize = 10;

/// Longest range of a block, whatever the retention: 31 days, in milliseconds.
pub const RANGE_MS_MAX: i64 = 31 * 24 * 3600 * 1000;

/// Percentage of a block's series with deletions beyond which the block is rewritten alone.
pub const TOMBSTONES_PERCENT_MAX: u64 = 5;

/// Hint of a block of out-of-order samples only, as upstream makes them, also of times whose other
/// samples are still in the head. A merged block has it if all parents have it.
pub const HINT_OUT_OF_ORDER: &str = "from-out-of-order";

/// Hint of a block merged here from overlapping ones, not all of them of out-of-order samples.
const HINT_IN_ORDER: &str = "from-in-order";

/// Hints of upstream's blocks of a part of a head's series. They are merged only among themselves,
/// since such a block does not prove that the head's other series are in blocks too.
const HINTS_PARTIAL: [&str; 2] = ["from-stale-series", "from-selected-series"];

/// The ranges that blocks grow through, in milliseconds, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    ranges_ms: Vec<i64>,
}

/// Blocks to merge into one, with the properties of the new block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Rule that made the merge due.
    pub reason: Reason,
    /// The blocks to merge, by the start of their ranges.
    pub parents: Vec<BlockDesc>,
    /// Start of the new block's range, inclusive.
    pub min_time_ms: i64,
    /// End of the new block's range, exclusive.
    pub max_time_ms: i64,
    /// Level of the new block: one more than that of any parent.
    pub level: u32,
    /// ULIDs of all blocks cut from a head that are in the parents, ascending.
    pub sources: Vec<String>,
    /// Hints of the new block, such as [`HINT_OUT_OF_ORDER`].
    pub hints: Vec<String>,
}

/// Rule that makes a merge due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The ranges of the blocks overlap.
    Overlap,
    /// They make up a range of the next level.
    Level,
    /// Many series of the block have deletions.
    Tombstones,
}

impl Levels {
    /// Returns the levels above blocks of `block_duration_ms`, up to a tenth of the retention or
    /// [`RANGE_MS_MAX`]; a `retention_ms` of 0 is no limit.
    pub fn new(block_duration_ms: i64, retention_ms: i64) -> Levels {
        let range_ms_max = match retention_ms {
            1.. => RANGE_MS_MAX.min(retention_ms / 10),
            _ => RANGE_MS_MAX,
        };
        let first_ms = block_duration_ms.max(1);
        let next = |range_ms: &i64| range_ms.checked_mul(LEVEL_FACTOR);
        let ranges = std::iter::successors(Some(first_ms), next).take(LEVELS_MAX);
        Levels::from_ranges(ranges.take_while(|range_ms| *range_ms <= range_ms_max.max(first_ms)))
    }

    /// Returns levels of these ranges in milliseconds, without those that do not ascend from 1 on.
    pub fn from_ranges(ranges_ms: impl IntoIterator<Item = i64>) -> Levels {
        let mut levels = Levels { ranges_ms: Vec::new() };
        for range_ms in ranges_ms {
            if range_ms > levels.ranges_ms.last().copied().unwrap_or(0) {
                levels.ranges_ms.push(range_ms);
            }
        }
        levels
    }

    /// The ranges in milliseconds, ascending.
    pub fn ranges_ms(&self) -> &[i64] {
        &self.ranges_ms
    }

    /// Smallest range of blocks that deletions alone rewrite; smaller ones are merged soon anyway.
    fn rewrite_range_ms(&self) -> i64 {
        self.ranges_ms.get(self.ranges_ms.len() / 2).copied().unwrap_or(i64::MAX)
    }
}

impl Plan {
    /// The merge of these blocks; `None` for none.
    pub fn of(reason: Reason, parents: &[&BlockMeta]) -> Option<Plan> {
        let mut sources = BTreeSet::new();
        for parent in parents {
            sources.extend(parent.compaction.sources.iter().cloned());
        }
        let descs: Vec<BlockDesc> = parents.iter().map(|parent| parent.desc()).collect();
        let mut hints = Vec::new();
        // A parent without the hint proves that the in-order samples of its range are in blocks.
        if parents.iter().all(|parent| is_perhaps_out_of_order(parent)) {
            hints.push(HINT_OUT_OF_ORDER.to_owned());
        }
        // `plan` merges only within a class, so the hint of one parent is that of all.
        for hint in HINTS_PARTIAL {
            if parents.iter().any(|parent| has_hint(parent, hint)) {
                hints.push(hint.to_owned());
            }
        }
        // Without it, overlapping parents would look like those of a block of out-of-order samples.
        if hints.is_empty() && do_newest_overlap(&descs) {
            hints.push(HINT_IN_ORDER.to_owned());
        }
        Some(Plan {
            reason,
            parents: descs,
            min_time_ms: parents.iter().map(|parent| parent.min_time_ms).min()?,
            max_time_ms: parents.iter().map(|parent| parent.max_time_ms).max()?,
            level: parents.iter().map(|parent| parent.compaction.level).max()?.saturating_add(1),
            sources: sources.into_iter().collect(),
            hints,
        })
    }
}

/// Returns the merge that is due. `fits` returns whether there is room for a block of these; a
/// merge that does not fit is skipped, since an attempt would only wear the disk.
///
/// `stats.num_tombstones` of the metas must be that of the tombstones file; see
/// [`survey()`](super::survey()).
pub fn plan(
    metas: &[BlockMeta],
    levels: &Levels,
    fits: impl Fn(&[&BlockMeta]) -> bool,
) -> Option<Plan> {
    let head_start = HeadStart::of(metas);
    for class in 0..=HINTS_PARTIAL.len() {
        let mut blocks: Vec<&BlockMeta> = metas
            .iter()
            .filter(|meta| !meta.compaction.deletable && partial_class(meta) == class)
            .filter(|meta| !head_start.is_of_head(meta))
            .collect();
        // Also by ULID, so that equal lists give equal plans.
        sort::sort_by(&mut blocks, |a, b| (a.min_time_ms, &a.ulid).cmp(&(b.min_time_ms, &b.ulid)));
        if let Some(due) = plan_class(&blocks, levels, &fits) {
            return Some(due);
        }
    }
    None
}

/// Returns the rewrite of one block that has deletions, however few, to clean up on demand.
pub fn plan_cleaning(metas: &[BlockMeta], fits: impl Fn(&[&BlockMeta]) -> bool) -> Option<Plan> {
    let has_deletions = |meta: &&BlockMeta| {
        meta.stats.num_tombstones > 0 && !meta.compaction.failed && !meta.compaction.deletable
    };
    let block = metas.iter().filter(has_deletions).find(|meta| fits(&[meta]))?;
    let mut plan = Plan::of(Reason::Tombstones, &[block])?;
    // With its single parent, the new block would look as if it proved its end.
    if plan.hints.is_empty() && HeadStart::of(metas).is_of_head(block) {
        plan.hints.push(HINT_OUT_OF_ORDER.to_owned());
    }
    Some(plan)
}

/// Returns the ULIDs of blocks that another block of the list was made of, ascending.
///
/// A crash between the commit of a merged block and the deletion of its parents leaves them; they
/// hold nothing that the child does not. Pass only metas of blocks that open, so that a damaged
/// child does not cost its parents.
pub fn superseded(metas: &[BlockMeta]) -> Vec<String> {
    let mut parents: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for meta in metas {
        let of_meta = meta.compaction.parents.iter().map(|parent| parent.ulid.as_str());
        parents.entry(&meta.ulid).or_default().extend(of_meta);
    }
    let names = |child: &str, ulid: &str| parents.get(child).is_some_and(|all| all.contains(ulid));
    let mut found = BTreeSet::new();
    for (child, ulids) in &parents {
        // No compaction makes blocks that name each other, or themselves, as parent: they stay.
        let is_gone = |ulid: &&&str| parents.contains_key(**ulid) && !names(ulid, child);
        found.extend(ulids.iter().filter(is_gone).map(|ulid| (*ulid).to_owned()));
    }
    found.into_iter().collect()
}

/// Returns the time before which blocks hold all in-order samples; `i64::MIN` without blocks.
pub fn head_start_ms(metas: &[BlockMeta]) -> i64 {
    HeadStart::of(metas).time_ms
}

/// Returns the blocks with deletions that reach into the time that is read from the log.
pub fn deleted_beside_log(metas: &[BlockMeta]) -> impl Iterator<Item = &BlockMeta> {
    let start_ms = head_start_ms(metas);
    let has_deletions = |meta: &&BlockMeta| meta.stats.num_tombstones > 0;
    let reaches = move |meta: &&BlockMeta| meta.max_time_ms > start_ms && may_lie_beside_log(meta);
    metas.iter().filter(has_deletions).filter(reaches)
}

/// Returns whether the log may have samples of the block's time, depending on the other blocks.
pub fn may_lie_beside_log(meta: &BlockMeta) -> bool {
    partial_class(meta) > 0 || is_perhaps_out_of_order(meta) || is_merged(meta)
}

/// Bounds of the time from which on only the log has all in-order samples.
struct HeadStart {
    /// End of the last block that proves that all in-order samples before are in blocks.
    time_ms: i64,
    /// End of the last block that may hold nothing but out-of-order samples.
    out_of_order_end_ms: i64,
}

impl HeadStart {
    fn of(metas: &[BlockMeta]) -> HeadStart {
        let whole = || metas.iter().filter(|meta| partial_class(meta) == 0);
        let end_ms = |meta: &BlockMeta| meta.max_time_ms;
        let out_of_order = whole().filter(|meta| is_perhaps_out_of_order(meta));
        let mut start = HeadStart {
            time_ms: i64::MIN,
            out_of_order_end_ms: out_of_order.map(end_ms).max().unwrap_or(i64::MIN),
        };
        // `is_doubtful` reads only the end that is already set.
        let proofs = whole().filter(|meta| !start.is_doubtful(meta));
        start.time_ms = proofs.map(end_ms).max().unwrap_or(i64::MIN);
        start
    }

    /// Returns whether the block may reach into the time that only the log has.
    ///
    /// Prometheus (also 3.15) merges a block of out-of-order samples with the blocks before it as
    /// soon as there is a later one, and drops the hint: the head may begin in the middle of the
    /// new block. The later block then has out-of-order samples too, and the newest of them is
    /// merged only if it overlaps another. Without a later block, a merged block proves its end.
    fn is_doubtful(&self, meta: &BlockMeta) -> bool {
        is_perhaps_out_of_order(meta)
            || (is_merged(meta) && meta.max_time_ms < self.out_of_order_end_ms)
    }

    /// Returns whether the block must stay: merged, it would seem that blocks have all its time.
    fn is_of_head(&self, meta: &BlockMeta) -> bool {
        meta.max_time_ms > self.time_ms && self.is_doubtful(meta)
    }
}

/// Returns whether the block may hold nothing but out-of-order samples.
///
/// Prometheus before the fix of its issue 18379 drops the hint when it merges two blocks of
/// out-of-order samples, and loses samples that only its log then has. It merges the newest blocks
/// only if they overlap, so a block whose newest parents overlap proves nothing unless a hint says
/// so: at worst some samples stay in the log that are in blocks too. For others, see
/// [`HeadStart::is_doubtful()`].
fn is_perhaps_out_of_order(meta: &BlockMeta) -> bool {
    has_hint(meta, HINT_OUT_OF_ORDER)
        || (do_newest_overlap(&meta.compaction.parents) && !has_hint(meta, HINT_IN_ORDER))
}

/// Returns whether the block was made of several, perhaps some of out-of-order samples.
fn is_merged(meta: &BlockMeta) -> bool {
    meta.compaction.parents.len() > 1 && !has_hint(meta, HINT_IN_ORDER)
}

fn has_hint(meta: &BlockMeta, hint: &str) -> bool {
    meta.compaction.hints.iter().any(|h| h == hint)
}

fn do_newest_overlap(parents: &[BlockDesc]) -> bool {
    let Some(newest) = parents.iter().max_by_key(|parent| parent.min_time_ms) else { return false };
    parents.iter().filter(|parent| parent.max_time_ms > newest.min_time_ms).count() > 1
}

/// Returns 0 for ordinary blocks, else the number of the partial hint plus 1.
fn partial_class(meta: &BlockMeta) -> usize {
    HINTS_PARTIAL.iter().position(|hint| has_hint(meta, hint)).map_or(0, |place| place + 1)
}

fn plan_class(
    blocks: &[&BlockMeta],
    levels: &Levels,
    fits: &impl Fn(&[&BlockMeta]) -> bool,
) -> Option<Plan> {
    if let Some(run) = overlapping(blocks).iter().find(|run| fits(run)) {
        return Plan::of(Reason::Overlap, run);
    }
    // The newest block stays, so that it can be copied before it is merged, as upstream.
    let (_newest, older) = blocks.split_last()?;
    let high_ms = older.last()?.min_time_ms;
    for range_ms in levels.ranges_ms.iter().skip(1) {
        for group in split_by_range(older, *range_ms) {
            if let [first, _, ..] = group
                && !group.iter().any(|meta| meta.compaction.failed)
                && is_complete(first.min_time_ms, group, *range_ms, high_ms)
                && fits(group)
            {
                return Plan::of(Reason::Level, group);
            }
        }
    }
    // From the newest block on, as upstream.
    let due = |meta: &&&BlockMeta| is_worth_rewriting(meta, levels) && fits(&[**meta]);
    let block = older.iter().rev().find(due)?;
    Plan::of(Reason::Tombstones, &[block])
}

/// Returns whether no block will be added to the group's range: it is full, or later blocks exist.
fn is_complete(start_ms: i64, group: &[&BlockMeta], range_ms: i64, high_ms: i64) -> bool {
    let end_ms = group.iter().map(|meta| meta.max_time_ms).max().unwrap_or(start_ms);
    end_ms.checked_sub(start_ms) == Some(range_ms) || end_ms <= high_ms
}

fn is_worth_rewriting(meta: &BlockMeta, levels: &Levels) -> bool {
    let (tombstones, series) = (meta.stats.num_tombstones, meta.stats.num_series);
    if meta.compaction.failed || tombstones == 0 {
        return false;
    }
    let is_large = meta.max_time_ms.saturating_sub(meta.min_time_ms) >= levels.rewrite_range_ms();
    // Upstream's ratio is tombstones / (series + 1).
    let many = tombstones.saturating_mul(100)
        > series.saturating_add(1).saturating_mul(TOMBSTONES_PERCENT_MAX);
    // A block that is deleted entirely is rewritten at any size, as upstream does.
    tombstones >= series || (is_large && many)
}

/// Returns runs of blocks, each overlapping one before it in the run; `blocks` by start.
fn overlapping<'a>(blocks: &[&'a BlockMeta]) -> Vec<Vec<&'a BlockMeta>> {
    let mut runs: Vec<Vec<&BlockMeta>> = Vec::new();
    let mut end_ms = i64::MIN;
    for meta in blocks.iter().filter(|meta| !meta.compaction.failed) {
        match runs.last_mut() {
            Some(run) if meta.min_time_ms < end_ms => run.push(meta),
            _ => runs.push(vec![meta]),
        }
        end_ms = end_ms.max(meta.max_time_ms);
    }
    runs.retain(|run| run.len() > 1);
    runs
}

/// Groups blocks by aligned range, without those that cross a border; `blocks` by start.
pub(super) fn split_by_range<'s, 'a>(
    blocks: &'s [&'a BlockMeta],
    range_ms: i64,
) -> Vec<&'s [&'a BlockMeta]> {
    let mut groups = Vec::new();
    let mut rest = blocks;
    while let Some((first, after)) = rest.split_first() {
        // Euclidean, so that times before the epoch are aligned like all others.
        let start_ms = first.min_time_ms.div_euclid(range_ms).saturating_mul(range_ms);
        let end_ms = start_ms.saturating_add(range_ms);
        let count = rest.iter().take_while(|meta| meta.max_time_ms <= end_ms).count();
        if count == 0 {
            rest = after;
            continue;
        }
        let (group, later) = rest.split_at(count);
        groups.push(group);
        rest = later;
    }
    groups
}

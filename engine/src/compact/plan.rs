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
//! The first of these rules that applies is due:
//!
//! 1. Blocks whose ranges overlap are merged, a whole run of them together, so that for each time
//!    the sample of the newest block is kept.
//! 2. Blocks of one aligned range are merged, smallest range first, if they fill the range or a
//!    later block exists. This rule never merges the newest block.
//! 3. A block is rewritten if all its series have deletions, or if more than 5 % of them have and
//!    the block is too large to be merged soon.
//!
//! A block whose [`failed`](crate::block::CompactionMeta::failed) flag is set is never merged, nor
//! are the other blocks of its aligned range. The caller sets the flag after a merge has reported
//! the block. A `deletable` block is ignored. All times are from the blocks, so a wrong clock has
//! no effect. The rules are those of Prometheus' `LeveledCompactor` (`tsdb/compact.go`), except
//! that its rule 3 goes back from the newest block only to the first small block.

use crate::block::{BlockDesc, BlockMeta};
use std::collections::{BTreeMap, BTreeSet};
use tidepool_model::sort;

/// A level's range is this many times the range of the level below.
pub const LEVEL_FACTOR: i64 = 3;

/// Largest number of levels of a store.
pub const LEVELS_MAX: usize = 10;

/// Longest range of a block, whatever the retention: 31 days, in milliseconds.
pub const RANGE_MS_MAX: i64 = 31 * 24 * 3600 * 1000;

/// Percentage of a block's series with deletions beyond which the block is rewritten alone.
pub const TOMBSTONES_PERCENT_MAX: u64 = 5;

/// Hint of a block of only out-of-order samples. Prometheus makes such blocks also for times whose
/// in-order samples are still in the head. A merged block has the hint if all parents have it.
pub const HINT_OUT_OF_ORDER: &str = "from-out-of-order";

/// Hint of a block that this store merged from overlapping blocks, some with in-order samples.
const HINT_IN_ORDER: &str = "from-in-order";

/// Hints of Prometheus' blocks of only some series of a head. These blocks are merged only with
/// blocks of the same hint, since they do not prove that the other series are in blocks too.
const HINTS_PARTIAL: [&str; 2] = ["from-stale-series", "from-selected-series"];

/// Time ranges of the levels of blocks, in milliseconds, ascending.
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
    /// ULIDs of all blocks cut from a head that the parents were made of, ascending.
    pub sources: Vec<String>,
    /// Hints of the new block, such as [`HINT_OUT_OF_ORDER`].
    pub hints: Vec<String>,
}

/// Rule that makes a merge due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The ranges of the blocks overlap.
    Overlap,
    /// The blocks make up a range of a higher level.
    Level,
    /// Many series of the block have deletions.
    Tombstones,
}

impl Levels {
    /// Returns levels from `block_duration_ms` up to a tenth of the retention or [`RANGE_MS_MAX`];
    /// a `retention_ms` of 0 is no limit.
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

    /// Returns levels of these ranges in milliseconds, without ranges that do not ascend.
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

    /// Smallest range of blocks that are rewritten for deletions; others are merged soon anyway.
    fn rewrite_range_ms(&self) -> i64 {
        self.ranges_ms.get(self.ranges_ms.len() / 2).copied().unwrap_or(i64::MAX)
    }
}

impl Plan {
    /// Returns the merge of these blocks; `None` if the list is empty.
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
        // `plan` merges only blocks with equal partial hints, so one parent's hint is that of all.
        for hint in HINTS_PARTIAL {
            if parents.iter().any(|parent| has_hint(parent, hint)) {
                hints.push(hint.to_owned());
            }
        }
        // Without this hint, the new block would look like one of overlapping out-of-order blocks.
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

/// Returns the merge that is due. `fits` returns whether the disk has space to merge these blocks;
/// a merge that does not fit is skipped, since an attempt would only wear the disk.
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
        // The ULID breaks ties, so that equal lists give equal plans.
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
    // A new block with one parent would seem to prove that blocks hold all samples before its end.
    if plan.hints.is_empty() && HeadStart::of(metas).is_of_head(block) {
        plan.hints.push(HINT_OUT_OF_ORDER.to_owned());
    }
    Some(plan)
}

/// Returns the ULIDs of blocks that another block of the list was made of, ascending.
///
/// A crash between the commit of a merged block and the deletion of its parents leaves parents that
/// hold nothing else. Pass only metas of blocks that open: a damaged block must keep its parents.
pub fn superseded(metas: &[BlockMeta]) -> Vec<String> {
    let mut parents: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for meta in metas {
        let of_meta = meta.compaction.parents.iter().map(|parent| parent.ulid.as_str());
        parents.entry(&meta.ulid).or_default().extend(of_meta);
    }
    let names = |child: &str, ulid: &str| parents.get(child).is_some_and(|all| all.contains(ulid));
    let mut found = BTreeSet::new();
    for (child, ulids) in &parents {
        // Blocks that name each other or themselves as parents were not compacted, so they stay.
        let is_gone = |ulid: &&&str| parents.contains_key(**ulid) && !names(ulid, child);
        found.extend(ulids.iter().filter(is_gone).map(|ulid| (*ulid).to_owned()));
    }
    found.into_iter().collect()
}

/// Returns the time before which blocks hold all in-order samples; `i64::MIN` without blocks.
pub fn head_start_ms(metas: &[BlockMeta]) -> i64 {
    HeadStart::of(metas).time_ms
}

/// Returns the blocks with deletions whose range reaches into the time that is read from the log.
pub fn deleted_beside_log(metas: &[BlockMeta]) -> impl Iterator<Item = &BlockMeta> {
    let start_ms = head_start_ms(metas);
    let has_deletions = |meta: &&BlockMeta| meta.stats.num_tombstones > 0;
    let reaches = move |meta: &&BlockMeta| meta.max_time_ms > start_ms && may_lie_beside_log(meta);
    metas.iter().filter(has_deletions).filter(reaches)
}

/// Returns whether, depending on the other blocks, the log may have samples of the block's time.
pub fn may_lie_beside_log(meta: &BlockMeta) -> bool {
    partial_class(meta) > 0 || is_perhaps_out_of_order(meta) || is_merged(meta)
}

/// Start of the time for which only the log has all in-order samples.
struct HeadStart {
    /// End of the last block which proves that all earlier in-order samples are in blocks.
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
    /// Prometheus (also 3.15) merges a block of out-of-order samples with earlier blocks as soon
    /// as a later block exists, and drops the hint. So the head may begin in the middle of the
    /// merged block. Then the later block has out-of-order samples too, so a merged block without
    /// a later block of out-of-order samples proves that blocks hold all samples before its end.
    fn is_doubtful(&self, meta: &BlockMeta) -> bool {
        is_perhaps_out_of_order(meta)
            || (is_merged(meta) && meta.max_time_ms < self.out_of_order_end_ms)
    }

    /// Returns whether the block must not be merged: the merged block would seem to prove that
    /// blocks hold all samples before its end.
    fn is_of_head(&self, meta: &BlockMeta) -> bool {
        meta.max_time_ms > self.time_ms && self.is_doubtful(meta)
    }
}

/// Returns whether the block may hold nothing but out-of-order samples.
///
/// Prometheus before the fix of its issue 18379 drops the hint when it merges two blocks of
/// out-of-order samples, and loses samples that only its log then has. It merges the newest blocks
/// only if they overlap. So a block whose newest parents overlap counts as out-of-order without
/// [`HINT_IN_ORDER`]; at worst, the log keeps some samples that blocks have too. For other blocks
/// see [`HeadStart::is_doubtful()`].
fn is_perhaps_out_of_order(meta: &BlockMeta) -> bool {
    has_hint(meta, HINT_OUT_OF_ORDER)
        || (do_newest_overlap(&meta.compaction.parents) && !has_hint(meta, HINT_IN_ORDER))
}

/// Returns whether the block was merged from several blocks, perhaps some out-of-order ones.
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
    // As in Prometheus, the newest block is not merged, so that it can be copied before.
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
    // As in Prometheus, the search begins with the newest block.
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
    // Prometheus' ratio is tombstones / (series + 1).
    let many = tombstones.saturating_mul(100)
        > series.saturating_add(1).saturating_mul(TOMBSTONES_PERCENT_MAX);
    // As in Prometheus, a block that is deleted entirely is rewritten at any size.
    tombstones >= series || (is_large && many)
}

/// Returns runs of blocks, each overlapping an earlier one; `blocks` is sorted by start.
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

/// Groups blocks by aligned range, without blocks that cross a border; `blocks` is sorted.
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

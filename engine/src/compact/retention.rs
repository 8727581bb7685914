//! Choice of the blocks to drop, by age and size: a pure function. The oldest are dropped first.
//!
//! Age is measured from the end of the newest block, as in Prometheus: a node that receives nothing
//! keeps its blocks, and a clock that jumps ahead deletes nothing. If the clock is earlier than
//! that end, age is measured from the clock: the newest block then comes from a sender whose clock
//! is ahead, and must not push out all other blocks. A clock that is not set, as on a board without
//! a battery, is ignored. Blocks more than a day after all others, as a clock that ran ahead makes
//! them, are ignored until they cover a day themselves. In doubt, the time that deletes less is
//! used. The size limit does not depend on times.

use super::Levels;
use super::plan::split_by_range;
use crate::block::BlockMeta;
use tidepool_model::sort;

/// A clock before this time, 1 January 2025, is not set.
const CLOCK_MS_MIN: i64 = 1_735_689_600_000;

/// Blocks after a longer gap than this are ignored until they cover this duration themselves.
const LEAP_MS: i64 = 24 * 3_600_000;

/// Divisor: at most a fifth of the size limit is reserved for a compaction.
const RESERVE_PARTS: u64 = 5;

/// A block and its size on disk.
#[derive(Clone, Debug)]
pub struct SizedBlock {
    /// Content of the block's `meta.json`.
    pub meta: BlockMeta,
    /// Size of all files of the block, in bytes.
    pub bytes: u64,
    /// Whether age alone does not drop the block.
    pub is_pinned: bool,
}

/// Limits of age and size, and the bytes that are not blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// A block is dropped when it ends this many milliseconds before the newest block; 0 keeps all.
    pub age_ms: i64,
    /// Limit of all bytes together; 0 is no limit.
    pub bytes_max: u64,
    /// Bytes that are not blocks: log, checkpoints, snapshots, unfinished blocks.
    pub other_bytes: u64,
    /// Bytes to keep free for the next compaction, as [`largest_merge_bytes`] returns them; at most
    /// a fifth of `bytes_max` is reserved.
    pub reserve_bytes: u64,
}

/// A block to be dropped, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// ULID of the block to drop.
    pub ulid: String,
    /// The limit that the block exceeds.
    pub reason: DroppedFor,
}

/// Reason why a block is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DroppedFor {
    /// The block is marked as `deletable`: a compaction left no samples of it.
    Nothing,
    /// The block ends before the age limit.
    Age,
    /// The size limit leaves no room for the block.
    Size,
}

/// Returns the blocks that are to be dropped now, oldest first.
pub fn beyond_retention(blocks: &[SizedBlock], retention: &Retention, now_ms: i64) -> Vec<Dropped> {
    let mut newest_first: Vec<&SizedBlock> = blocks.iter().collect();
    sort::sort_by(&mut newest_first, |a, b| {
        (b.meta.max_time_ms, &b.meta.ulid).cmp(&(a.meta.max_time_ms, &a.meta.ulid))
    });
    let kept_from_ms = oldest_kept_ms(&newest_first, retention.age_ms, now_ms);
    let reserve_bytes = retention.reserve_bytes.min(retention.bytes_max / RESERVE_PARTS);
    // The reserve counts as used, so that the next compaction stays within the limit.
    let mut bytes = retention.other_bytes.saturating_add(reserve_bytes);
    let mut dropped = Vec::new();
    for SizedBlock { meta, bytes: block_bytes, is_pinned } in newest_first {
        let reason = if meta.compaction.deletable {
            Some(DroppedFor::Nothing)
        } else if !is_pinned && kept_from_ms.is_some_and(|kept_ms| meta.max_time_ms <= kept_ms) {
            Some(DroppedFor::Age)
        } else {
            // Once a block does not fit, no older block does.
            bytes = bytes.saturating_add(*block_bytes);
            let is_over = retention.bytes_max > 0 && bytes > retention.bytes_max;
            is_over.then_some(DroppedFor::Size)
        };
        dropped.extend(reason.map(|reason| Dropped { ulid: meta.ulid.clone(), reason }));
    }
    dropped.reverse();
    dropped
}

/// Returns an upper bound of the bytes that the largest merge ahead will write: the size of the
/// blocks in one range of the highest level.
pub fn largest_merge_bytes(blocks: &[SizedBlock], levels: &Levels) -> u64 {
    let Some(range_ms) = levels.ranges_ms().last() else { return 0 };
    let mut metas: Vec<&BlockMeta> = blocks.iter().map(|block| &block.meta).collect();
    sort::sort_by(&mut metas, |a, b| (a.min_time_ms, &a.ulid).cmp(&(b.min_time_ms, &b.ulid)));
    let bytes_of = |meta: &&BlockMeta| {
        let found = blocks.iter().find(|block| std::ptr::eq(&block.meta, *meta));
        found.map_or(0, |block| block.bytes)
    };
    let group_bytes = |group: &[&BlockMeta]| group.iter().map(bytes_of).sum();
    let groups = split_by_range(&metas, *range_ms);
    groups.into_iter().filter(|group| group.len() > 1).map(group_bytes).max().unwrap_or(0)
}

/// Returns the latest end at which a block is too old; `None` if no block is too old.
fn oldest_kept_ms(newest_first: &[&SizedBlock], age_ms: i64, now_ms: i64) -> Option<i64> {
    let newest_ms = believed_end_ms(newest_first, age_ms.min(LEAP_MS))?;
    if age_ms <= 0 {
        return None;
    }
    // A clock that is not set would keep all blocks.
    let reference_ms = match now_ms {
        CLOCK_MS_MIN.. => newest_ms.min(now_ms),
        _ => newest_ms,
    };
    Some(reference_ms.saturating_sub(age_ms))
}

/// Returns the end of the newest block, ignoring blocks after a gap of [`LEAP_MS`] that together
/// are shorter than `believed_ms`.
fn believed_end_ms(newest_first: &[&SizedBlock], believed_ms: i64) -> Option<i64> {
    let mut end_ms = newest_first.first()?.meta.max_time_ms;
    let (mut start_ms, mut covered_ms) = (i64::MAX, 0i64);
    for SizedBlock { meta, .. } in newest_first {
        if covered_ms >= believed_ms {
            break;
        }
        if start_ms.saturating_sub(meta.max_time_ms) > LEAP_MS && start_ms != i64::MAX {
            // Blocks after the gap are too short to be believed: the search starts over here.
            (end_ms, covered_ms) = (meta.max_time_ms, 0);
        }
        // The overlap of two blocks must not be counted twice.
        let until_ms = meta.max_time_ms.min(start_ms);
        covered_ms = covered_ms.saturating_add(until_ms.saturating_sub(meta.min_time_ms).max(0));
        start_ms = start_ms.min(meta.min_time_ms);
    }
    Some(end_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockStats, CompactionMeta};
    use DroppedFor::{Age, Nothing, Size};

    const HOUR_MS: i64 = 3_600_000;
    const NOW_MS: i64 = 1_800_000_000_000;

    /// Blocks `a`, `b`, … of two hours and 100 bytes each; the last ends now.
    fn blocks(count: i64) -> Vec<SizedBlock> {
        let block = |i: i64| {
            let min_time_ms = NOW_MS - 2 * HOUR_MS * (count - i);
            let meta = BlockMeta {
                ulid: String::from_utf8_lossy(&[b'a' + i as u8]).into_owned(),
                min_time_ms,
                max_time_ms: min_time_ms + 2 * HOUR_MS,
                stats: BlockStats::default(),
                compaction: CompactionMeta::default(),
                version: 1,
            };
            SizedBlock { meta, bytes: 100, is_pinned: false }
        };
        (0..count).map(block).collect()
    }

    fn dropped(blocks: &[SizedBlock], retention: Retention, now_ms: i64) -> String {
        let letter = |reason| match reason {
            Nothing => '0',
            Age => 'A',
            Size => 'S',
        };
        let all = beyond_retention(blocks, &retention, now_ms);
        all.iter().map(|one| format!("{}{}", one.ulid, letter(one.reason))).collect()
    }

    #[test]
    fn age_is_that_of_the_newest_sample() {
        let hours = |hours: i64| Retention { age_ms: hours * HOUR_MS, ..Retention::default() };
        let blocks = blocks(5);
        assert_eq!(dropped(&blocks, hours(0), NOW_MS), "");
        assert_eq!(dropped(&blocks, hours(9), NOW_MS), "");
        assert_eq!(dropped(&blocks, hours(8), NOW_MS), "aA");
        assert_eq!(dropped(&blocks, hours(3), NOW_MS), "aAbAcA");
        assert_eq!(dropped(&blocks, hours(1), NOW_MS), "aAbAcAdA");
        assert_eq!(dropped(&[], hours(1), NOW_MS), "");
    }

    #[test]
    fn bad_clocks_delete_nothing_more() {
        let retention = Retention { age_ms: 4 * HOUR_MS, ..Retention::default() };
        let mut blocks = blocks(5);
        let at = |blocks: &[SizedBlock], now_ms| dropped(blocks, retention, now_ms);
        assert_eq!(at(&blocks, NOW_MS), "aAbAcA");
        assert_eq!(at(&blocks, i64::MAX), "aAbAcA");
        assert_eq!(at(&blocks, 0), "aAbAcA");
        assert_eq!(at(&blocks, i64::MIN), "aAbAcA");
        assert_eq!(at(&blocks, NOW_MS - 4 * HOUR_MS), "aA");
        // A block from the year 2100 does not push out the others.
        blocks[4].meta.max_time_ms = 4_102_444_800_000;
        assert_eq!(at(&blocks, NOW_MS), "aAbAcA");
        blocks[4].meta.max_time_ms = i64::MAX;
        blocks[0].meta.max_time_ms = i64::MIN;
        assert_eq!(at(&blocks, NOW_MS), "aAbAcA");
    }

    #[test]
    fn a_leap_of_time_is_believed_once_it_has_a_days_worth() {
        let retention = Retention { age_ms: 30 * HOUR_MS, ..Retention::default() };
        let year_ms = 365 * 24 * HOUR_MS;
        let after_leap = |count: usize| {
            let mut all = blocks(5);
            for mut block in blocks(count as i64) {
                let meta = &mut block.meta;
                meta.ulid = meta.ulid.to_uppercase();
                (meta.min_time_ms, meta.max_time_ms) =
                    (meta.min_time_ms + year_ms, meta.max_time_ms + year_ms);
                all.push(block);
            }
            dropped(&all, retention, NOW_MS + year_ms)
        };
        assert_eq!(after_leap(1), "");
        assert_eq!(after_leap(11), "");
        assert_eq!(after_leap(12), "aAbAcAdAeA");
        // A node that was off for a day does not leap.
        let mut all = blocks(5);
        all[4].meta.max_time_ms += 24 * HOUR_MS;
        all[4].meta.min_time_ms += 24 * HOUR_MS;
        assert_eq!(dropped(&all, retention, NOW_MS + 24 * HOUR_MS), "aAbA");
    }

    #[test]
    fn size_counts_everything() {
        let blocks = blocks(5);
        let with = |bytes_max, other_bytes, reserve_bytes| {
            dropped(&blocks, Retention { bytes_max, other_bytes, reserve_bytes, age_ms: 0 }, NOW_MS)
        };
        assert_eq!(with(0, 1_000_000, 1_000_000), "");
        assert_eq!(with(500, 0, 0), "");
        assert_eq!(with(499, 0, 0), "aS");
        assert_eq!(with(500, 1, 0), "aS");
        assert_eq!(with(600, 0, 100), "");
        assert_eq!(with(600, 1, 100), "aS");
        assert_eq!(with(500, 0, 1_000_000), "aS");
        assert_eq!(with(500, 600, 0), "aSbScSdSeS");
    }

    #[test]
    fn what_is_pinned_goes_for_its_size_only() {
        let mut blocks = blocks(5);
        blocks[0].is_pinned = true;
        blocks[2].is_pinned = true;
        let aged = Retention { age_ms: HOUR_MS, ..Retention::default() };
        assert_eq!(dropped(&blocks, aged, NOW_MS), "bAdA");
        let full = Retention { bytes_max: 200, ..aged };
        assert_eq!(dropped(&blocks, full, NOW_MS), "aSbAdA");
    }

    #[test]
    fn what_goes_anyway_takes_no_room() {
        let mut blocks = blocks(5);
        blocks[3].meta.compaction.deletable = true;
        let retention = Retention { age_ms: 7 * HOUR_MS, bytes_max: 250, ..Retention::default() };
        assert_eq!(dropped(&blocks, retention, NOW_MS), "aAbSd0");
    }

    #[test]
    fn the_largest_merge_is_that_of_one_range() {
        let mut blocks = blocks(9);
        for (i, block) in (0..).zip(&mut blocks) {
            block.meta.min_time_ms = i * 2 * HOUR_MS;
            block.meta.max_time_ms = (i + 1) * 2 * HOUR_MS;
        }
        let levels = Levels::from_ranges([2 * HOUR_MS, 6 * HOUR_MS]);
        assert_eq!(largest_merge_bytes(&blocks, &levels), 300);
        assert_eq!(largest_merge_bytes(&blocks[..1], &levels), 0);
        assert_eq!(largest_merge_bytes(&blocks, &Levels::from_ranges([])), 0);
    }
}

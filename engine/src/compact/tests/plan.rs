//! Upstream's tables (`TestLeveledCompactor`, `TestSplitByRange`), and cases of this store.

use super::*;
use crate::block::{BlockDesc, BlockStats, CompactionMeta};
use crate::compact::plan::split_by_range;

fn meta(ulid: &str, min_time_ms: i64, max_time_ms: i64) -> BlockMeta {
    BlockMeta {
        ulid: ulid.to_owned(),
        min_time_ms,
        max_time_ms,
        stats: BlockStats { num_series: 10, ..BlockStats::default() },
        compaction: CompactionMeta { level: 1, ..CompactionMeta::default() },
        version: 1,
    }
}

fn metas(ranges: &[(i64, i64)]) -> Vec<BlockMeta> {
    (1..).zip(ranges).map(|(i, (start, end))| meta(&i.to_string(), *start, *end)).collect()
}

fn with_tombstones(mut meta: BlockMeta, series: u64, tombstones: u64) -> BlockMeta {
    (meta.stats.num_series, meta.stats.num_tombstones) = (series, tombstones);
    meta
}

fn levels() -> Levels {
    Levels::from_ranges([20, 60, 180, 540, 1620])
}

fn planned(metas: &[BlockMeta]) -> String {
    let due = plan(metas, &levels(), |_| true);
    let ulids = due.map(|plan| plan.parents.into_iter().map(|p| p.ulid).collect::<Vec<_>>());
    ulids.unwrap_or_default().join(" ")
}

#[test]
fn aligned_ranges_are_merged_when_they_are_complete() {
    for (why, ranges, expected) in [
        ("one block", &[(0, 20)][..], ""),
        ("a range that still grows", &[(0, 20), (20, 40)], ""),
        ("full, but for the newest block", &[(0, 20), (20, 40), (40, 60)], ""),
        ("full", &[(0, 20), (20, 40), (40, 60), (60, 80)], "1 2 3"),
        ("a gap, and only the newest behind", &[(0, 20), (20, 40), (60, 80)], ""),
        ("a gap that stays", &[(0, 20), (20, 40), (60, 80), (80, 100)], "1 2"),
        ("small ones first", &[(0, 20), (20, 40), (40, 60), (60, 120), (120, 180)], "1 2 3"),
        ("mixed sizes", &[(20, 40), (60, 120), (960, 980), (120, 180), (720, 960)], "1 2 4"),
        ("newest by time, not by name", &[(0, 360), (540, 560), (360, 420), (420, 540)], "3 4"),
        ("before the epoch", &[(-60, -40), (-40, -20), (-20, 0), (0, 20)], "1 2 3"),
        ("across the epoch", &[(-20, 0), (0, 20), (20, 40), (40, 60)], ""),
    ] {
        assert_eq!(planned(&metas(ranges)), expected, "{why}");
    }
}

#[test]
fn overlapping_blocks_come_first() {
    for (ranges, expected) in [
        (&[(0, 20), (19, 40), (40, 60)][..], "1 2"),
        (&[(0, 20), (20, 40), (30, 50)], "2 3"),
        (&[(0, 20), (10, 40), (30, 50)], "1 2 3"),
        (&[(0, 360), (340, 560), (360, 420), (420, 540)], "1 2 3 4"),
        (&[(0, 10), (9, 20), (30, 40), (39, 50)], "1 2"),
        (&[(0, 20), (0, 20)], "1 2"),
        (&[(0, 100), (10, 20), (30, 40), (100, 120)], "1 2 3"),
    ] {
        assert_eq!(planned(&metas(ranges)), expected, "{ranges:?}");
    }
}

#[test]
fn large_blocks_with_deletions_are_rewritten() {
    let large = |series, tombstones| with_tombstones(meta("1", 0, 540), series, tombstones);
    let small = |series, tombstones| with_tombstones(meta("1", 0, 60), series, tombstones);
    assert_eq!(planned(&[large(10, 3)]), "", "the newest is left alone");
    assert_eq!(planned(&[large(10, 3), meta("2", 540, 560)]), "1");
    assert_eq!(planned(&[small(10, 3), meta("2", 60, 80)]), "");
    assert_eq!(planned(&[small(10, 10), meta("2", 60, 80)]), "1", "nothing is left of it");
    assert_eq!(planned(&[large(0, 0), meta("2", 540, 560)]), "");
    assert_eq!(planned(&[large(99, 5), meta("2", 540, 560)]), "");
    assert_eq!(planned(&[large(99, 6), meta("2", 540, 560)]), "1");
    let behind_small = [large(10, 3), meta("2", 540, 560), meta("3", 560, 580)];
    assert_eq!(planned(&behind_small), "1");
    let mut failed = [large(10, 3), meta("2", 540, 560)];
    failed[0].compaction.failed = true;
    assert_eq!(planned(&failed), "");
    let cleaned = plan_cleaning(&[meta("1", 0, 20), small(99, 1)], |_| true);
    assert_eq!(cleaned.map(|plan| (plan.level, plan.reason)), Some((2, Reason::Tombstones)));
}

#[test]
fn failed_blocks_keep_their_range_but_not_others() {
    for (ranges, expected) in [
        (&[(0, 20), (20, 40), (40, 60), (60, 80)][..], ""),
        (&[(0, 20), (20, 40), (60, 80), (80, 100)], ""),
        (&[(0, 20), (20, 40), (40, 60), (60, 120), (120, 180), (180, 200)], ""),
        (&[(0, 20), (20, 40), (60, 80), (80, 100), (100, 120), (120, 140)], "3 4 5"),
        (&[(0, 20), (10, 30), (30, 40)], ""),
        (&[(0, 20), (10, 30), (15, 40)], "1 3"),
    ] {
        let mut metas = metas(ranges);
        metas[1].compaction.failed = true;
        assert_eq!(planned(&metas), expected, "{ranges:?}");
    }
}

#[test]
fn blocks_to_be_deleted_do_not_count() {
    let mut metas = metas(&[(0, 20), (20, 40), (40, 60), (60, 80)]);
    metas[3].compaction.deletable = true;
    assert_eq!(planned(&metas), "");
    metas[3].compaction.deletable = false;
    metas[1].compaction.deletable = true;
    assert_eq!(planned(&metas), "1 3");
}

#[test]
fn what_does_not_fit_is_passed_over() {
    let metas = metas(&[(0, 20), (20, 40), (40, 60), (60, 80), (80, 100), (100, 120), (120, 140)]);
    let due = plan(&metas, &levels(), |parents| parents[0].ulid != "1");
    assert_eq!(due.map(|plan| plan.parents[0].ulid.clone()).as_deref(), Some("4"));
    assert_eq!(plan(&metas, &levels(), |_| false), None);
}

#[test]
fn parts_of_a_head_are_merged_among_themselves() {
    let mut metas = metas(&[(0, 20), (20, 40), (40, 60), (60, 80), (0, 20), (20, 40), (40, 60)]);
    for meta in &mut metas[4..] {
        meta.compaction.hints.push("from-stale-series".to_owned());
    }
    assert_eq!(planned(&metas), "1 2 3");
    assert_eq!(planned(&metas[3..]), "", "their newest is left alone too");
    metas.push(meta("8", 60, 80));
    metas[7].compaction.hints.push("from-stale-series".to_owned());
    let due = plan(&metas[3..], &levels(), |_| true);
    assert_eq!(due.map(|plan| plan.hints), Some(vec!["from-stale-series".to_owned()]));
}

/// Out-of-order blocks of upstream, whose neighbours in time are still in the head's log.
#[test]
fn out_of_order_blocks_of_the_heads_time_wait() {
    let mut metas = metas(&[(0, 20), (20, 40), (60, 80), (65, 85), (90, 120), (120, 140)]);
    for meta in &mut metas[2..] {
        meta.compaction.hints.push(HINT_OUT_OF_ORDER.to_owned());
    }
    assert_eq!(planned(&metas), "");
    // What was cut from the head since.
    metas.push(meta("7", 40, 90));
    assert_eq!(planned(&metas), "7 3 4");
    metas[6].compaction.hints.push("from-stale-series".to_owned());
    assert_eq!(planned(&metas), "");
}

/// Merged blocks of out-of-order samples that lost the hint wait as well.
#[test]
fn merged_blocks_whose_newest_parents_overlap_wait() {
    let mut metas = metas(&[(0, 20), (20, 40), (40, 60), (60, 80)]);
    metas[2].compaction.parents = vec![metas[2].desc(), metas[2].desc()];
    metas[3].compaction.parents = vec![metas[3].desc(), metas[3].desc()];
    assert_eq!(planned(&metas), "");
    // Rewritten for its deletions it proves no more.
    let cleaned = Plan::of(Reason::Tombstones, &[&metas[3]]).map(|plan| plan.hints);
    assert_eq!(cleaned, Some(vec![HINT_OUT_OF_ORDER.to_owned()]));
    metas[3].compaction.parents.clear();
    assert_eq!(planned(&metas), "1 2 3");
}

/// Prometheus merges three blocks once a later one exists, in order or not.
#[test]
fn merged_blocks_before_one_of_out_of_order_samples_wait() {
    let mut metas = metas(&[(-60, -40), (-40, -20), (-20, 0), (0, 60), (60, 80), (60, 120)]);
    metas[3].compaction.parents =
        [(0, 20), (20, 40), (40, 60)].map(|(start, end)| meta("", start, end).desc()).to_vec();
    let merged = &metas[..4];
    assert_eq!((head_start_ms(merged), planned(merged).as_str()), (60, "1 2 3"), "none is later");
    metas[4].compaction.hints.push(HINT_OUT_OF_ORDER.to_owned());
    let with_later = &metas[..5];
    assert_eq!((head_start_ms(with_later), planned(with_later).as_str()), (0, ""));
    // One cut over a part of the merged block's time does not make its end sure.
    let mut recut = with_later.to_vec();
    recut.push(meta("7", 20, 40));
    assert_eq!(head_start_ms(&recut), 40);
    assert_eq!(planned(&recut), "1 2 3", "the merged block takes no part");
    // The head was cut beyond it.
    assert_eq!((head_start_ms(&metas), planned(&metas).as_str()), (120, "5 6"));
    // What was merged of the doubtful one is no better; what was merged here is.
    let mut newest = metas[..5].to_vec();
    newest[4].compaction.hints.clear();
    newest[4].compaction.parents = vec![newest[4].desc(), newest[4].desc()];
    assert_eq!(head_start_ms(&newest), 0, "the later one has lost its hint, too");
    newest[3].compaction.hints.push("from-in-order".to_owned());
    assert_eq!(head_start_ms(&newest), 60);
}

#[test]
fn blocks_merged_here_say_that_they_end_a_head() {
    let mut metas = metas(&[(0, 20), (0, 20), (20, 40)]);
    metas[1].compaction.hints.push(HINT_OUT_OF_ORDER.to_owned());
    let merged = |metas: &[BlockMeta]| {
        let plan = plan(metas, &levels(), |_| true)?;
        let mut merged = meta("4", plan.min_time_ms, plan.max_time_ms);
        (merged.compaction.hints, merged.compaction.parents) = (plan.hints, plan.parents);
        Some((head_start_ms(std::slice::from_ref(&merged)), merged.compaction.hints))
    };
    assert_eq!(merged(&metas[..2]), Some((20, vec!["from-in-order".to_owned()])));
    metas[0].compaction.hints.push(HINT_OUT_OF_ORDER.to_owned());
    let out_of_order = vec![HINT_OUT_OF_ORDER.to_owned()];
    assert_eq!(merged(&metas), Some((i64::MIN, out_of_order)), "beside a block that ends the head");
}

#[test]
fn a_plan_says_what_the_new_block_will_be() {
    let block = |ulid, range: (i64, i64), level, sources: &[&str], hints: &[&str]| {
        let mut meta = meta(ulid, range.0, range.1);
        meta.compaction.level = level;
        meta.compaction.sources = sources.iter().map(|s| (*s).to_owned()).collect();
        meta.compaction.hints = hints.iter().map(|s| (*s).to_owned()).collect();
        meta
    };
    let a = block("a", (1000, 2000), 2, &["01", "10"], &[HINT_OUT_OF_ORDER]);
    let b = block("b", (500, 2500), 3, &["06", "05", "10"], &["from-stale-series"]);
    let due = Plan::of(Reason::Overlap, &[&a, &b]);
    let desc = |meta: &BlockMeta| BlockDesc {
        ulid: meta.ulid.clone(),
        min_time_ms: meta.min_time_ms,
        max_time_ms: meta.max_time_ms,
    };
    let expected = Plan {
        reason: Reason::Overlap,
        parents: vec![desc(&a), desc(&b)],
        min_time_ms: 500,
        max_time_ms: 2500,
        level: 4,
        sources: ["01", "05", "06", "10"].map(str::to_owned).to_vec(),
        hints: vec!["from-stale-series".to_owned()],
    };
    assert_eq!(due, Some(expected));
    assert_eq!(
        Plan::of(Reason::Level, &[&a, &a]).map(|p| p.hints),
        Some(a.compaction.hints.clone())
    );
    assert_eq!(Plan::of(Reason::Level, &[]), None);
}

#[test]
fn ranges_are_split_where_upstream_splits_them() {
    for (range_ms, ranges, expected) in [
        (60, &[(0, 10)][..], &[1][..]),
        (60, &[(0, 60)], &[1]),
        (60, &[(0, 10), (9, 15), (30, 60)], &[3]),
        (60, &[(70, 90), (125, 130), (130, 180), (1000, 1001)], &[1, 2, 1]),
        (60, &[(50, 70), (70, 80)], &[1]),
        (72, &[(0, 144), (144, 216), (216, 288)], &[1, 1]),
        (60, &[(-10, -5)], &[1]),
        (60, &[(-60, -50), (-10, -5)], &[2]),
        (60, &[(-60, -50), (-10, -5), (0, 15)], &[2, 1]),
        (60, &[(i64::MIN, i64::MAX), (0, 10), (i64::MAX - 1, i64::MAX)], &[1, 1]),
    ] {
        let metas = metas(ranges);
        let metas: Vec<_> = metas.iter().collect();
        let groups: Vec<_> = split_by_range(&metas, range_ms).iter().map(|g| g.len()).collect();
        assert_eq!(groups, expected, "{ranges:?}");
    }
}

#[test]
fn levels_end_at_a_tenth_of_the_retention() {
    const HOUR_MS: i64 = 3_600_000;
    let hours = |block_h: i64, retention_h: i64| {
        let levels = Levels::new(block_h * HOUR_MS, retention_h * HOUR_MS);
        levels.ranges_ms().iter().map(|range_ms| range_ms / HOUR_MS).collect::<Vec<_>>()
    };
    assert_eq!(hours(2, 15 * 24), [2, 6, 18]);
    assert_eq!(hours(2, 0), [2, 6, 18, 54, 162, 486]);
    assert_eq!(hours(2, 100 * 365 * 24), [2, 6, 18, 54, 162, 486]);
    assert_eq!(hours(2, 1), [2]);
    assert_eq!(Levels::new(i64::MAX, 1).ranges_ms(), [i64::MAX]);
    assert_eq!(Levels::new(0, 10_000).ranges_ms(), [1, 3, 9, 27, 81, 243, 729]);
}

#[test]
fn parents_that_a_crash_left_are_superseded() {
    let child = |ulid, parents: &[&str]| {
        let mut meta = meta(ulid, 0, 20);
        let desc = |p: &&str| BlockDesc { ulid: (*p).to_owned(), min_time_ms: 0, max_time_ms: 20 };
        meta.compaction.parents = parents.iter().map(desc).collect();
        meta
    };
    let all =
        [child("a", &[]), child("b", &[]), child("c", &["a", "gone"]), child("d", &["c", "b"])];
    assert_eq!(superseded(&all), ["a", "b", "c"]);
    assert_eq!(superseded(&all[..3]), ["a"]);
    assert!(superseded(&[child("a", &["a"])]).is_empty());
    assert!(superseded(&[child("a", &["b"]), child("b", &["a"])]).is_empty());
}

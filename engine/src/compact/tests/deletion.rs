//! Deleted samples are hidden at once, and removed by a merge.

use super::*;
use crate::model::{MatchOp, Matcher, MatcherSpec};

fn matcher(name: &str) -> TestResult<Matcher> {
    let (label, value) = ("n".to_owned(), name.to_owned());
    Ok(Matcher::new(&MatcherSpec { name: label, op: MatchOp::Regex, value })?)
}

fn model(times: std::ops::Range<i64>) -> Model {
    let samples = |n: u64| times.clone().map(move |time| (time, n)).collect();
    (0..4u64).map(|n| (n.to_string(), samples(n))).collect()
}

#[test]
fn deleted_samples_are_hidden_then_gone() -> TestResult {
    let blocks = MemoryBlocks::default();
    let first = write(&blocks, &model(0..100), 30, 0..100)?;
    let second = write(&blocks, &model(100..200), 30, 100..200)?;
    let range = TimeRange { start_ms: 50, end_ms: 120 };
    let deletion = delete_from_blocks(&blocks, &[vec![matcher("1|2")?]], range)?;
    assert_eq!((deletion.blocks.len(), deletion.bad.len()), (2, 0));

    let mut expected = model(0..200);
    for name in ["1", "2"] {
        expected.entry(name.to_owned()).or_default().retain(|time, _| !range.contains(*time));
    }
    assert_eq!(read(&blocks)?, expected);
    let metas = survey(&blocks)?.metas;
    let tombstones: Vec<_> = metas.iter().map(|meta| meta.stats.num_tombstones).collect();
    assert_eq!(tombstones, [2, 2]);

    // The same again, and what lies nowhere, changes nothing.
    assert_eq!(delete_from_blocks(&blocks, &[vec![matcher("2")?]], range)?, Deletion::default());
    assert_eq!(delete_from_blocks(&blocks, &[vec![matcher("7")?]], range)?, Deletion::default());
    let later = TimeRange { start_ms: 200, end_ms: i64::MAX };
    assert_eq!(delete_from_blocks(&blocks, &[vec![]], later)?, Deletion::default());

    let child = run(&mut BlockMerge::new(Rc::new(blocks.clone()), plan_all(&blocks)?, 7)?)?;
    let child = child.ok_or("no block")?;
    assert_eq!(blocks.list()?, std::slice::from_ref(&child.ulid));
    assert_eq!(read(&blocks)?, expected);
    assert!(Tombstones::read(&blocks, &child.ulid)?.is_empty());
    assert_eq!(child.stats.num_samples, 4 * 200 - 2 * 71);
    let parents: Vec<_> = child.compaction.parents.iter().map(|p| p.ulid.clone()).collect();
    assert_eq!(parents, [first.ulid, second.ulid]);
    Ok(())
}

#[test]
fn a_range_without_end_is_cut_at_the_samples() -> TestResult {
    let blocks = MemoryBlocks::default();
    let meta = write(&blocks, &model(10..20), 30, 0..100)?;
    delete_from_blocks(&blocks, &[vec![]], TimeRange { start_ms: 15, end_ms: i64::MAX })?;
    let block = BlockReader::open(&blocks, &meta.ulid)?;
    let series = block.select(&[])?[0];
    assert_eq!(block.deleted_ranges(series), [TimeRange { start_ms: 15, end_ms: 19 }]);
    Ok(())
}

#[test]
fn nothing_left_makes_no_block() -> TestResult {
    let blocks = MemoryBlocks::default();
    write(&blocks, &model(0..100), 30, 0..100)?;
    write(&blocks, &model(100..200), 30, 100..200)?;
    delete_from_blocks(&blocks, &[vec![]], TimeRange::ALL)?;
    let merged = run(&mut BlockMerge::new(Rc::new(blocks.clone()), plan_all(&blocks)?, 7)?)?;
    assert_eq!(merged, None);
    assert!(blocks.list()?.is_empty());
    Ok(())
}

#[test]
fn a_deletion_during_a_merge_is_not_lost() -> TestResult {
    let blocks = MemoryBlocks::default();
    write(&blocks, &model(0..100), 30, 0..100)?;
    write(&blocks, &model(100..200), 30, 100..200)?;
    let mut merge = BlockMerge::new(Rc::new(blocks.clone()), plan_all(&blocks)?, 7)?;
    merge.step(NOW_MS)?;
    delete_from_blocks(&blocks, &[vec![matcher("1")?]], TimeRange::ALL)?;
    assert!(matches!(run(&mut merge), Err(MergeError::Deleted { .. })));
    let mut expected = model(0..200);
    expected.remove("1");
    assert_eq!(read(&blocks)?, expected);
    run(&mut BlockMerge::new(Rc::new(blocks.clone()), plan_all(&blocks)?, 7)?)?;
    assert_eq!(read(&blocks)?, expected);
    Ok(())
}

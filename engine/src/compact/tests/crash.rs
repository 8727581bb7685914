//! A crash at each call that changes storage: before it takes effect, or after.

use super::*;
use crate::model::{MatchOp, Matcher, MatcherSpec};
use std::cell::Cell;

#[derive(Clone)]
struct Dying {
    inner: MemoryBlocks,
    calls_left: Rc<Cell<u32>>,
    /// Whether the failing call still takes effect.
    takes_effect: bool,
}

struct DyingWriter {
    inner: Box<dyn BlockWriter>,
    life: Dying,
}

impl Dying {
    /// Counts a call; returns whether it takes effect, and its result.
    fn call(&self) -> (bool, StorageResult<()>) {
        let dead = Err(StorageError::Io { reason: "the power is gone".to_owned() });
        let left = self.calls_left.get();
        self.calls_left.set(left.saturating_sub(1));
        match left {
            0 => (false, dead),
            1 => (self.takes_effect, dead),
            _ => (true, Ok(())),
        }
    }
}

impl Blocks for Dying {
    fn list(&self) -> StorageResult<Vec<String>> {
        self.inner.list()
    }

    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        self.inner.open(block, file)
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        self.call().1?;
        Ok(Box::new(DyingWriter { inner: self.inner.create(now_ms)?, life: self.clone() }))
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        let (takes_effect, answer) = self.call();
        if takes_effect {
            self.inner.delete(block)?;
        }
        answer
    }

    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()> {
        let (takes_effect, answer) = self.call();
        if takes_effect {
            self.inner.replace_tombstones(block, tombstones, meta)?;
        }
        answer
    }
}

impl BlockWriter for DyingWriter {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> StorageResult<()> {
        self.life.call().1?;
        self.inner.write_at(file, offset, bytes)
    }

    fn link_file(&mut self, block: &str, file: &str, new_file: &str) -> StorageResult<bool> {
        self.life.call().1?;
        self.inner.link_file(block, file, new_file)
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        let (takes_effect, answer) = self.life.call();
        if takes_effect {
            self.inner.commit()?;
        }
        answer
    }
}

/// Three blocks that overlap and disagree, with deletions.
fn three_blocks() -> TestResult<MemoryBlocks> {
    let blocks = MemoryBlocks::default();
    for (n, range) in [(0, 0..300), (1, 200..500), (2, 250..600)] {
        let samples = |series: u64| range.clone().map(|time| (time, 10 * series + n)).collect();
        let model = (0..5u64).map(|series| (series.to_string(), samples(series))).collect();
        write(&blocks, &model, 40, range.clone())?;
    }
    let spec = MatcherSpec { name: "n".to_owned(), op: MatchOp::Equal, value: "3".to_owned() };
    let range = TimeRange { start_ms: 100, end_ms: 270 };
    delete_from_blocks(&blocks, &[vec![Matcher::new(&spec)?]], range)?;
    Ok(blocks)
}

/// Three blocks with long chunks, of which one has a deletion: the files of two are taken over.
fn three_packed_blocks() -> TestResult<MemoryBlocks> {
    let blocks = MemoryBlocks::default();
    for start in [0, 1000, 2000] {
        let samples = || (start..start + 1000).map(|time| (time, time as u64)).collect();
        let model = (0..5).map(|series| (series.to_string(), samples())).collect();
        write(&blocks, &model, SAMPLES_PER_CHUNK_COMPACTED, start..start + 1000)?;
    }
    let spec = MatcherSpec { name: "n".to_owned(), op: MatchOp::Equal, value: "3".to_owned() };
    let range = TimeRange { start_ms: 1100, end_ms: 1270 };
    delete_from_blocks(&blocks, &[vec![Matcher::new(&spec)?]], range)?;
    Ok(blocks)
}

#[test]
fn a_crash_loses_and_doubles_nothing() -> TestResult {
    crash_at_each_call(three_blocks)
}

#[test]
fn a_crash_of_a_merge_that_links_loses_and_doubles_nothing() -> TestResult {
    crash_at_each_call(three_packed_blocks)
}

fn crash_at_each_call(three_blocks: fn() -> TestResult<MemoryBlocks>) -> TestResult {
    let expected = read(&three_blocks()?)?;
    let (mut before_commit, mut after_commit, mut completed) = (0, 0, 0);
    for takes_effect in [false, true] {
        for calls in 1.. {
            let inner = three_blocks()?;
            let parents = inner.list()?;
            let calls_left = Rc::new(Cell::new(calls));
            let dying = Dying { inner: inner.clone(), calls_left, takes_effect };
            let merge = BlockMerge::new(Rc::new(dying), plan_all(&inner)?, 7);
            let ended = merge.and_then(|mut merge| run(&mut merge));
            assert_eq!(read(&inner)?, expected, "after a crash at call {calls}");

            // The restart.
            let blocks = inner.list()?;
            let dropped = superseded(&survey(&inner)?.metas);
            dropped.iter().try_for_each(|ulid| inner.delete(ulid))?;
            assert_eq!(read(&inner)?, expected, "after a restart at call {calls}");
            match (&ended, blocks == parents) {
                (Ok(_), _) => completed += 1,
                (Err(_), true) => {
                    assert!(dropped.is_empty());
                    assert_eq!(inner.list()?, parents);
                    before_commit += 1;
                }
                (Err(_), false) => {
                    assert_eq!(inner.list()?.len(), 1);
                    after_commit += 1;
                }
            }
            run(&mut BlockMerge::new(Rc::new(inner.clone()), plan_all(&inner)?, 7)?)?;
            assert_eq!(read(&inner)?, expected, "after all at call {calls}");
            assert_eq!(inner.list()?.len(), 1);
            if ended.is_ok() {
                break;
            }
        }
    }
    assert_eq!(completed, 2);
    assert!(before_commit > 8 && after_commit > 4, "{before_commit} and {after_commit}");
    Ok(())
}

#[test]
fn deleting_parents_goes_on_where_it_failed() -> TestResult {
    let inner = three_blocks()?;
    let expected = read(&inner)?;
    let calls_left = Rc::new(Cell::new(u32::MAX));
    let dying = Dying { inner: inner.clone(), calls_left: calls_left.clone(), takes_effect: false };
    let mut merge = BlockMerge::new(Rc::new(dying), plan_all(&inner)?, 7)?;
    while merge.step(NOW_MS)?.committed.is_none() {}
    calls_left.set(2);
    assert!(matches!(merge.step(NOW_MS), Err(MergeError::Storage(_))));
    assert_eq!(inner.list()?.len(), 3);
    calls_left.set(u32::MAX);
    let progress = merge.step(NOW_MS)?;
    assert!(progress.done && progress.deleted.len() == 2, "{progress:?}");
    assert_eq!((inner.list()?.len(), read(&inner)?), (1, expected));
    Ok(())
}

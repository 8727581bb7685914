//! Blocks that are cut while the log is read: nothing is lost and nothing comes twice, wherever a
//! crash ends it, with values of every kind, late ones, deletions, and series that lag behind.

use super::model::{same_model, value};
use super::*;
use crate::model::MatchOp;
use crate::storage::{BlockFile, BlockWriter, StorageError, StorageResult};
use proptest::prelude::*;
use std::cell::RefCell;

#[derive(Clone, Debug)]
enum Operation {
    /// Series, step from the newest time of all, value.
    Append(u8, i64, Value),
    /// Many samples in order, which make the log long.
    Advance(u8),
    Delete(u8, TimeRange),
}

/// Blocks that are written, but seen only once they are published.
#[derive(Clone, Default)]
struct Staged {
    blocks: MemoryBlocks,
    written: Rc<RefCell<Vec<Box<dyn BlockWriter>>>>,
}

struct StagedWriter {
    writer: Box<dyn BlockWriter>,
    written: Rc<RefCell<Vec<Box<dyn BlockWriter>>>>,
}

impl BlockWriter for StagedWriter {
    fn id(&self) -> &str {
        self.writer.id()
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> StorageResult<()> {
        self.writer.write_at(file, offset, bytes)
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        self.written.borrow_mut().push(self.writer);
        Ok(())
    }
}

impl Blocks for Staged {
    fn list(&self) -> StorageResult<Vec<String>> {
        Ok(Vec::new())
    }

    fn open(&self, block: &str, _: &str) -> StorageResult<Rc<dyn BlockFile>> {
        Err(StorageError::NotFound { what: block.into() })
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        let writer = self.blocks.create(now_ms)?;
        Ok(Box::new(StagedWriter { writer, written: Rc::clone(&self.written) }))
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        Err(StorageError::NotFound { what: block.into() })
    }

    fn replace_tombstones(&self, block: &str, _: &[u8], _: &[u8]) -> StorageResult<()> {
        Err(StorageError::NotFound { what: block.into() })
    }
}

/// How a replay with cuts ends.
enum Ended {
    Crashed,
    /// A deletion came after a cut, at this record.
    Deletion(u64),
    Done {
        head: Box<Engine>,
        staged: Staged,
        end_ms: Option<i64>,
    },
}

/// Replays with a cut wherever one is due, as the host's head thread does.
fn replay(node: &Node, after_records: u64, parts_max: usize) -> Result<Ended> {
    let storage = Storage {
        wal: Box::new(node.wal.reopened()),
        blocks: Rc::new(node.blocks.clone()),
        head: None,
    };
    let mut head = Engine::open(Role::Head, WITH_LATE, storage)?;
    let staged = Staged { blocks: node.blocks.clone(), ..Staged::default() };
    let (mut end_ms, mut mark) = (None, None);
    for _ in 0..parts_max {
        let progress = head.replay(64)?;
        if mark.is_some_and(|mark| head.deletion_mark().ok() != Some(mark)) {
            return Ok(Ended::Deletion(progress.records));
        }
        if progress.done {
            return Ok(Ended::Done { head: Box::new(head), staged, end_ms });
        }
        if progress.records <= after_records {
            continue;
        }
        let now = head.deletion_mark()?;
        let Some(range) = head.plan_cut()? else { continue };
        mark.get_or_insert(now);
        let storage = Storage {
            wal: Box::new(MemoryWal::default()),
            blocks: Rc::new(staged.clone()),
            head: Some(Rc::clone(&head.head)),
        };
        let mut compactor = Engine::open(Role::Compactor, WITH_LATE, storage)?;
        loop {
            let progress = compactor.compact(1_000_000, ROOM)?;
            if progress.committed.is_some() {
                end_ms = Some(range.end_ms + 1);
                compactor.compact(1_000_000, ROOM)?;
                break;
            }
            if progress.done {
                break;
            }
        }
    }
    Ok(Ended::Crashed)
}

/// Restarts until a replay comes to its end, and publishes so many of its blocks; gives whether
/// that were all.
fn restart_with_cuts(node: &Node, mut crashes: Vec<usize>, published_max: usize) -> Result<bool> {
    let mut after_records = 0;
    loop {
        match replay(node, after_records, crashes.pop().unwrap_or(usize::MAX))? {
            Ended::Crashed => {}
            Ended::Deletion(records) => after_records = records,
            Ended::Done { head, staged, end_ms } => {
                let mut written = staged.written.take().into_iter();
                for writer in written.by_ref().take(published_max) {
                    writer.commit()?;
                }
                let is_all = written.next().is_none();
                if let Some(end_ms) = end_ms.filter(|_| is_all) {
                    while head.forget(end_ms)? {}
                }
                return Ok(is_all);
            }
        }
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        12 => (0u8..6, -1900i64..300, value())
            .prop_map(|(series, step_ms, value)| Operation::Append(series, step_ms, value)),
        4 => (0u8..6).prop_map(Operation::Advance),
        1 => (0u8..6, 0i64..9000, 0i64..3000).prop_map(|(series, start_ms, span)| {
            Operation::Delete(series, TimeRange { start_ms, end_ms: start_ms + span })
        }),
    ]
}

fn name(series: u8) -> String {
    format!("s{series}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_nothing_comes_twice(
        operations in prop::collection::vec(operation(), 1..120),
        crashes in prop::collection::vec(1usize..400, 0..3),
        published in 0usize..4,
        deletes: bool,
    ) {
        // Nothing is cut in the life that writes the log.
        let options = HeadOptions { block_duration_ms: 1_000_000, ..WITH_LATE };
        let mut node = Node::with(options);
        let mut newest_ms = 1000;
        for operation in operations {
            match operation {
                Operation::Append(series, step_ms, value) => {
                    let time_ms = newest_ms + step_ms;
                    if node.append_value(&name(series), time_ms, &value).refusals.is_empty() {
                        newest_ms = newest_ms.max(time_ms);
                    }
                }
                Operation::Advance(series) => {
                    for _ in 0..20 {
                        newest_ms += 30;
                        node.append(&name(series), newest_ms, newest_ms as u64);
                    }
                }
                Operation::Delete(series, range) if deletes => {
                    let value = name(series);
                    let spec = MatcherSpec { name: LABEL_NAME.into(), op: MatchOp::Equal, value };
                    node.engine.delete(&[vec![spec]], range)?;
                }
                Operation::Delete(..) => {}
            }
        }
        let model = node.select(Vec::new(), TimeRange::ALL);
        node.options = WITH_LATE;
        let mut published_max = published;
        while !restart_with_cuts(&node, crashes.clone(), published_max)? {
            // A crash between the blocks.
            let engine = Node::open(&node.wal, &node.blocks, WITH_LATE);
            let between = Node { wal: node.wal.clone(), blocks: node.blocks.clone(), options, engine };
            let got = between.select(Vec::new(), TimeRange::ALL);
            prop_assert!(same_model(&got, &model), "between: {got:?}\n{model:?}");
            published_max += 1;
        }
        node.restart();
        let got = node.select(Vec::new(), TimeRange::ALL);
        prop_assert!(same_model(&got, &model), "{got:?}\n{model:?}");
        node.compact();
        node.restart();
        let got = node.select(Vec::new(), TimeRange::ALL);
        prop_assert!(same_model(&got, &model), "compacted: {got:?}\n{model:?}");
    }
}

#[test]
fn a_long_log_is_cut_and_what_lags_behind_is_kept() -> Result<()> {
    let options = HeadOptions { block_duration_ms: 1_000_000, ..WITH_LATE };
    let mut node = Node::with(options);
    node.append("lagging", 0, 1);
    for time_ms in (10..20_000).step_by(10) {
        node.append("steady", time_ms, time_ms as u64);
        if time_ms % 500 == 0 {
            // In order, but far behind all others; and a series that pauses for long.
            node.append("lagging", time_ms - 1900, 2);
        }
        if time_ms == 100 || time_ms == 19_000 {
            node.append("pausing", time_ms, 3);
        }
    }
    let model = node.select(Vec::new(), TimeRange::ALL);
    node.options = WITH_LATE;
    assert!(restart_with_cuts(&node, Vec::new(), usize::MAX)?);
    assert!(node.blocks.list()?.len() > 4, "{:?}", node.blocks.list());
    node.restart();
    assert!(same_model(&node.select(Vec::new(), TimeRange::ALL), &model));
    assert!(node.engine.figures()?.head_range.start_ms > 15_000);
    Ok(())
}

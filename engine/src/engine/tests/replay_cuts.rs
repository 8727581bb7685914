//! Blocks that are cut during replay: nothing is lost or doubled, wherever a crash ends the replay,
//! with values of every kind, out-of-order samples, deletions, series that lag behind, and little
//! memory; the resulting head is like any other.

use super::deletion::delete_from_model;
use super::model::{same_model, value};
use super::*;
use crate::memory::MemoryBudget;
use crate::storage::{BlockFile, BlockWriter, StorageError, StorageResult};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

thread_local! {
    static USED_PERCENT: Cell<u64> = const { Cell::new(0) };
}

/// A head whose memory is as short as the test sets.
const SHORT: HeadOptions = HeadOptions {
    memory: MemoryBudget { bytes_max: 100 << 20, used_bytes: || USED_PERCENT.get() << 20 },
    ..WITH_OUT_OF_ORDER
};

#[derive(Clone, Debug)]
enum Operation {
    /// Series, step from the newest time of all, value.
    Append(u8, i64, Value),
    /// Many samples in order, which make the log long.
    Advance(u8),
    /// Series, start and end from the newest time.
    Delete(u8, i64, i64),
    Compact,
}

/// Blocks that become visible only when they are published.
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

/// Outcome of a replay with cuts.
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

/// Replays with all due cuts, as the host's head thread does. Each `short_every` parts memory is
/// short until a block is cut; 0 is never.
fn replay(node: &Node, after_records: u64, parts_max: usize, short_every: usize) -> Result<Ended> {
    USED_PERCENT.set(0);
    let storage = Storage {
        wal: Box::new(node.wal.reopened()),
        blocks: Rc::new(node.blocks.clone()),
        head: None,
    };
    let mut head = Engine::open(Role::All, SHORT, storage)?;
    let staged = Staged { blocks: node.blocks.clone(), ..Staged::default() };
    let (mut end_ms, mut mark) = (None, None);
    for part in 1..=parts_max {
        if part.checked_rem(short_every) == Some(0) {
            USED_PERCENT.set(70);
        }
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
        USED_PERCENT.set(0);
        mark.get_or_insert(now);
        let storage = Storage {
            wal: Box::new(MemoryWal::default()),
            blocks: Rc::new(staged.clone()),
            head: Some(Rc::clone(&head.head)),
        };
        let mut compactor = Engine::open(Role::Compactor, WITH_OUT_OF_ORDER, storage)?;
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

/// Restarts until a replay ends, and publishes some of its blocks; returns the head if those were
/// all, and `None` for a crash.
fn restart_with_cuts(
    node: &Node,
    mut crashes: Vec<usize>,
    published_max: usize,
    short_every: usize,
) -> Result<Option<Box<Engine>>> {
    let mut after_records = 0;
    loop {
        let parts_max = crashes.pop().unwrap_or(usize::MAX);
        match replay(node, after_records, parts_max, short_every)? {
            Ended::Crashed => {}
            Ended::Deletion(records) => after_records = records,
            Ended::Done { head, staged, end_ms } => {
                let mut written = staged.written.take().into_iter();
                for writer in written.by_ref().take(published_max) {
                    writer.commit()?;
                }
                if written.next().is_some() {
                    return Ok(None);
                }
                USED_PERCENT.set(0);
                if let Some(end_ms) = end_ms {
                    while head.truncate(end_ms)? {}
                }
                return Ok(Some(head));
            }
        }
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        12 => (0u8..6, -1900i64..300, value())
            .prop_map(|(series, step_ms, value)| Operation::Append(series, step_ms, value)),
        4 => (0u8..6).prop_map(Operation::Advance),
        1 => (0u8..6, -9000i64..0, 0i64..3000)
            .prop_map(|(series, from_ms, span_ms)| Operation::Delete(series, from_ms, span_ms)),
        1 => Just(Operation::Compact),
    ]
}

fn name(series: u8) -> String {
    format!("s{series}")
}

impl Node {
    /// Applies the operation to the node and to a plain map.
    fn run_in(
        &mut self,
        model: &mut Model,
        newest_ms: &mut i64,
        operation: Operation,
        deletes: bool,
    ) -> Result<()> {
        match operation {
            Operation::Append(series, step_ms, value) => {
                let row = (name(series), *newest_ms + step_ms, value);
                let taken_ms = self.append_to_both(model, &[row], 1_000_000)?;
                *newest_ms = taken_ms.unwrap_or(i64::MIN).max(*newest_ms);
            }
            Operation::Advance(series) => {
                for _ in 0..20 {
                    *newest_ms += 30;
                    let value = f64::from_bits(*newest_ms as u64).into();
                    self.append_to_both(model, &[(name(series), *newest_ms, value)], 1_000_000)?;
                }
            }
            Operation::Delete(series, from_ms, span_ms) if deletes => {
                let start_ms = *newest_ms + from_ms;
                let range = TimeRange { start_ms, end_ms: start_ms + span_ms };
                self.delete(&name(series), range.start_ms, range.end_ms)?;
                delete_from_model(model, &name(series), range);
            }
            Operation::Delete(..) => {}
            Operation::Compact => self.compact(),
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_nothing_comes_twice(
        lives in prop::collection::vec(prop::collection::vec(operation(), 1..80), 1..4),
        crashes in prop::collection::vec(1usize..400, 0..3),
        published in 0usize..4,
        short_every in prop_oneof![Just(0usize), 1usize..60],
        deletes: bool,
        by_columns: bool,
        goes_on: bool,
    ) {
        // Nothing is cut in the life that writes the first log.
        let mut node = Node::with(HeadOptions { block_duration_ms: 1_000_000, ..WITH_OUT_OF_ORDER });
        let mut model = Model::new();
        let mut newest_ms = 1000;
        for life in lives {
            node.write_columns(by_columns)?;
            for operation in life {
                node.run_in(&mut model, &mut newest_ms, operation, deletes)?;
            }
            node.options = WITH_OUT_OF_ORDER;
            let mut published_max = published;
            let head = loop {
                let ended = restart_with_cuts(&node, crashes.clone(), published_max, short_every)?;
                if let Some(head) = ended {
                    break head;
                }
                // A crash between the blocks.
                node.restart();
                let got = node.select(Vec::new(), TimeRange::ALL);
                prop_assert!(same_model(&got, &model), "between: {got:?}\n{model:?}");
                published_max += 1;
            };
            if goes_on {
                node.engine = *head;
            } else {
                node.restart();
            }
            let got = node.select(Vec::new(), TimeRange::ALL);
            prop_assert!(same_model(&got, &model), "{got:?}\n{model:?}");
        }
        node.compact();
        node.restart();
        let got = node.select(Vec::new(), TimeRange::ALL);
        prop_assert!(same_model(&got, &model), "compacted: {got:?}\n{model:?}");
    }
}

#[test]
fn a_long_log_is_cut_and_what_lags_behind_is_kept() -> Result<()> {
    let options = HeadOptions { block_duration_ms: 1_000_000, ..WITH_OUT_OF_ORDER };
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
    node.options = WITH_OUT_OF_ORDER;
    assert!(restart_with_cuts(&node, Vec::new(), usize::MAX, 0)?.is_some());
    assert!(node.blocks.list()?.len() > 4, "{:?}", node.blocks.list());
    node.restart();
    assert!(same_model(&node.select(Vec::new(), TimeRange::ALL), &model));
    assert!(node.engine.figures()?.head_range.start_ms > 15_000);
    Ok(())
}

/// Data that was accepted under a limit must be replayed under it: the buffers of the replay took
/// more than the head, and only old samples were cut.
#[test]
fn recent_samples_are_cut_while_memory_is_short() -> Result<()> {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    for time_ms in 10..800 {
        node.append("recent", time_ms, time_ms as u64);
    }
    let model = node.select(Vec::new(), TimeRange::ALL);
    assert!(restart_with_cuts(&node, Vec::new(), usize::MAX, 0)?.is_some());
    assert_eq!(node.blocks.list()?.len(), 0, "all of it belongs into the head");
    assert!(restart_with_cuts(&node, Vec::new(), usize::MAX, 20)?.is_some());
    assert!(node.blocks.list()?.len() > 1, "{:?}", node.blocks.list());
    node.restart();
    assert!(same_model(&node.select(Vec::new(), TimeRange::ALL), &model));
    Ok(())
}

/// With churn, the log held series of many cuts, because rows written during a cut kept whole
/// segments; a replay would have needed memory for all of them.
#[test]
fn a_cut_of_all_ends_the_segment_that_it_frees() -> Result<()> {
    let mut node = Node::with(SHORT);
    for life in 0..5 {
        let newest_ms = 100 * life + 50;
        node.append(&name(life as u8), newest_ms, 1);
        node.append(&name(life as u8), newest_ms - 20, 1);
        USED_PERCENT.set(60);
        let planned = node.engine.plan_cut()?;
        USED_PERCENT.set(0);
        assert_eq!(planned.map(|range| range.end_ms), Some(newest_ms));
        // While the block is made.
        node.append("between", newest_ms + 10, 1);
        node.compact();
    }
    node.restart();
    // Those that have no samples any more are dropped only as the replay ends.
    let created = node.engine.figures()?.counters.series_created;
    assert!(created <= 2, "{created} series");
    Ok(())
}

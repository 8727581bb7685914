//! A log that runs full at any call: nothing is lost, and work is completed once there is space.

use super::*;
use crate::error::Error;
use crate::storage::{StorageError, StorageResult, Wal, WalBatch, WalCheckpoint};
use std::cell::Cell;

/// Calls that have no space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    Append(LogKind),
    Cut(LogKind),
    Checkpoint,
    Commit,
}

/// A log in memory without space for some calls.
struct FullWal {
    wal: MemoryWal,
    full: Rc<Cell<Option<Full>>>,
}

struct FullCheckpoint {
    checkpoint: Box<dyn WalCheckpoint>,
    full: Rc<Cell<Option<Full>>>,
}

fn room(full: &Cell<Option<Full>>, call: Full) -> StorageResult<()> {
    match full.get() == Some(call) {
        true => Err(StorageError::NoSpace { what: "the test".into() }),
        false => Ok(()),
    }
}

impl Wal for FullWal {
    fn append(&mut self, log: LogKind, records: &[Vec<u8>]) -> StorageResult<u32> {
        room(&self.full, Full::Append(log))?;
        self.wal.append(log, records)
    }

    fn replay(&mut self, bytes_max: u32) -> StorageResult<Option<WalBatch>> {
        self.wal.replay(bytes_max)
    }

    fn cut_segment(&mut self, log: LogKind) -> StorageResult<u32> {
        room(&self.full, Full::Cut(log))?;
        self.wal.cut_segment(log)
    }

    fn checkpoint(&mut self, last_segment: u32) -> StorageResult<Box<dyn WalCheckpoint>> {
        let (checkpoint, full) = (self.wal.checkpoint(last_segment)?, Rc::clone(&self.full));
        Ok(Box::new(FullCheckpoint { checkpoint, full }))
    }

    fn truncate_out_of_order(&mut self, last_segment: u32) -> StorageResult<()> {
        self.wal.truncate_out_of_order(last_segment)
    }
}

impl WalCheckpoint for FullCheckpoint {
    fn append(&mut self, records: &[Vec<u8>]) -> StorageResult<()> {
        room(&self.full, Full::Checkpoint)?;
        self.checkpoint.append(records)
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        room(&self.full, Full::Commit)?;
        self.checkpoint.commit()
    }
}

fn full_node() -> (Node, Rc<Cell<Option<Full>>>) {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    let full = Rc::new(Cell::new(None));
    let wal = FullWal { wal: node.wal.reopened(), full: Rc::clone(&full) };
    let storage = Storage { wal: Box::new(wal), blocks: Rc::new(node.blocks.clone()), head: None };
    node.engine = Engine::open(Role::All, WITH_OUT_OF_ORDER, storage).expect("sound options");
    while !node.engine.replay(64).expect("a sound log").done {}
    (node, full)
}

fn is_no_space<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Storage(StorageError::NoSpace { .. })))
}

/// Works until nothing is left to do, or space is missing.
fn compact(node: &mut Node) -> Result<()> {
    while !node.engine.compact(1_000_000, ROOM)?.done {}
    Ok(())
}

#[test]
fn a_log_that_could_not_shrink_does_so_once_there_is_room() {
    for call in [Full::Checkpoint, Full::Commit, Full::Cut(LogKind::OutOfOrder)] {
        let (mut node, full) = full_node();
        for time_ms in (0..1000).step_by(100) {
            node.append("s", time_ms, 1);
        }
        // Out-of-order, and as old as what is cut.
        node.append("s", 50, 2);
        for time_ms in (1000..1700).step_by(100) {
            node.append("s", time_ms, 1);
        }
        full.set(Some(call));
        let before = node.wal.segments(LogKind::InOrder);
        for _ in 0..3 {
            assert!(is_no_space(compact(&mut node)), "{call:?}");
        }
        let figures = node.engine.figures().expect("storage that works");
        assert_eq!((figures.blocks, figures.head_range.start_ms), (1, 1000), "{call:?}");
        let expected = node.select(Vec::new(), TimeRange::ALL);
        assert_eq!(expected["s"].len(), 18);
        full.set(None);
        compact(&mut node).expect("there is room");
        let after = node.wal.segments(LogKind::InOrder);
        assert!(after.first() > before.first(), "{call:?}: {before:?}, {after:?}");
        assert_eq!(node.engine.figures().expect("storage that works").blocks, 1, "{call:?}");
        assert_eq!(node.select(Vec::new(), TimeRange::ALL), expected, "{call:?}");
        node.restart();
        assert_eq!(node.select(Vec::new(), TimeRange::ALL), expected, "{call:?}");
    }
}

#[test]
fn a_batch_without_room_leaves_no_trace() {
    let (mut node, full) = full_node();
    node.append("old", 1000, 1);
    let figures = |node: &Node| {
        let f = node.engine.figures().expect("storage that works");
        (f.head_series, f.head_chunks, f.head_symbols)
    };
    let before = figures(&node);
    for call in [Full::Append(LogKind::InOrder), Full::Append(LogKind::OutOfOrder)] {
        full.set(Some(call));
        for i in 0..100 {
            // An out-of-order row of a new series beside an in-order one of another.
            let refused = node.engine.append_batch("append", 1_000_000, |head, batch| {
                for (name, time_ms) in [(format!("new{i}"), 900), ("old".to_owned(), 900)] {
                    let labels = Labels::from_sorted([(LABEL_NAME, name.as_str())]);
                    let labels = match name.as_str() {
                        "old" => Labels::from_sorted([(LABEL_NAME, "old"), ("job", "test")]),
                        _ => labels,
                    };
                    let slot = head.series_by_labels(batch, &labels).expect("a valid label set");
                    Ingest::check(head, batch, slot, time_ms, Value::Float(2.0))?;
                }
                Ok(())
            });
            assert!(is_no_space(refused), "{call:?}");
        }
        assert_eq!(figures(&node), before, "{call:?}: nothing of it stays in memory");
    }
    full.set(None);
    node.append("old", 900, 3);
    node.append("new", 1100, 1);
    let expected = node.select(Vec::new(), TimeRange::ALL);
    assert_eq!((expected["old"].len(), expected["new"].len()), (2, 1));
}

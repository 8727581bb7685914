//! Blocks that a reader keeps open between reads: changes are seen, no remaining block is opened
//! twice, and the limits hold.

use super::super::kept_blocks::BYTES_MAX;
use super::*;
use crate::block::BlockReader;
use crate::model::MatchOp;
use crate::storage::{BlockFile, BlockWriter, Blocks, StorageResult};
use std::cell::Cell;

struct Watched {
    blocks: MemoryBlocks,
    opened: Rc<Cell<usize>>,
}

impl Blocks for Watched {
    fn list(&self) -> StorageResult<Vec<String>> {
        self.blocks.list()
    }

    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        if file == "index" {
            self.opened.set(self.opened.get() + 1);
        }
        self.blocks.open(block, file)
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        self.blocks.create(now_ms)
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        self.blocks.delete(block)
    }

    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()> {
        self.blocks.replace_tombstones(block, tombstones, meta)
    }
}

/// A reader of a node's blocks and head.
struct Reader {
    engine: Engine,
    opened: Rc<Cell<usize>>,
}

impl Reader {
    fn of(node: &Node, role: Role) -> Reader {
        let opened = Rc::new(Cell::new(0));
        let blocks = Watched { blocks: node.blocks.clone(), opened: Rc::clone(&opened) };
        let storage = Storage {
            wal: Box::new(MemoryWal::default()),
            blocks: Rc::new(blocks),
            head: Some(Rc::clone(&node.engine.head)),
        };
        Reader { engine: Engine::open(role, node.options, storage).expect("a reader"), opened }
    }

    /// Times of all samples of a metric, and the number of indexes opened for them.
    fn times(&self, name: &str) -> (Vec<i64>, usize) {
        self.select(MatchOp::Equal, name)
    }

    fn select(&self, op: MatchOp, name: &str) -> (Vec<i64>, usize) {
        let matchers = vec![MatcherSpec { name: LABEL_NAME.into(), op, value: name.into() }];
        let selection = all_of(matchers, TimeRange::ALL);
        self.opened.set(0);
        let mut cursor = self.engine.select(&selection).expect("a selection");
        let series = cursor.next(u32::MAX).expect("sound data");
        let chunks = series.iter().flat_map(|series| &series.chunks);
        let times = chunks.flat_map(|chunk| {
            let values = crate::chunk::values(chunk).expect("a sound chunk");
            values.map(|value| value.expect("a sound chunk").0).collect::<Vec<_>>()
        });
        (times.collect(), self.opened.get())
    }

    fn kept_bytes(&self) -> usize {
        let kept = self.engine.kept_blocks.borrow();
        kept.readers().map(|reader: &Rc<BlockReader>| reader.memory_bytes()).sum()
    }
}

fn fill(node: &mut Node, times: std::ops::Range<i64>) {
    for time_ms in times.step_by(100) {
        node.append("m", time_ms, 1);
    }
    node.compact();
}

#[test]
fn blocks_that_come_and_go_are_seen_and_others_stay_open() {
    let mut node = Node::new();
    fill(&mut node, 0..8_000);
    let reader = Reader::of(&node, Role::Query);
    let all = |end_ms: i64| (0..end_ms).step_by(100).collect::<Vec<i64>>();
    let count = node.blocks.list().expect("blocks").len();
    assert!(count >= 2, "{count}");
    assert_eq!(reader.times("m"), (all(8_000), count));
    assert_eq!(reader.times("m"), (all(8_000), 0));

    // New ones, also in the place of others that are merged.
    fill(&mut node, 8_000..30_000);
    let (times, opened) = reader.times("m");
    assert_eq!(times, all(30_000));
    assert!(opened > 0);
    assert_eq!(reader.times("m"), (all(30_000), 0));

    // One is dropped: its samples are gone, and it is kept open no longer.
    let listed = node.blocks.list().expect("blocks");
    let dropped = BlockReader::open(&node.blocks, &listed[0]).expect("a block");
    let gone = dropped.meta().time_range();
    node.blocks.delete(&listed[0]).expect("memory");
    let left: Vec<i64> = all(30_000).into_iter().filter(|time| !gone.contains(*time)).collect();
    assert!(left.len() < 300);
    assert_eq!(reader.times("m"), (left, 0));
    let kept = reader.engine.kept_blocks.borrow().readers().count();
    assert_eq!(kept, node.blocks.list().expect("blocks").len());
}

/// An instance that may replace tombstones reads them each time.
#[test]
fn other_roles_keep_nothing() {
    let mut node = Node::new();
    fill(&mut node, 0..8_000);
    let count = node.blocks.list().expect("blocks").len();
    let reader = Reader::of(&node, Role::Compactor);
    for _ in 0..2 {
        assert_eq!(reader.times("m").1, count);
    }
    assert_eq!(reader.engine.kept_blocks.borrow().readers().count(), 0);
}

#[test]
fn no_more_is_kept_than_may_be() {
    let mut node = Node::new();
    for time_ms in (0..8_000).step_by(1000) {
        for series in 0..500 {
            node.append(&format!("metric_{series:0100}_{time_ms}"), time_ms, 1);
        }
        node.compact();
    }
    let reader = Reader::of(&node, Role::Query);
    let listed = node.blocks.list().expect("blocks");
    for _ in 0..3 {
        // All of them, so that all symbols are decoded.
        let all = reader.select(MatchOp::Regex, ".+");
        assert_eq!(all.0.len(), 8 * 500);
        assert!(all.1 > 0, "not all blocks can have stayed open");
        assert!(reader.kept_bytes() > BYTES_MAX, "{}", reader.kept_bytes());
        // As the next read finds it.
        reader.engine.kept_blocks.borrow_mut().begin(&listed);
        assert!(reader.kept_bytes() <= BYTES_MAX, "{}", reader.kept_bytes());
    }
}

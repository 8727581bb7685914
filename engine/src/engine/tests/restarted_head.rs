//! A head that is restarted during a cut, at any call, and takes further samples: these are in no
//! block, and must not be dropped.

use super::*;
use crate::error::{HeadLost, RemoteError};
use crate::select::{ExemplarSource, HeadSource, Lookup, SeriesSource, StringSource};
use crate::storage::{BlockFile, BlockWriter, StorageResult};
use std::cell::{Cell, RefCell};

/// A node whose head is restarted before one of the calls of others.
struct Restarted {
    node: RefCell<Node>,
    /// Number of calls before the restart.
    left: Cell<Option<usize>>,
    is_second_life: Cell<bool>,
    /// Times of the samples taken since the restart.
    taken_ms: RefCell<Vec<i64>>,
}

/// The head for another instance.
struct RestartedHead(Rc<Restarted>);

/// A cursor, which ends with the head that opened it.
struct Cursor {
    series: Box<dyn SeriesSource>,
    node: Rc<Restarted>,
    was_second_life: bool,
}

/// The blocks for another instance.
struct RestartedBlocks(Rc<Restarted>);

struct Writer(Rc<Restarted>, Box<dyn BlockWriter>);

impl Restarted {
    /// Counts a call of another instance. Samples arrive at the times that are being cut.
    fn call(&self) {
        let Ok(mut node) = self.node.try_borrow_mut() else { return };
        match self.left.get() {
            Some(0) => {
                node.restart();
                self.is_second_life.set(true);
                self.left.set(None);
            }
            left => self.left.set(left.map(|left| left - 1)),
        }
        let mut taken_ms = self.taken_ms.borrow_mut();
        if self.is_second_life.get() && taken_ms.len() < 100 {
            let time_ms = 400 + taken_ms.len() as i64;
            assert_eq!(node.append("after the restart", time_ms, 7).samples_written, 1);
            taken_ms.push(time_ms);
        }
    }
}

impl RestartedHead {
    fn head(&self) -> Rc<dyn HeadSource> {
        self.0.call();
        Rc::clone(&self.0.node.borrow().engine.head)
    }
}

impl HeadSource for RestartedHead {
    fn select(
        &self,
        matchers: &[MatcherSpec],
        range: TimeRange,
        external: &Labels,
    ) -> Result<Box<dyn SeriesSource>> {
        let series = self.head().select(matchers, range, external)?;
        let node = Rc::clone(&self.0);
        let was_second_life = node.is_second_life.get();
        Ok(Box::new(Cursor { series, node, was_second_life }))
    }

    fn series(&self, lookup: &Lookup) -> Result<Box<dyn SeriesSource>> {
        self.head().series(lookup)
    }

    fn label_names(&self, lookup: &Lookup) -> Result<Box<dyn StringSource>> {
        self.head().label_names(lookup)
    }

    fn label_values(&self, name: &str, lookup: &Lookup) -> Result<Box<dyn StringSource>> {
        self.head().label_values(name, lookup)
    }

    fn delete(&self, selectors: &[Vec<MatcherSpec>], range: TimeRange) -> Result<u64> {
        self.head().delete(selectors, range)
    }

    fn exemplars(&self, range: TimeRange) -> Result<Box<dyn ExemplarSource>> {
        self.head().exemplars(range)
    }

    fn plan_cut(&self) -> Result<Option<TimeRange>> {
        self.head().plan_cut()
    }

    fn truncate(&self, before_ms: i64) -> Result<bool> {
        self.head().truncate(before_ms)
    }

    fn deletion_mark(&self) -> Result<u64> {
        let mark = self.head().deletion_mark()?;
        // Each life has a seed of its own.
        Ok(mark.wrapping_add(u64::from(self.0.is_second_life.get()) << 32))
    }
}

impl SeriesSource for Cursor {
    fn next_series(&mut self) -> Result<Option<crate::wire::ChunkedSeries>> {
        self.node.call();
        match self.was_second_life == self.node.is_second_life.get() {
            true => self.series.next_series(),
            false => Err(RemoteError::from(HeadLost::Restarted).into()),
        }
    }

    fn rewind(&mut self) -> Result<()> {
        self.series.rewind()
    }
}

impl RestartedBlocks {
    fn blocks(&self) -> MemoryBlocks {
        self.0.call();
        self.0.node.borrow().blocks.clone()
    }
}

impl Blocks for RestartedBlocks {
    fn list(&self) -> StorageResult<Vec<String>> {
        self.blocks().list()
    }

    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        self.blocks().open(block, file)
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        Ok(Box::new(Writer(Rc::clone(&self.0), self.blocks().create(now_ms)?)))
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        self.blocks().delete(block)
    }

    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()> {
        self.blocks().replace_tombstones(block, tombstones, meta)
    }
}

impl BlockWriter for Writer {
    fn id(&self) -> &str {
        self.1.id()
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> StorageResult<()> {
        self.0.call();
        self.1.write_at(file, offset, bytes)
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        self.0.call();
        self.1.commit()
    }
}

/// Does all due work, with a new instance after each failure; returns the number of failures.
fn compact(node: &Rc<Restarted>) -> usize {
    let mut failed = 0;
    loop {
        let storage = Storage {
            wal: Box::new(MemoryWal::default()),
            blocks: Rc::new(RestartedBlocks(Rc::clone(node))),
            head: Some(Rc::new(RestartedHead(Rc::clone(node)))),
        };
        let mut compactor =
            Engine::open(Role::Compactor, WITH_OUT_OF_ORDER, storage).expect("options");
        loop {
            match compactor.compact(1_000_000, ROOM).map(|progress| progress.done) {
                Ok(false) => {}
                Ok(true) => return failed,
                Err(_) => {
                    failed += 1;
                    assert!(failed < 3, "a head that stays is cut");
                    break;
                }
            }
        }
    }
}

#[test]
fn what_it_takes_before_the_cut_goes_on_is_kept() {
    let mut failed = 0;
    for calls in 0.. {
        let mut node = Node::with(WITH_OUT_OF_ORDER);
        for time_ms in (0..1_700).step_by(100) {
            node.append("a", time_ms, 1);
            node.append("b", time_ms, 2);
        }
        let mut expected = node.select(Vec::new(), TimeRange::ALL);
        let node = Rc::new(Restarted {
            node: RefCell::new(node),
            left: Cell::new(Some(calls)),
            is_second_life: Cell::default(),
            taken_ms: RefCell::default(),
        });
        failed += compact(&node);
        if !node.is_second_life.get() {
            assert!(calls > 15, "only {calls} calls");
            break;
        }
        let value = Value::Float(f64::from_bits(7));
        let rows = node.taken_ms.borrow().iter().map(|time_ms| (*time_ms, value.clone())).collect();
        expected.insert("after the restart".into(), rows);
        let mut node = node.node.borrow_mut();
        for life in 0..2 {
            let got = node.select(Vec::new(), TimeRange::ALL);
            assert_eq!(got, expected, "restarted after {calls} calls, life {life}");
            node.restart();
        }
        assert!(node.engine.figures().expect("memory").head_range.start_ms >= 1000);
    }
    assert!(failed > 0);
}

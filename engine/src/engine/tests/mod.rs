//! Whole engines on storage in memory.

mod answers;
mod deletion;
mod dumps;
mod ends;
mod faults;
mod foreign_blocks;
mod head_reader;
mod hostile;
mod kept_blocks;
mod kinds;
mod lookups;
mod model;
mod moving_blocks;
mod numbers;
mod pieces;
mod plans;
mod repeated;
mod replay_cuts;
mod requests;
mod restarted_head;
mod saved;
mod segments;
mod space;
mod start_timestamps;
mod times;
#[cfg(feature = "promql")]
mod views;

use super::*;
use crate::memory::MemoryBudget;
use crate::model::{LABEL_NAME, LabelLimits};
use crate::select::FrameFormat;
use crate::storage::LogKind;
use crate::storage::memory::{MemoryBlocks, MemoryWal};
use faults::{FailingBlocks, FailingWal, Fault};
use std::collections::BTreeMap;

const OPTIONS: HeadOptions = HeadOptions {
    block_duration_ms: 1000,
    future_limit_ms: 600_000,
    out_of_order_window_ms: 0,
    series_max: 0,
    exemplars_max: 100,
    memory: MemoryBudget::UNBOUNDED,
    label_limits: LabelLimits::NONE,
    hash_seed: 5,
};

const WITH_OUT_OF_ORDER: HeadOptions = HeadOptions { out_of_order_window_ms: 2000, ..OPTIONS };

const ROOM: Room = Room { free_bytes: u64::MAX, other_bytes: 0, memory_bytes: u64::MAX };

/// Values by metric name and time.
type Model = BTreeMap<String, BTreeMap<i64, Value>>;

/// An engine, with storage that outlives it.
struct Node {
    wal: MemoryWal,
    blocks: MemoryBlocks,
    options: HeadOptions,
    engine: Engine,
}

/// All chunks of the series that matchers select.
fn all_of(matchers: Vec<MatcherSpec>, range: TimeRange) -> Selection {
    Selection {
        matchers,
        range,
        format: FrameFormat::ChunkedSeries,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external: Labels::default(),
    }
}

impl Node {
    fn new() -> Node {
        Node::with(OPTIONS)
    }

    fn with(options: HeadOptions) -> Node {
        let (wal, blocks) = (MemoryWal::default(), MemoryBlocks::default());
        let engine = Node::open(&wal, &blocks, options);
        Node { wal, blocks, options, engine }
    }

    fn open(wal: &MemoryWal, blocks: &MemoryBlocks, options: HeadOptions) -> Engine {
        let mut engine = Node::open_unread(wal, blocks, options);
        while !engine.replay(64).expect("a sound log").done {}
        engine
    }

    fn open_unread(wal: &MemoryWal, blocks: &MemoryBlocks, options: HeadOptions) -> Engine {
        let wal = Box::new(FailingWal(wal.reopened()));
        let storage = Storage { wal, blocks: Rc::new(FailingBlocks(blocks.clone())), head: None };
        Engine::open(Role::All, options, storage).expect("sound options")
    }

    fn restart(&mut self) {
        self.engine = Node::open(&self.wal, &self.blocks, self.options);
    }

    fn write_columns(&mut self, by_columns: bool) -> Result<()> {
        if by_columns { self.engine.log_by_columns() } else { Ok(()) }
    }

    fn append(&mut self, name: &str, timestamp_ms: i64, bits: u64) -> WriteOutcome {
        let labels = Labels::from_sorted([(LABEL_NAME, name), ("job", "test")]);
        let series = self.engine.series_ref(&labels).expect("a valid label set");
        let row = (series, Sample { timestamp_ms, value: f64::from_bits(bits) });
        self.engine.append(std::iter::once(row), 1_000_000).expect("storage that works")
    }

    fn append_value(&mut self, name: &str, timestamp_ms: i64, value: &Value) -> WriteOutcome {
        let rows = [(name.to_owned(), timestamp_ms, value.clone())];
        self.append_rows(&rows, 1_000_000).expect("storage that works")
    }

    /// Appends one batch of (metric name, time, value).
    fn append_rows(&mut self, rows: &[(String, i64, Value)], now_ms: i64) -> Result<WriteOutcome> {
        self.engine.append_batch("append", now_ms, |head, batch| {
            for (name, timestamp_ms, value) in rows {
                let labels = Labels::from_sorted([(LABEL_NAME, &**name), ("job", "test")]);
                let slot = head.series_by_labels(batch, &labels).expect("a valid label set");
                Ingest::check(head, batch, slot, *timestamp_ms, value.clone())?;
            }
            Ok(())
        })
    }

    fn compact(&mut self) {
        while !self.engine.compact(1_000_000, ROOM).expect("storage that works").done {}
    }

    fn select(&self, matchers: Vec<MatcherSpec>, range: TimeRange) -> Model {
        let selection = all_of(matchers, range);
        let mut cursor = self.engine.select(&selection).expect("a valid selection");
        let mut model = Model::new();
        let mut last = Labels::default();
        loop {
            let series = cursor.next(100).expect("sound data");
            if series.is_empty() {
                return model;
            }
            for one in series {
                assert!(last < one.labels, "series come in label order, each once");
                let mut samples = BTreeMap::new();
                let mut end_ms = i64::MIN;
                for chunk in &one.chunks {
                    assert!(chunk.min_time_ms > end_ms, "chunks do not overlap");
                    end_ms = chunk.max_time_ms;
                    for value in crate::chunk::values(chunk).expect("a sound header") {
                        let (time_ms, value) = value.expect("a sound chunk");
                        if range.contains(time_ms) {
                            samples.insert(time_ms, value);
                        }
                    }
                }
                if !samples.is_empty() {
                    model.insert(one.labels.get(LABEL_NAME).to_owned(), samples);
                }
                last = one.labels;
            }
        }
    }
}

#[test]
fn blocks_are_cut_and_the_log_shrinks() {
    let mut node = Node::new();
    for time_ms in (0..10_000).step_by(50) {
        node.append("s", time_ms, 1);
        node.compact();
    }
    let figures = node.engine.figures().expect("storage that works");
    // 10 s of data, of which up to 1.5 s stay in the head. The first three blocks, and the next
    // three, are merged; the newest never is, since its range may still grow.
    assert_eq!(figures.blocks, 5, "{figures:?}");
    assert!(figures.head_range.start_ms >= 8000, "{figures:?}");
    let segments = node.wal.segments(LogKind::InOrder);
    assert!(segments.len() <= 5 && segments[0] > 10, "{segments:?}");
    node.restart();
    assert_eq!(node.select(Vec::new(), TimeRange::ALL)["s"].len(), 200);
}

/// The head has chunks of 120 samples, blocks have longer ones: a merge has nothing to join.
#[test]
fn cuts_join_the_chunks_of_the_head() -> Result<()> {
    let mut node = Node::new();
    for time_ms in (0..2000).step_by(2) {
        node.append("s", time_ms, ((time_ms / 7) as f64).to_bits());
    }
    let chunks = node.engine.select(&all_of(Vec::new(), TimeRange::ALL))?.next(100)?;
    assert_eq!(chunks[0].chunks.len(), 10, "five for each second");
    node.compact();
    let cut = survey(&node.blocks)?.metas;
    let stats: Vec<_> = cut.iter().map(|m| (m.stats.num_samples, m.stats.num_chunks)).collect();
    assert_eq!(stats, [(500, 1)], "one block of a second");
    let read = &node.select(Vec::new(), TimeRange::ALL)["s"];
    let sent = (0..2000).step_by(2).map(|t| (t, Value::Float((t / 7) as f64)));
    assert!(read.iter().map(|(t, v)| (*t, v.clone())).eq(sent));
    Ok(())
}

#[test]
fn what_is_pinned_is_not_merged_until_it_is_let_go() -> Result<()> {
    let mut node = Node::new();
    for time_ms in (0..10_000).step_by(50) {
        node.append("s", time_ms, 1);
        loop {
            node.engine.pin(node.blocks.list()?)?;
            if node.engine.compact(1_000_000, ROOM)?.done {
                break;
            }
        }
    }
    assert_eq!(node.engine.figures()?.blocks, 9);
    node.engine.pin(Vec::new())?;
    node.compact();
    assert_eq!(node.engine.figures()?.blocks, 5);
    Ok(())
}

#[test]
fn an_open_cursor_keeps_what_it_will_show() {
    let mut node = Node::new();
    for time_ms in (0..1600).step_by(10) {
        node.append("s", time_ms, 1);
    }
    let selection = all_of(Vec::new(), TimeRange::ALL);
    let mut cursor = node.engine.select(&selection).expect("a valid selection");
    let busy = loop {
        match node.engine.compact(1_000_000, ROOM) {
            Ok(progress) if progress.done => break false,
            Ok(_) => {}
            Err(Error::Busy) => break true,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(busy, "the head must not drop what the cursor has not shown yet");
    let shown = cursor.next(u32::MAX).expect("sound data");
    assert_eq!(shown.len(), 1);
    drop(cursor);
    node.compact();
    assert_eq!(node.engine.figures().map(|figures| figures.head_range.start_ms).ok(), Some(1000));
}

#[test]
fn a_refused_batch_leaves_nothing_in_the_log() {
    let mut node = Node::new();
    node.append("s", 100, 1);
    let body = [0x0a, 0x04, 0x0a, 0x02, 0x0a];
    let broken = node.engine.append_remote_write(RemoteWriteVersion::V1, &body, 0);
    assert!(matches!(broken, Err(Error::Malformed(_))));
    assert!(
        node.engine.append([(99, Sample { timestamp_ms: 1, value: 1.0 })].into_iter(), 0).is_err()
    );
    node.restart();
    assert_eq!(node.select(Vec::new(), TimeRange::ALL).len(), 1);
}

#[test]
fn calls_outside_a_role_are_refused() {
    let storage = || Storage {
        wal: Box::new(MemoryWal::default()),
        blocks: Rc::new(MemoryBlocks::default()),
        head: None,
    };
    assert!(matches!(Engine::open(Role::Query, OPTIONS, storage()), Err(Error::Invalid(_))));
    let mut head = Engine::open(Role::Head, OPTIONS, storage()).expect("sound options");
    assert!(matches!(head.compact(0, ROOM), Err(Error::WrongRole { call: "compact" })));
    assert!(matches!(head.series_ref(&Labels::default()), Err(Error::NotOpen)), "not replayed");
    let short = HeadOptions { block_duration_ms: 999, ..OPTIONS };
    assert!(matches!(Engine::open(Role::All, short, storage()), Err(Error::Invalid(_))));
}

#[test]
fn retention_drops_whole_blocks() {
    let options = Options { retention_ms: 3000, ..Options::from(OPTIONS) };
    let (wal, blocks) = (MemoryWal::default(), MemoryBlocks::default());
    let storage = Storage { wal: Box::new(wal), blocks: Rc::new(blocks), head: None };
    let mut engine = Engine::open(Role::All, options, storage).expect("sound options");
    assert!(engine.replay(1).expect("an empty log").done);
    let labels = Labels::from_sorted([(LABEL_NAME, "s")]);
    let mut dropped = 0;
    for timestamp_ms in (0..10_000).step_by(50) {
        let series = engine.series_ref(&labels).expect("a valid label set");
        let row = (series, Sample { timestamp_ms, value: 1.0 });
        engine.append(std::iter::once(row), 1_000_000).expect("storage that works");
        loop {
            let progress = engine.compact(1_000_000, ROOM).expect("storage that works");
            let aged = progress.deleted.iter().filter(|(_, why)| *why == DeletedFor::Age);
            dropped += aged.count();
            if progress.done {
                break;
            }
        }
    }
    assert!(dropped >= 3, "{dropped} blocks dropped");
    let figures = engine.figures().expect("storage that works");
    assert!((3..=5).contains(&figures.blocks), "{figures:?}");
}

#[test]
fn a_damaged_block_costs_only_itself() {
    let mut node = Node::new();
    for time_ms in (0..2600).step_by(50) {
        node.append("s", time_ms, 1);
    }
    node.compact();
    let ids = node.blocks.list().expect("memory");
    let mut writer = node.blocks.create(1).expect("memory");
    let meta = format!(
        r#"{{"version":1,"ulid":"{}","minTime":0,"maxTime":1000,"compaction":{{"level":1}}}}"#,
        writer.id()
    );
    writer.write_at("meta.json", 0, meta.as_bytes()).expect("memory");
    writer.write_at("index", 0, b"no index").expect("memory");
    writer.commit().expect("memory");
    assert_eq!(node.blocks.list().map(|now| now.len()), Ok(ids.len() + 1));
    assert_eq!(node.select(Vec::new(), TimeRange::ALL)["s"].len(), 52);
    node.restart();
    assert_eq!(node.select(Vec::new(), TimeRange::ALL)["s"].len(), 52);
    node.compact();
    node.append("s", 2600, 1);
}

//! Whole engines on storage in memory, compared with a plain map over random operations.

use super::*;
use crate::head::RefusalReason;
use crate::model::{LABEL_NAME, MatchOp};
use crate::select::FrameFormat;
use crate::storage::LogKind;
use crate::storage::memory::{MemoryBlocks, MemoryWal};
use proptest::prelude::*;
use std::collections::BTreeMap;

const OPTIONS: HeadOptions = HeadOptions {
    block_duration_ms: 1000,
    future_limit_ms: 600_000,
    out_of_order_window_ms: 0,
    series_max: 0,
    hash_seed: 5,
};

const WITH_LATE: HeadOptions = HeadOptions { out_of_order_window_ms: 2000, ..OPTIONS };

const ROOM: Room = Room { free_bytes: u64::MAX, other_bytes: 0 };

type Model = BTreeMap<String, BTreeMap<i64, u64>>;

/// An engine on storage that outlives it.
struct Node {
    wal: MemoryWal,
    blocks: MemoryBlocks,
    options: HeadOptions,
    engine: Engine,
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
        let storage =
            Storage { wal: Box::new(wal.reopened()), blocks: Rc::new(blocks.clone()), head: None };
        let mut engine = Engine::open(Role::All, options, storage).expect("sound options");
        while !engine.replay(64).expect("a sound log").done {}
        engine
    }

    fn restart(&mut self) {
        self.engine = Node::open(&self.wal, &self.blocks, self.options);
    }

    fn append(&mut self, name: &str, timestamp_ms: i64, bits: u64) -> WriteOutcome {
        let labels = Labels::from_sorted([(LABEL_NAME, name), ("job", "test")]);
        let series = self.engine.series_ref(&labels).expect("a valid label set");
        let row = (series, Sample { timestamp_ms, value: f64::from_bits(bits) });
        self.engine.append(std::iter::once(row), 1_000_000).expect("storage that works")
    }

    fn compact(&mut self) {
        while !self.engine.compact(1_000_000, ROOM).expect("storage that works").done {}
    }

    fn select(&self, matchers: Vec<MatcherSpec>, range: TimeRange) -> Model {
        let selection = Selection {
            matchers,
            range,
            format: FrameFormat::ChunkedSeries,
            query_index: 0,
            frame_bytes_max: 0,
            samples_max: 0,
        };
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
                    for sample in crate::chunk::samples(chunk).expect("floats") {
                        let sample = sample.expect("a sound chunk");
                        if range.contains(sample.timestamp_ms) {
                            samples.insert(sample.timestamp_ms, sample.value.to_bits());
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

#[derive(Clone, Debug)]
enum Operation {
    /// Series, step from the newest time of all, value.
    Append(u8, i64, u64),
    Compact,
    Restart,
    Select(TimeRange, MatchOp, String),
}

fn operation() -> impl Strategy<Value = Operation> {
    let op = prop_oneof![
        Just(MatchOp::Equal),
        Just(MatchOp::NotEqual),
        Just(MatchOp::Regex),
        Just(MatchOp::NotRegex)
    ];
    let select = (0i64..6000, 0i64..3000, op, "s[0-5]|s[0-5]\\|s[0-5]|s\\.|");
    prop_oneof![
        20 => (0u8..6, -2200i64..300, 0u64..3).prop_map(|(s, step, bits)| Operation::Append(s, step, bits)),
        2 => Just(Operation::Compact),
        1 => Just(Operation::Restart),
        3 => select.prop_map(|(start_ms, span, op, value)| {
            Operation::Select(TimeRange { start_ms, end_ms: start_ms + span }, op, value)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_equals_a_plain_map(
        operations in prop::collection::vec(operation(), 1..300),
        with_late: bool,
    ) {
        let mut node = Node::with(if with_late { WITH_LATE } else { OPTIONS });
        let window_ms = if with_late { 2000 } else { OPTIONS.block_duration_ms / 2 };
        let mut model = Model::new();
        let mut newest_ms = 1000;
        for operation in operations {
            match operation {
                Operation::Append(series, step_ms, bits) => {
                    let name = format!("s{series}");
                    let time_ms = newest_ms + step_ms;
                    let outcome = node.append(&name, time_ms, bits);
                    let samples = model.entry(name).or_default();
                    let is_newest = samples.keys().next_back().is_none_or(|last| time_ms > *last);
                    let is_same = samples.get(&time_ms).map(|before| *before == bits);
                    match outcome.refusals.first().map(|refusal| refusal.reason) {
                        Some(reason) => {
                            // Only what lies behind the window, is another value, or, without a
                            // window for late samples, is out of order may be refused.
                            let in_window = time_ms >= newest_ms - window_ms;
                            let other_value = reason == RefusalReason::DuplicateSample;
                            prop_assert_eq!(other_value, is_same == Some(false) && other_value);
                            prop_assert!(!(is_newest && in_window), "{:?}", outcome);
                            prop_assert!(!(in_window && is_same == Some(true)), "{:?}", outcome);
                            prop_assert!(!(in_window && with_late && is_same.is_none()));
                        }
                        None => {
                            prop_assert_eq!(outcome.samples_written, 1);
                            // What only a block holds may be written over by a late sample.
                            prop_assert!(with_late || is_same != Some(false));
                            samples.insert(time_ms, bits);
                            newest_ms = newest_ms.max(time_ms);
                        }
                    }
                }
                Operation::Compact => node.compact(),
                Operation::Restart => node.restart(),
                Operation::Select(range, op, value) => {
                    let spec = MatcherSpec { name: LABEL_NAME.into(), op, value };
                    let matcher = Matcher::new(&spec).expect("a valid matcher");
                    let mut wanted = model.clone();
                    wanted.retain(|name, samples| {
                        samples.retain(|time_ms, _| range.contains(*time_ms));
                        matcher.matches(name) && !samples.is_empty()
                    });
                    prop_assert_eq!(node.select(vec![spec], range), wanted);
                }
            }
        }
        node.compact();
        node.restart();
        model.retain(|_, samples| !samples.is_empty());
        prop_assert_eq!(node.select(Vec::new(), TimeRange::ALL), model);
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
    let segments = node.wal.segments(LogKind::Ordered);
    assert!(segments.len() <= 5 && segments[0] > 10, "{segments:?}");
    node.restart();
    assert_eq!(node.select(Vec::new(), TimeRange::ALL)["s"].len(), 200);
}

#[test]
fn an_open_cursor_keeps_what_it_will_show() {
    let mut node = Node::new();
    for time_ms in (0..1600).step_by(10) {
        node.append("s", time_ms, 1);
    }
    let selection = Selection {
        matchers: Vec::new(),
        range: TimeRange::ALL,
        format: FrameFormat::ChunkedSeries,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
    };
    let mut cursor = node.engine.select(&selection).expect("a valid selection");
    let busy = loop {
        match node.engine.compact(1_000_000, ROOM) {
            Ok(progress) if progress.done => break false,
            Ok(_) => {}
            Err(Error::Busy) => break true,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(busy, "the head must not forget what the cursor has not shown yet");
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

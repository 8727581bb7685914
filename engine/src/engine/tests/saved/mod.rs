//! Heads loaded from snapshots, compared with heads that replayed the log.

mod worked_bytes;

use super::model::{same_model, value};
use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

/// Returns the head snapshot of an engine that ends with it.
fn pieces(engine: Engine, bytes_max: u32) -> Vec<Vec<u8>> {
    let mut saved = engine.save_head().expect("a head to save");
    let mut pieces = Vec::new();
    loop {
        let piece = saved.next(bytes_max);
        if piece.is_empty() {
            return pieces;
        }
        pieces.push(piece);
    }
}

fn load(engine: &mut Engine, pieces: &[Vec<u8>]) -> Result<bool> {
    let mut is_done = false;
    for piece in pieces {
        is_done = engine.load_head(piece)?;
    }
    Ok(is_done)
}

impl Node {
    /// An engine that has read nothing, with another seed than those before.
    fn unread(&self, hash_seed: u64) -> Engine {
        let options = HeadOptions { hash_seed, ..self.options };
        Node::open_unread(&self.wal, &self.blocks, options)
    }

    pub(super) fn restart_cleanly(&mut self) {
        self.options.hash_seed += 1;
        let new = self.unread(self.options.hash_seed);
        let old = std::mem::replace(&mut self.engine, new);
        let pieces = pieces(old, 100);
        assert!(load(&mut self.engine, &pieces).expect("a sound head"));
        assert!(self.engine.replay(1).expect("nothing to replay").done);
    }
}

fn strings(mut strings: crate::select::StringCursor) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let some = strings.next(100).expect("memory");
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

/// A snapshot has the exemplars that a replay brings back, and those dropped from the log.
fn assert_keeps_exemplars(saved: &Node, replayed: &Node) -> std::result::Result<(), TestCaseError> {
    let exemplars = [saved, replayed].map(|node| {
        let all = node.engine.exemplars(&[Vec::new()], TimeRange::ALL);
        all.expect("no matchers").next(u32::MAX)
    });
    for series in &exemplars[1] {
        let kept = exemplars[0].iter().find(|kept| kept.labels == series.labels);
        let has = |one| kept.is_some_and(|kept| kept.exemplars.contains(one));
        prop_assert!(series.exemplars.iter().all(has), "{series:?} of {:?}", exemplars[0]);
    }
    Ok(())
}

/// A snapshot has the metadata that a replay brings back, and that of families without series.
///
/// A replay of its log may return less: a family whose last series was dropped before the log was
/// truncated is missing there, while the other node may have kept the series for out-of-order
/// samples.
fn assert_keeps_metadata(saved: &Node, replayed: &Node) -> std::result::Result<(), TestCaseError> {
    let known = saved.engine.metadata("", u32::MAX);
    for family in replayed.engine.metadata("", u32::MAX) {
        prop_assert!(known.contains(&family), "{family:?} of {known:?}");
    }
    Ok(())
}

/// Both nodes answer the same, except for figures of their own process.
fn assert_same_answers(saved: &Node, replayed: &Node) -> std::result::Result<(), TestCaseError> {
    let models = [saved, replayed].map(|node| node.select(Vec::new(), TimeRange::ALL));
    prop_assert!(same_model(&models[0], &models[1]), "{models:?}");
    let lookup =
        crate::select::Lookup { matcher_sets: Vec::new(), range: TimeRange::ALL, limit: 0 };
    let names = [saved, replayed].map(|node| {
        let names = node.engine.label_names(&lookup).map(strings).expect("memory");
        let values = node.engine.label_values(LABEL_NAME, &lookup).map(strings).expect("memory");
        (names, values)
    });
    prop_assert_eq!(&names[0], &names[1]);
    let figures = [saved, replayed].map(|node| {
        let figures = node.engine.figures().expect("memory");
        let Figures { head_series, head_symbols, blocks, .. } = figures;
        (head_series, head_symbols, blocks)
    });
    prop_assert_eq!(figures[0], figures[1]);
    Ok(())
}

#[derive(Clone, Debug)]
enum Operation {
    /// Series, step from the newest time of all, value, exemplar's label.
    Append(u8, i64, Value, Option<u8>),
    Metadata(u8, u8),
    Compact,
    /// A cut whose block is committed, while nothing is truncated.
    PlanCut,
    Delete(u8, TimeRange),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        20 => (0u8..6, -2200i64..300, value(), prop::option::weighted(0.2, 0u8..4)).prop_map(
            |(series, step_ms, value, exemplar)| Operation::Append(series, step_ms, value, exemplar)
        ),
        2 => (0u8..6, 0u8..3).prop_map(|(family, kind)| Operation::Metadata(family, kind)),
        2 => Just(Operation::Compact),
        1 => Just(Operation::PlanCut),
        1 => (0u8..6, 0i64..6000, 0i64..3000).prop_map(|(series, start_ms, span_ms)| {
            Operation::Delete(series, TimeRange { start_ms, end_ms: start_ms + span_ms })
        }),
    ]
}

impl Node {
    fn run(&mut self, operation: &Operation, newest_ms: &mut i64) -> WriteOutcome {
        match operation {
            Operation::Append(series, step_ms, value, exemplar) => {
                let timestamp_ms = *newest_ms + step_ms;
                let name = format!("s{series}");
                let outcome = self.append_value(&name, timestamp_ms, value);
                if outcome.refused == 0 {
                    *newest_ms = timestamp_ms.max(*newest_ms);
                }
                let Some(label) = exemplar else { return outcome };
                let timestamp_ms = *newest_ms;
                let labels = Labels::from_sorted([(LABEL_NAME, &*name), ("job", "test")]);
                let of = format!("trace {label}");
                let exemplar_labels = Labels::from_sorted([("trace_id", &*of)]);
                let appended = self.engine.append_batch("append", 1_000_000, |head, batch| {
                    let slot = head.series_by_labels(batch, &labels).expect("a valid label set");
                    let labels = exemplar_labels;
                    let exemplar = crate::head::Exemplar { labels, value: 1.5, timestamp_ms };
                    head.check_exemplar(batch, slot, exemplar);
                    Ok(())
                });
                appended.expect("storage that works")
            }
            Operation::Metadata(family, kind) => {
                let name = format!("s{family}");
                let labels = Labels::from_sorted([(LABEL_NAME, &*name), ("job", "test")]);
                *newest_ms += 1;
                let time_ms = *newest_ms;
                let appended = self.engine.append_batch("append", 1_000_000, |head, batch| {
                    head.metadata.set(name.as_bytes(), u32::from(*kind), b"help", b"");
                    let slot = head.series_by_labels(batch, &labels).expect("a valid label set");
                    Ingest::check(head, batch, slot, time_ms, Value::Float(1.0))
                });
                appended.expect("storage that works")
            }
            Operation::Compact => {
                self.compact();
                WriteOutcome::default()
            }
            Operation::PlanCut => {
                self.engine.plan_cut().expect("memory");
                WriteOutcome::default()
            }
            Operation::Delete(series, range) => {
                let name = MatcherSpec {
                    name: LABEL_NAME.into(),
                    op: crate::model::MatchOp::Equal,
                    value: format!("s{series}"),
                };
                self.engine.delete(&[vec![name]], *range).expect("memory");
                WriteOutcome::default()
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Two nodes get the same rows. One restarts from a head snapshot, the other from its log;
    /// their answers stay the same, also after a later replay. (A replay also takes back
    /// out-of-order samples in blocks while the log has them; a snapshot does not.)
    #[test]
    fn a_saved_head_is_one_that_replayed(
        lives in prop::collection::vec(prop::collection::vec(operation(), 0..80), 1..5),
    ) {
        let (mut saved, mut replayed) = (Node::new(), Node::new());
        let mut newest_ms = 1000;
        for life in lives {
            for operation in life {
                let mut newest_of_saved_ms = newest_ms;
                let taken = saved.run(&operation, &mut newest_of_saved_ms);
                prop_assert_eq!(taken, replayed.run(&operation, &mut newest_ms));
                prop_assert_eq!(newest_of_saved_ms, newest_ms);
            }
            saved.restart_cleanly();
            replayed.restart();
            assert_keeps_exemplars(&saved, &replayed)?;
            assert_keeps_metadata(&saved, &replayed)?;
            assert_same_answers(&saved, &replayed)?;
        }
        saved.restart();
        replayed.restart();
        assert_same_answers(&saved, &replayed)?;
    }
}

fn full_node() -> Node {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    let mut newest_ms = 1000;
    let gauge = crate::model::histogram::testing::any_histogram::<u64>();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for step in 0..300 {
        let histogram = gauge.new_tree(&mut runner).expect("a histogram").current();
        let value = if step % 7 == 0 { histogram.into() } else { Value::Float(f64::from(step)) };
        let series = (step % 5) as u8;
        let step_ms = if step % 11 == 0 { -300 } else { 8 };
        let exemplar = (step % 13 == 0).then_some(series);
        node.run(&Operation::Append(series, step_ms, value, exemplar), &mut newest_ms);
    }
    node.run(&Operation::Metadata(2, 1), &mut newest_ms);
    node.run(&Operation::Delete(1, TimeRange { start_ms: 1100, end_ms: 1200 }), &mut newest_ms);
    node
}

#[test]
fn a_head_without_anything_is_saved_too() {
    let mut node = Node::new();
    node.restart_cleanly();
    node.append("s", 1, 1);
    node.restart_cleanly();
    assert_eq!(node.select(Vec::new(), TimeRange::ALL)["s"].len(), 1);
}

#[test]
fn a_saved_head_ends_its_store_and_fills_only_an_empty_one() {
    let mut node = full_node();
    let all = node.select(Vec::new(), TimeRange::ALL);
    let new = node.unread(6);
    let saved = pieces(std::mem::replace(&mut node.engine, new), 100);
    assert!(saved.len() > 12, "{} pieces", saved.len());
    assert!(saved.iter().all(|piece| piece.len() < 4000));
    assert!(matches!(node.unread(7).save_head(), Err(Error::NotOpen)), "nothing is replayed");

    assert!(load(&mut node.engine, &saved).expect("a sound head"));
    assert!(same_model(&all, &node.select(Vec::new(), TimeRange::ALL)));
    assert!(matches!(node.engine.load_head(&saved[0]), Err(Error::Invalid(_))));

    // In another order, or not to the end, they are nothing.
    let mut swapped = saved.clone();
    swapped.swap(2, saved.len() - 2);
    for wrong in [&swapped[..], &saved[1..], &saved[..1], &saved[..saved.len() - 1]] {
        let mut engine = node.unread(8);
        assert!(!matches!(load(&mut engine, wrong), Ok(true)));
        assert!(engine.series_ref(&Labels::from_sorted([(LABEL_NAME, "s")])).is_err());
    }
}

#[test]
fn what_has_changed_since_makes_a_saved_head_outdated() {
    let node = full_node();
    let Node { wal, blocks, options, engine } = node;
    let saved = pieces(engine, 1 << 20);
    let open = |options: HeadOptions| {
        let storage =
            Storage { wal: Box::new(wal.reopened()), blocks: Rc::new(blocks.clone()), head: None };
        Engine::open(Role::Head, options, storage).expect("sound options")
    };
    let is_outdated = |options: HeadOptions| {
        let taken = open(options).load_head(&saved[0]);
        matches!(taken, Err(Error::SavedHead(crate::head::SavedHeadError::Outdated { .. })))
    };
    assert!(!is_outdated(options));
    assert!(is_outdated(HeadOptions { block_duration_ms: 2000, ..options }));
    assert!(is_outdated(HeadOptions { exemplars_max: 7, ..options }));
    let mut writer = blocks.create(1).expect("memory");
    let meta = format!(
        r#"{{"version":1,"ulid":"{}","minTime":0,"maxTime":1000,"compaction":{{"level":1}}}}"#,
        writer.id()
    );
    writer.write_at("meta.json", 0, meta.as_bytes()).expect("memory");
    writer.commit().expect("memory");
    assert!(is_outdated(options));
    let mut later = saved[0].clone();
    later[4] = 9;
    let taken = open(options).load_head(&later);
    let unknown = crate::head::SavedHeadError::Version { version: 9 };
    assert!(matches!(taken, Err(Error::SavedHead(error)) if error == unknown));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// Loading arbitrary pieces ends; a loaded head can be read and written, and after an error the
    /// log is still there.
    #[test]
    fn hostile_pieces_are_survived(
        flips in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..4,
        ),
        cut in prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<prop::sample::Index>())),
    ) {
        let node = full_node();
        let Node { wal, blocks, options, engine } = node;
        let mut saved = pieces(engine, 300);
        for (piece, place, byte) in flips {
            let piece = piece.get_mut(&mut saved);
            *place.get_mut(piece) = byte;
        }
        if let Some((piece, len)) = cut {
            let piece = piece.get_mut(&mut saved);
            piece.truncate(len.index(piece.len()));
        }
        let storage =
            Storage { wal: Box::new(wal.reopened()), blocks: Rc::new(blocks.clone()), head: None };
        let mut engine = Engine::open(Role::All, options, storage).expect("sound options");
        match load(&mut engine, &saved) {
            Ok(true) => {}
            _ => while !engine.replay(1 << 20).expect("a sound log").done {},
        }
        let selection = Selection {
            matchers: Vec::new(),
            range: TimeRange::ALL,
            format: FrameFormat::Samples,
            query_index: 0,
            frame_bytes_max: 0,
            samples_max: 0,
            external: Labels::default(),
        };
        if let Ok(mut cursor) = engine.select(&selection) {
            while cursor.next_frames(1000).is_ok_and(|frames| !frames.is_empty()) {}
        }
        for name in ["s0", "s1", "s2", "new"] {
            let labels = Labels::from_sorted([(LABEL_NAME, name), ("job", "test")]);
            let Ok(series) = engine.series_ref(&labels) else { continue };
            for timestamp_ms in (0..6000).step_by(300) {
                let row = (series, Sample { timestamp_ms, value: 1.0 });
                let _ = engine.append(std::iter::once(row), 1_000_000);
            }
        }
        let _ = engine.delete(&[Vec::new()], TimeRange { start_ms: 500, end_ms: 1500 });
        for _ in 0..100 {
            if engine.compact(1_000_000, ROOM).map_or(true, |progress| progress.done) {
                break;
            }
        }
        let _ = engine.save_head();
    }
}

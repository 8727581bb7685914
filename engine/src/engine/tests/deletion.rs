//! Deleted samples are hidden at once and stay deleted, whatever comes after.

use super::faults::Fault;
use super::model::{same, same_model, value};
use super::*;
use crate::model::MatchOp;
use crate::storage::StorageError;
use crate::wal::{TombstoneRecord, tombstones_record};
use proptest::prelude::*;
use std::cell::Cell;

type TestResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Clone, Debug)]
enum Operation {
    /// Series, step from the newest time of all, value.
    Append(u8, i64, Value),
    /// Expression of names, start and end from the newest time.
    Delete(String, i64, i64),
    /// Some slices of due work, so that other operations come in between.
    CompactSlices(u8),
    CleanTombstones,
    Restart,
    CleanRestart,
    CutAll,
    /// Whether memory is short: then all is cut once, however recent.
    Memory(bool),
    /// The clock, counted from the newest time.
    Clock(i64),
    /// Rows of one request, with no time of a series twice.
    Batch(Vec<((u8, i64), Value)>),
    /// Whether the next failure of storage is followed by a crash.
    Fail(Fault, bool),
}

/// Largest lead of rows over the clock.
const FUTURE_MS: i64 = 500;

thread_local! {
    static USED_PERCENT: Cell<u64> = const { Cell::new(0) };
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        16 => (0u8..4, -2200i64..300, value())
            .prop_map(|(series, step_ms, value)| Operation::Append(series, step_ms, value)),
        3 => ("s[0-3]|s\\[0-1\\]|s\\.", -4000i64..100, 0i64..3000)
            .prop_map(|(series, from_ms, span_ms)| Operation::Delete(series, from_ms, span_ms)),
        3 => (1u8..5).prop_map(Operation::CompactSlices),
        1 => Just(Operation::CleanTombstones),
        1 => Just(Operation::Restart),
        1 => Just(Operation::CleanRestart),
    ]
}

/// Operations, requests of several rows, cuts of all samples, a jumping clock, failing storage.
fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        24 => operation(),
        3 => prop::collection::btree_map((0u8..4, -2200i64..300), value(), 2..8)
            .prop_map(|rows| rows.into_iter().collect::<Vec<_>>())
            .prop_shuffle()
            .prop_map(Operation::Batch),
        1 => Just(Operation::CutAll),
        1 => any::<bool>().prop_map(Operation::Memory),
        1 => (-4000i64..1000).prop_map(Operation::Clock),
        2 => (0u32..8, any::<(bool, bool, bool)>()).prop_map(
            |(after_calls, (is_full, takes_effect, crashes))| {
                Operation::Fail(Fault { after_calls, is_full, takes_effect }, crashes)
            }
        ),
    ]
}

fn named(regex: &str) -> Vec<MatcherSpec> {
    vec![MatcherSpec { name: LABEL_NAME.into(), op: MatchOp::Regex, value: regex.into() }]
}

impl Node {
    pub(super) fn delete(&mut self, regex: &str, start_ms: i64, end_ms: i64) -> Result<Deleted> {
        let range = TimeRange { start_ms, end_ms };
        self.engine.delete(&[named(regex)], range)
    }

    fn clean(&mut self) -> Result<()> {
        while !self.engine.clean_tombstones(1_000_000, ROOM)?.done {}
        Ok(())
    }

    /// Repeats a call that failed, after a crash or without one.
    fn twice<T>(
        &mut self,
        crashes: bool,
        mut call: impl FnMut(&mut Node) -> Result<T>,
    ) -> Result<T> {
        let may_fail = Fault::is_due();
        match call(self) {
            Err(_) if may_fail && !Fault::is_due() => {
                if crashes {
                    self.restart();
                }
                call(self)
            }
            done => done,
        }
    }

    fn all(&self) -> Model {
        self.select(Vec::new(), TimeRange::ALL)
    }

    fn tombstones(&self) -> Result<u64> {
        let metas = survey(&self.blocks)?.metas;
        Ok(metas.iter().map(|meta| meta.stats.num_tombstones).sum())
    }
}

/// Returns whether a name matches one of the kinds of expressions that these tests delete by.
fn is_named(regex: &str, name: &str) -> bool {
    match (regex.strip_suffix(".*"), regex) {
        (Some(start), _) => name.starts_with(start),
        (None, "s.") => name.len() == 2 && name.starts_with('s'),
        (None, "s[0-1]") => ["s0", "s1"].contains(&name),
        (None, plain) => {
            assert!(plain.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{plain}");
            name == plain
        }
    }
}

pub(super) fn delete_from_model(model: &mut Model, regex: &str, range: TimeRange) {
    for (_, samples) in model.iter_mut().filter(|(name, _)| is_named(regex, name)) {
        samples.retain(|time_ms, _| *time_ms < range.start_ms || *time_ms > range.end_ms);
    }
    model.retain(|_, samples| !samples.is_empty());
}

/// The model holds what the engine says it has taken. To bound both, a row newer than all others of
/// any series is taken while there is memory, unless the clock is too far behind, and then never.
fn assert_taken_by_the_rules(
    model: &Model,
    rows: &[(String, i64, Value)],
    newest_ms: i64,
    future_ms: i64,
) -> std::result::Result<(), TestCaseError> {
    for (at, (name, time_ms, value)) in rows.iter().enumerate() {
        let held = model.get(name).and_then(|samples| samples.get(time_ms));
        let is_first = rows[..at].iter().all(|(other, ..)| other != name);
        let is_ahead = *time_ms > newest_ms && is_first && USED_PERCENT.get() == 0;
        if is_ahead && *time_ms < future_ms {
            prop_assert!(held.is_some_and(|held| same(held, value)), "{name} {time_ms}: {held:?}");
        } else if *time_ms > newest_ms.max(future_ms) {
            prop_assert!(held.is_none(), "{name} {time_ms}, the limit is {future_ms}");
        }
    }
    Ok(())
}

/// Compares a node with a plain map after each operation.
fn compare(
    operations: Vec<Operation>,
    with_out_of_order: bool,
    by_columns: bool,
) -> std::result::Result<(), TestCaseError> {
    USED_PERCENT.set(0);
    Fault::set(None);
    let mut crashes = false;
    let memory = MemoryBudget { bytes_max: 100 << 20, used_bytes: || USED_PERCENT.get() << 20 };
    let options = if with_out_of_order { WITH_OUT_OF_ORDER } else { OPTIONS };
    let mut node = Node::with(HeadOptions { future_limit_ms: FUTURE_MS, memory, ..options });
    node.write_columns(by_columns)?;
    let mut model = Model::new();
    let (mut newest_ms, mut now_ms) = (3000, 1_000_000);
    for operation in operations {
        match operation {
            Operation::Append(series, step_ms, value) => {
                let rows = [(format!("s{series}"), newest_ms + step_ms, value)];
                let append = |node: &mut Node| node.append_to_both(&mut model, &rows, now_ms);
                let taken_ms = node.twice(crashes, append)?;
                assert_taken_by_the_rules(&model, &rows, newest_ms, now_ms + FUTURE_MS)?;
                newest_ms = taken_ms.unwrap_or(i64::MIN).max(newest_ms);
            }
            Operation::Batch(rows) => {
                let row =
                    |((series, step_ms), value)| (format!("s{series}"), newest_ms + step_ms, value);
                let rows: Vec<_> = rows.into_iter().map(row).collect();
                let append = |node: &mut Node| node.append_to_both(&mut model, &rows, now_ms);
                let taken_ms = node.twice(crashes, append)?;
                assert_taken_by_the_rules(&model, &rows, newest_ms, now_ms + FUTURE_MS)?;
                newest_ms = taken_ms.unwrap_or(i64::MIN).max(newest_ms);
            }
            Operation::Delete(series, from_ms, span_ms) => {
                let start_ms = newest_ms + from_ms;
                let end_ms = start_ms + span_ms;
                node.twice(crashes, |node| node.delete(&series, start_ms, end_ms))?;
                delete_from_model(&mut model, &series, TimeRange { start_ms, end_ms });
            }
            Operation::CompactSlices(slices) => {
                for _ in 0..slices {
                    node.twice(crashes, |node| node.engine.compact(1_000_000, ROOM))?;
                }
            }
            Operation::CleanTombstones => {
                node.twice(crashes, |node| node.clean())?;
                prop_assert_eq!(node.tombstones()?, 0);
            }
            Operation::Restart => {
                node.restart();
                node.write_columns(by_columns)?;
            }
            Operation::CleanRestart => {
                node.restart_cleanly();
                node.write_columns(by_columns)?;
            }
            Operation::CutAll => node.engine.cut_all()?,
            Operation::Memory(is_short) => USED_PERCENT.set(if is_short { 60 } else { 0 }),
            Operation::Clock(step_ms) => now_ms = newest_ms + step_ms,
            Operation::Fail(fault, then_crashes) => {
                Fault::set(Some(fault));
                crashes = then_crashes;
            }
        }
        let got = node.all();
        prop_assert!(same_model(&got, &model), "{got:?}\n{model:?}");
    }
    Fault::set(None);
    node.clean()?;
    node.restart();
    let got = node.all();
    prop_assert!(same_model(&got, &model), "{got:?}\n{model:?}");
    node.compact();
    node.restart_cleanly();
    let got = node.all();
    prop_assert!(same_model(&got, &model), "compacted: {got:?}\n{model:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_is_deleted_stays_deleted_and_nothing_else_goes(
        operations in prop::collection::vec(operation(), 1..250),
        with_out_of_order: bool,
    ) {
        compare(operations, with_out_of_order, false)?;
    }

    #[test]
    fn deletions_go_with_all_else(
        operations in prop::collection::vec(any_operation(), 1..250),
        with_out_of_order: bool,
        by_columns: bool,
    ) {
        compare(operations, with_out_of_order, by_columns)?;
    }
}

#[test]
fn what_is_sent_again_after_a_deletion_counts() -> TestResult {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    for time_ms in (0..1000).step_by(10) {
        node.append("s", time_ms, 1);
    }
    node.append("s", 455, 2);
    assert_eq!(node.delete("s", 400, i64::MAX)?.head_series, 1);
    assert_eq!(node.all()["s"].len(), 40);
    // In order again, since nothing newer is left; and out-of-order.
    assert_eq!(node.append("s", 990, 1).refused, 0);
    assert_eq!(node.append("s", 455, 2).refused, 0);
    let expected = node.all();
    assert_eq!(expected["s"].len(), 42);
    for _ in 0..2 {
        node.restart();
        assert_eq!(node.all(), expected);
    }
    Ok(())
}

#[test]
fn a_deletion_of_everything_survives_cleaning_and_a_restart() -> TestResult {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    for time_ms in (0..3000).step_by(10) {
        node.append("s", time_ms, 1);
        node.append(if time_ms < 600 { "early" } else { "other" }, time_ms, 1);
    }
    node.append("early", 595, 1);
    node.compact();
    assert!(!node.blocks.list()?.is_empty());
    // Also what the log still holds of series that the head has dropped, and of blocks that
    // are about to vanish.
    node.delete(".*", i64::MIN, i64::MAX)?;
    assert!(node.all().is_empty());
    node.clean()?;
    assert!(node.blocks.list()?.is_empty());
    node.restart();
    assert!(node.all().is_empty(), "{:?}", node.all());
    node.append("s", 3000, 1);
    node.restart();
    assert_eq!(node.all()["s"].len(), 1);
    Ok(())
}

/// Upstream's tombstones hide out-of-order samples of any age; those that come later count.
#[test]
fn tombstones_that_upstream_left_are_honoured() -> TestResult {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    for time_ms in (0..1000).step_by(10) {
        node.append("s", time_ms, 1);
    }
    node.append("s", 505, 2);
    node.append("s", 705, 2);
    let labels = Labels::from_sorted([(LABEL_NAME, "s"), ("job", "test")]);
    let series_ref = node.engine.series_ref(&labels)?;
    let range = TimeRange { start_ms: 500, end_ms: 599 };
    let record = tombstones_record([TombstoneRecord { series_ref, range }]);
    node.wal.append(LogKind::InOrder, &[record])?;
    node.restart();
    assert_eq!(node.all()["s"].len(), 91);
    node.restart_cleanly();
    assert_eq!(node.all()["s"].len(), 91);
    node.restart();
    assert_eq!(node.all()["s"].len(), 91);
    node.restart_cleanly();
    // The first out-of-order sample applies them.
    assert_eq!(node.append("s", 505, 3).refused, 0);
    let expected = node.all();
    assert_eq!(expected["s"].len(), 92);
    for _ in 0..2 {
        node.restart();
        assert_eq!(node.all(), expected);
    }
    Ok(())
}

#[test]
fn a_block_of_the_whole_head_leaves_the_head_alone() -> TestResult {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    for time_ms in (0..1400).step_by(10) {
        node.append("s", time_ms, 1);
    }
    node.append("s", 5, 1);
    node.delete("s", 100, 199)?;
    let expected = node.all();
    let storage = |blocks: &MemoryBlocks, head| Storage {
        wal: Box::new(MemoryWal::default()),
        blocks: Rc::new(blocks.clone()),
        head,
    };
    let head = Rc::clone(&node.engine.head);
    let elsewhere = MemoryBlocks::default();
    let storage = storage(&elsewhere, Some(head));
    let mut compactor = Engine::open(Role::Compactor, WITH_OUT_OF_ORDER, storage)?;
    let mut samples = 0;
    loop {
        let progress = compactor.snapshot_head(1_000_000)?;
        samples += progress.committed.map_or(0, |block| block.samples);
        if progress.done {
            break;
        }
    }
    assert_eq!(samples, 131);
    let metas = survey(&elsewhere)?.metas;
    assert_eq!((metas[0].min_time_ms, metas[0].max_time_ms), (0, 1391));
    assert_eq!(node.all(), expected);
    assert_eq!(node.append("s", 7, 1).refused, 0);
    assert_eq!(node.engine.plan_cut()?, None);
    Ok(())
}

#[test]
fn cleaning_that_does_not_fit_says_so() -> TestResult {
    let mut node = Node::new();
    for time_ms in (0..3000).step_by(10) {
        node.append("s", time_ms, 1);
    }
    node.compact();
    node.delete("s", 0, 100)?;
    let full = Room { free_bytes: 0, ..ROOM };
    let refused = node.engine.clean_tombstones(1_000_000, full);
    assert!(matches!(refused, Err(Error::Storage(StorageError::NoSpace { .. }))));
    node.clean()?;
    assert_eq!(node.tombstones()?, 0);
    Ok(())
}

#[test]
fn a_query_instance_deletes_nothing() -> TestResult {
    let node = Node::new();
    let storage = Storage {
        wal: Box::new(MemoryWal::default()),
        blocks: Rc::new(node.blocks.clone()),
        head: Some(Rc::clone(&node.engine.head)),
    };
    let mut query = Engine::open(Role::Query, OPTIONS, storage)?;
    assert!(matches!(query.delete(&[], TimeRange::ALL), Err(Error::WrongRole { .. })));
    assert!(matches!(query.clean_tombstones(0, ROOM), Err(Error::WrongRole { .. })));
    assert!(matches!(query.snapshot_head(0), Err(Error::WrongRole { .. })));
    Ok(())
}

#[test]
fn a_deletion_during_a_cut_is_not_lost() -> TestResult {
    let mut node = Node::new();
    // More series than one slice handles.
    let names: Vec<String> = (0..2500).map(|n| format!("s{n:04}")).collect();
    for time_ms in [0, 400, 2000] {
        for name in &names {
            node.append(name, time_ms, 1);
        }
    }
    let mut model = node.all();
    let range = TimeRange { start_ms: 400, end_ms: 400 };
    let mut slices = 0;
    loop {
        let progress = node.engine.compact(1_000_000, ROOM)?;
        slices += 1;
        // Symbols take three slices. Then the first thousand series are in a block to be.
        if slices == 4 {
            node.delete("s0.*", range.start_ms, range.end_ms)?;
            delete_from_model(&mut model, "s0.*", range);
        }
        if progress.done {
            break;
        }
    }
    assert!(slices > 8, "{slices} slices: the cut did not start over");
    assert_eq!(node.blocks.list().map(|blocks| blocks.len()), Ok(1));
    assert!(same_model(&node.all(), &model));
    node.restart();
    assert!(same_model(&node.all(), &model));
    Ok(())
}

/// The head has dropped the samples of a block; the log has not, for lack of space.
#[test]
fn a_deletion_before_the_log_could_truncate_is_for_good() -> TestResult {
    let mut node = Node::new();
    for time_ms in (0..1600).step_by(10) {
        node.append(if time_ms < 900 { "early" } else { "s" }, time_ms, 1);
    }
    while node.engine.compact(1_000_000, ROOM)?.committed.is_none() {}
    Fault::set(Some(Fault { after_calls: 0, is_full: true, takes_effect: false }));
    assert!(node.engine.compact(1_000_000, ROOM).is_err());
    node.delete(".*", 0, 999)?;
    let expected = node.all();
    assert_eq!(expected.len(), 1);
    node.clean()?;
    assert!(node.blocks.list()?.is_empty());
    node.restart();
    assert_eq!(node.all(), expected);
    Ok(())
}

//! Samples at both ends of time, where arithmetic would overflow, are handled like others, except
//! for the two times that stand for no time.

use super::*;
use crate::head::RefusalReason;
use proptest::prelude::*;

const AT_ALL_TIMES: HeadOptions = HeadOptions { out_of_order_window_ms: i64::MAX, ..OPTIONS };

fn all(node: &Node) -> Model {
    node.select(Vec::new(), TimeRange::ALL)
}

fn row(name: &str, time_ms: i64) -> (String, i64, Value) {
    (name.to_owned(), time_ms, Value::Float(1.0))
}

#[test]
fn the_first_and_the_last_time_are_cut() -> Result<()> {
    for (first_ms, last_ms) in [(i64::MIN + 1, i64::MAX - 1), (i64::MIN + 1, 0), (0, i64::MAX - 1)]
    {
        for restarts in [false, true] {
            let mut node = Node::new();
            let rows = [row("a", first_ms), row("a", last_ms), row("b", last_ms)];
            let mut model = Model::new();
            // The clock is unknown.
            node.append_to_both(&mut model, &rows, i64::MAX)?;
            assert_eq!(model.values().map(BTreeMap::len).sum::<usize>(), 3);
            if restarts {
                node.restart();
            }
            // The span is reason enough for the first.
            while !node.engine.compact(i64::MAX, ROOM)?.done {}
            assert_eq!(node.blocks.list()?.len(), 1, "from {first_ms}");
            assert_eq!(all(&node), model);
            node.engine.cut_all()?;
            while !node.engine.compact(i64::MAX, ROOM)?.done {}
            assert_eq!(node.engine.figures()?.head_series, 0, "from {first_ms} to {last_ms}");
            assert_eq!(all(&node), model);
            node.restart();
            assert_eq!(all(&node), model);
        }
    }
    Ok(())
}

#[test]
fn two_times_stand_for_none() -> Result<()> {
    for options in [OPTIONS, AT_ALL_TIMES] {
        let mut node = Node::with(options);
        let rows = [row("a", i64::MIN), row("a", i64::MAX)];
        let outcome = node.append_rows(&rows, i64::MAX)?;
        let reasons: Vec<_> = outcome.refusals.iter().map(|refusal| refusal.reason).collect();
        assert_eq!(reasons, [RefusalReason::TooOld, RefusalReason::TooFarInFuture]);
    }
    Ok(())
}

fn time_ms() -> impl Strategy<Value = i64> {
    let near = prop_oneof![0i64..3, 900i64..1100, 1400i64..4000];
    (0..4, near).prop_map(|(place, distance)| match place {
        0 => i64::MIN + distance,
        1 => i64::MAX - distance,
        2 => distance,
        _ => -distance,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_taken_is_read(
        operations in prop::collection::vec((0..8, 0u8..3, time_ms()), 1..60),
        retention_ms in prop_oneof![Just(0), Just(i64::MAX)],
        has_clock: bool,
    ) {
        let mut node = Node::with(AT_ALL_TIMES);
        let storage = || Storage {
            wal: Box::new(node.wal.reopened()),
            blocks: Rc::new(node.blocks.clone()),
            head: None,
        };
        let options = Options { retention_ms, ..AT_ALL_TIMES.into() };
        node.engine = Engine::open(Role::All, options, storage())?;
        while !node.engine.replay(64)?.done {}
        let now_ms = if has_clock { 1_000_000 } else { i64::MAX };
        let mut model = Model::new();
        for (kind, series, time_ms) in operations {
            match kind {
                0 => while !node.engine.compact(now_ms, ROOM)?.done {},
                1 => node.restart(),
                2 => node.engine.cut_all()?,
                _ => {
                    node.append_to_both(&mut model, &[row(&format!("s{series}"), time_ms)], now_ms)?;
                }
            }
            prop_assert!(all(&node) == model, "{:?} instead of {:?}", all(&node), model);
        }
        node.engine.cut_all()?;
        while !node.engine.compact(now_ms, ROOM)?.done {}
        prop_assert_eq!(node.engine.figures()?.head_chunks, 0);
        prop_assert_eq!(node.engine.plan_cut()?, None, "nothing is left");
        prop_assert!(all(&node) == model);
        node.restart();
        prop_assert!(all(&node) == model);
        for start_ms in [i64::MIN, -1, 0, i64::MAX] {
            let mut wanted = model.clone();
            wanted.values_mut().for_each(|samples| samples.retain(|time_ms, _| *time_ms >= start_ms));
            wanted.retain(|_, samples| !samples.is_empty());
            let range = TimeRange { start_ms, end_ms: i64::MAX };
            prop_assert!(node.select(Vec::new(), range) == wanted);
        }
    }
}

//! Heads whose labels exceed a compactor's memory are cut in pieces; a crash between these costs
//! nothing, and they are merged once memory allows.

use super::*;
use crate::block::BlockMeta;
use proptest::prelude::*;

/// Shape of the labels of a load.
#[derive(Clone, Copy, Debug)]
struct Shape {
    series: usize,
    labels: usize,
    value_bytes: usize,
    is_shared: bool,
}

const MANY: Shape = Shape { series: 120, labels: 2, value_bytes: 72, is_shared: false };

/// Memory of an idle compactor, and a little more.
const LITTLE: Room = Room { memory_bytes: 4 << 20, ..ROOM };

/// Only the last piece lacks the hint.
fn is_last(meta: &BlockMeta) -> bool {
    meta.compaction.hints.is_empty()
}

impl Shape {
    fn labels(&self, number: usize) -> Labels {
        let name = (LABEL_NAME.to_owned(), format!("s{number:05}"));
        let owner = if self.is_shared { 0 } else { number };
        let value = |label: usize| format!("{:x<1$}", format!("{owner}-{label}"), self.value_bytes);
        let others = (0..self.labels).map(|label| (format!("l{label:02}"), value(label)));
        let pairs: Vec<(String, String)> = std::iter::once(name).chain(others).collect();
        Labels::from_sorted(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Sends the load; returns the expected content of the store.
    fn fill(&self, node: &mut Node) -> Result<Model> {
        let mut model = Model::new();
        for number in 0..self.series {
            let labels = self.labels(number);
            let series = node.engine.series_ref(&labels)?;
            let times = [600 + number as i64, 900];
            let row = |timestamp_ms| (series, Sample { timestamp_ms, value: number as f64 });
            node.engine.append(times.map(row).into_iter(), 1_000_000)?;
            let samples = times.map(|time_ms| (time_ms, Value::Float(number as f64)));
            model.insert(format!("s{number:05}"), BTreeMap::from(samples));
        }
        Ok(model)
    }
}

fn metas(node: &Node) -> Result<Vec<BlockMeta>> {
    Ok(survey(&node.blocks)?.metas)
}

fn all(node: &Node) -> Model {
    node.select(Vec::new(), TimeRange::ALL)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the labels and the limit, all is cut, truncated and read again.
    #[test]
    fn any_load_is_cut(
        series in 1usize..200,
        labels in 0usize..12,
        value_bytes in prop_oneof![1usize..100, 1000usize..3000],
        is_shared: bool,
        memory_bytes in prop_oneof![Just(0), LITTLE.memory_bytes..LITTLE.memory_bytes + 100_000],
    ) {
        let shape = Shape { series, labels, value_bytes, is_shared };
        let mut node = Node::new();
        let model = shape.fill(&mut node)?;
        node.engine.cut_all()?;
        let room = Room { memory_bytes, ..ROOM };
        let mut samples = 0;
        loop {
            let progress = node.engine.compact(1_000_000, room)?;
            samples += progress.committed.map_or(0, |block| block.samples);
            if progress.done {
                break;
            }
        }
        prop_assert_eq!(samples, 2 * series as u64);
        prop_assert_eq!(node.engine.figures()?.head_series, 0);
        let pieces = metas(&node)?;
        let ending: Vec<&BlockMeta> = pieces.iter().filter(|meta| is_last(meta)).collect();
        prop_assert_eq!(ending.len(), 1, "{:?}", pieces);
        prop_assert!(pieces.iter().all(|meta| meta.max_time_ms == ending[0].max_time_ms));
        prop_assert_eq!(pieces.iter().map(|meta| meta.stats.num_samples).sum::<u64>(), samples);
        prop_assert!(all(&node) == model);
        node.restart();
        prop_assert!(all(&node) == model);
        node.compact();
        prop_assert_eq!(metas(&node)?.len(), 1, "there is memory for all now");
        prop_assert!(all(&node) == model);
    }
}

#[test]
fn a_crash_between_two_pieces_costs_nothing() -> Result<()> {
    let mut node = Node::new();
    let model = MANY.fill(&mut node)?;
    node.engine.cut_all()?;
    while node.engine.compact(1_000_000, LITTLE)?.committed.is_none() {}
    let pieces = metas(&node)?;
    assert!(pieces.len() > 3, "{} pieces", pieces.len());
    // As if it had come before the commit of the last ones: the log still has everything.
    let others = pieces.iter().filter(|meta| !is_last(meta));
    let left: Vec<&BlockMeta> = others.take(pieces.len() / 2).collect();
    for piece in pieces.iter().filter(|piece| !left.contains(piece)) {
        node.blocks.delete(&piece.ulid)?;
    }
    node.restart();
    assert!(all(&node) == model);
    node.engine.cut_all()?;
    node.compact();
    assert!(all(&node) == model);
    node.restart();
    assert!(all(&node) == model);
    let samples: u64 = metas(&node)?.iter().map(|meta| meta.stats.num_samples).sum();
    assert_eq!(samples, 2 * MANY.series as u64, "each sample once");
    Ok(())
}

#[test]
fn storage_that_fails_at_any_call_costs_nothing() -> Result<()> {
    for (after_calls, takes_effect) in (0..).flat_map(|calls| [(calls, false), (calls, true)]) {
        let mut node = Node::new();
        let model = MANY.fill(&mut node)?;
        node.engine.cut_all()?;
        Fault::set(Some(Fault { after_calls, is_full: false, takes_effect }));
        let failed = loop {
            match node.engine.compact(1_000_000, LITTLE) {
                Ok(progress) if progress.done => break false,
                Ok(_) => {}
                Err(_) => break true,
            }
        };
        let is_over = Fault::is_due();
        Fault::set(None);
        assert!(all(&node) == model, "after {after_calls} calls");
        if failed {
            // The next attempt needs no restart.
            while !node.engine.compact(1_000_000, LITTLE)?.done {}
            assert_eq!(node.engine.figures()?.head_series, 0, "after {after_calls} calls");
            assert!(all(&node) == model, "after {after_calls} calls");
        }
        node.restart();
        assert!(all(&node) == model, "after {after_calls} calls");
        if is_over {
            return Ok(());
        }
    }
    Ok(())
}

#[test]
fn a_deletion_before_the_commit_starts_over() -> Result<()> {
    let mut node = Node::new();
    let mut model = MANY.fill(&mut node)?;
    node.engine.cut_all()?;
    for _ in 0..12 {
        node.engine.compact(1_000_000, LITTLE)?;
    }
    let of_series = MatcherSpec {
        name: LABEL_NAME.into(),
        op: crate::model::MatchOp::Equal,
        value: "s00001".into(),
    };
    node.engine.delete(&[vec![of_series]], TimeRange::ALL)?;
    model.remove("s00001");
    while !node.engine.compact(1_000_000, LITTLE)?.done {}
    assert!(metas(&node)?.len() > 3);
    assert!(all(&node) == model);
    node.restart();
    assert!(all(&node) == model);
    Ok(())
}

//! Imports of samples in any order with any memory limit; of several at one time the last counts.

use super::*;
use crate::engine::{Engine, Role, Storage};
use crate::head::HeadOptions;
use crate::memory::MemoryBudget;
use crate::model::{LabelLimits, TimeRange};
use crate::storage::memory::{MemoryBlocks, MemoryWal};
use crate::text::TextFormat;
use proptest::prelude::*;

const BLOCK_MS: i64 = 1000;

type Rows = Vec<(u8, i64, u8)>;

fn labels(series: u8) -> Labels {
    let name = format!("m{series}");
    Labels::from_sorted([("__name__", name.as_str())])
}

/// Returns the dump of what was imported, and how many blocks and passes it took.
fn import(rows: &Rows, bytes_max: usize) -> Result<(String, usize, usize)> {
    let blocks = MemoryBlocks::default();
    let options = BackfillOptions { block_duration_ms: BLOCK_MS, bytes_max, hash_seed: 1 };
    let mut import = Backfill::new(Rc::new(blocks.clone()), options)?;
    let mut passes = 0;
    'pass: loop {
        passes += 1;
        for (series, timestamp_ms, value) in rows {
            let number = import.series(&labels(*series));
            let sample = Sample { timestamp_ms: *timestamp_ms, value: f64::from(*value) };
            import.append([(number, sample)].into_iter(), 0)?;
        }
        loop {
            match import.finish_pass(0)? {
                PassStep { done: true, again: true, .. } => continue 'pass,
                PassStep { done: true, .. } => break 'pass,
                _ => {}
            }
        }
    }
    let count = blocks.list()?.len();
    let head = HeadOptions {
        block_duration_ms: BLOCK_MS,
        future_limit_ms: 0,
        out_of_order_window_ms: 0,
        series_max: 0,
        exemplars_max: 0,
        memory: MemoryBudget::UNBOUNDED,
        label_limits: LabelLimits::NONE,
        hash_seed: 1,
    };
    let wal = Box::new(MemoryWal::default());
    let storage = Storage { wal, blocks: Rc::new(blocks), head: None };
    let mut engine = Engine::open(Role::All, head, storage)?;
    while !engine.replay(1 << 20)?.done {}
    let range = TimeRange { start_ms: i64::MIN, end_ms: i64::MAX };
    let mut lines = engine.dump(&[vec![]], range, TextFormat::Dump)?;
    let mut text = String::new();
    loop {
        match lines.next(100)?.as_str() {
            "" => return Ok((text, count, passes)),
            more => text.push_str(more),
        }
    }
}

fn expected(rows: &Rows) -> String {
    let last: BTreeMap<(u8, i64), u8> = rows.iter().map(|(s, t, v)| ((*s, *t), *v)).collect();
    let line =
        |((series, t), v): (&(u8, i64), &u8)| format!("{{__name__=\"m{series}\"}} {v} {t}\n");
    last.iter().map(line).collect()
}

#[test]
fn little_memory_takes_more_passes_and_blocks() -> Result<()> {
    let rows: Rows = (0..4000).map(|i| ((i % 5) as u8, i / 5 * 10, (i % 7) as u8)).collect();
    let (text, blocks, passes) = import(&rows, usize::MAX)?;
    assert_eq!((text.as_str(), blocks, passes), (expected(&rows).as_str(), 8, 1));
    let (text, blocks, passes) = import(&rows, 4000)?;
    assert_eq!((text.as_str(), blocks), (expected(&rows).as_str(), 8));
    assert!(passes > 2, "{passes}");
    let (text, blocks, _) = import(&rows, 1600)?;
    assert_eq!(text, expected(&rows));
    assert!(blocks > 8, "{blocks}");
    Ok(())
}

#[test]
fn times_at_the_ends_are_no_trouble() -> Result<()> {
    let rows = vec![(0, i64::MIN + 1, 1), (0, -1, 2), (0, 0, 3), (0, i64::MAX - 1, 4)];
    assert_eq!(import(&rows, usize::MAX)?.0, expected(&rows));
    Ok(())
}

#[test]
fn a_value_that_is_given_again_after_another_counts() -> Result<()> {
    let rows = vec![(0, 10, 2), (0, 10, 0), (0, 10, 2), (1, 10, 2), (1, 10, 2), (1, 10, 0)];
    assert_eq!(import(&rows, usize::MAX)?.0, expected(&rows));
    Ok(())
}

proptest! {
    #[test]
    fn any_order_and_any_memory_give_the_same(
        rows in prop::collection::vec((0u8..3, -3000i64..3000, 0u8..3), 0..300),
        bytes_max in 500usize..5000,
    ) {
        let imported = import(&rows, bytes_max).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(imported.0, expected(&rows));
    }
}

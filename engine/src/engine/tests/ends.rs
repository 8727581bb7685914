//! Staleness markers that end series.

use super::*;
use std::iter;

const AT_MS: i64 = 1_000;

const NOW_MS: i64 = 1_000_000;

impl Node {
    fn end_series(&mut self, numbers: &[u64]) -> Result<WriteOutcome> {
        Ok(self.engine.append_and_end(iter::empty(), (numbers, AT_MS), NOW_MS)?.0)
    }

    /// Number of records in both logs.
    fn records(&self) -> u64 {
        let mut other = Node::open_unread(&self.wal, &self.blocks, self.options);
        loop {
            let progress = other.replay(1 << 20).expect("a sound log");
            if progress.done {
                return progress.records;
            }
        }
    }
}

/// Upstream's rule for targets that vanish: newer samples refuse a marker, also one that is
/// within the out-of-order window.
#[test]
fn only_series_without_newer_values_end() -> Result<()> {
    for options in [OPTIONS, WITH_OUT_OF_ORDER] {
        let mut node = Node::with(options);
        for (name, time_ms) in [("older", 900), ("same", 1_000), ("newer", 1_100)] {
            node.append(name, time_ms, 1);
        }
        let label_sets = ["older", "same", "newer", "empty"]
            .map(|name| Labels::from_sorted([(LABEL_NAME, name), ("job", "test")]));
        let mut numbers = Vec::new();
        for labels in &label_sets {
            numbers.push(node.engine.series_ref(labels)?);
        }
        // A series that is not known any more needs no mark, and keeps no other from getting its
        // own.
        numbers.insert(1, u64::MAX);
        let outcome = node.end_series(&numbers)?;
        assert_eq!((outcome.samples_written, outcome.refused), (2, 0));
        // Twice in one call, or in two, it is the same mark.
        node.end_series(&[numbers[0], numbers[0]])?;
        let found = node.select(vec![], TimeRange::ALL);
        let marked = |name: &str| found[name].get(&1_000).is_some_and(Value::is_stale);
        assert!(marked("older") && marked("empty"));
        assert!(!marked("same") && !marked("newer") && found["newer"].len() == 1);
    }
    Ok(())
}

/// A scrape whose samples, markers and report were in several records lost a part by a kill.
#[test]
fn rows_and_ends_are_one_batch() -> Result<()> {
    for (options, by_columns) in
        [(OPTIONS, false), (OPTIONS, true), (WITH_OUT_OF_ORDER, false), (WITH_OUT_OF_ORDER, true)]
    {
        let mut node = Node::with(options);
        node.write_columns(by_columns)?;
        let mut number = |name: &str| {
            let labels = Labels::from_sorted([(LABEL_NAME, name), ("job", "test")]);
            node.engine.series_ref(&labels)
        };
        let [kept, gone, up] = [number("kept")?, number("gone")?, number("up")?];
        let rows = |at_ms: i64, value: f64| {
            [kept, up].map(|series| (series, Sample { timestamp_ms: at_ms, value })).into_iter()
        };
        node.engine
            .append([(gone, Sample { timestamp_ms: 900, value: 1.0 })].into_iter(), NOW_MS)?;
        node.engine.append(rows(900, 1.0), NOW_MS)?;
        let records = node.records();
        let ended = [gone, kept];
        let (written, refused) =
            node.engine.append_and_end(rows(AT_MS, 2.0), (&ended, AT_MS), NOW_MS)?;
        assert_eq!((written.samples_written, written.refused, refused), (3, 0, vec![]));
        assert_eq!(node.records(), records + 1, "one record");
        let found = node.select(vec![], TimeRange::ALL);
        assert!(found["gone"][&AT_MS].is_stale() && !found["kept"][&AT_MS].is_stale());
        node.restart();
        assert_eq!(node.select(vec![], TimeRange::ALL), found);
    }
    Ok(())
}

#[test]
fn refused_rows_are_named_and_the_others_stay() -> Result<()> {
    let mut node = Node::new();
    let mut numbers = Vec::new();
    for name in ["a", "b", "c"] {
        node.append(name, AT_MS, 1);
        let labels = Labels::from_sorted([(LABEL_NAME, name), ("job", "test")]);
        numbers.push(node.engine.series_ref(&labels)?);
    }
    let sample = |timestamp_ms: i64| Sample { timestamp_ms, value: 7.0 };
    let times = [AT_MS - 1, AT_MS + 1, AT_MS];
    let rows = numbers.iter().copied().zip(times.map(sample));
    let (written, refused) = node.engine.append_and_end(rows, (&[], AT_MS), NOW_MS)?;
    let reasons = [(0, RefusalReason::OutOfOrder), (2, RefusalReason::DuplicateSample)];
    assert_eq!((written.samples_written, written.refused, &refused[..]), (1, 2, &reasons[..]));
    let unknown = iter::once((u64::MAX, sample(AT_MS + 2)));
    assert!(node.engine.append_and_end(unknown, (&numbers, AT_MS + 2), NOW_MS).is_err());
    let found = node.select(vec![], TimeRange::ALL);
    assert!(found.values().all(|samples| !samples.contains_key(&(AT_MS + 2))), "nothing of it");
    Ok(())
}

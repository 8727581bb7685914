//! Marks of the end of series.

use super::*;

/// Upstream's rule for targets that vanish: a marker is refused if there are newer samples, also
/// where samples may come out of order.
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
        let outcome = node.engine.end_series(&numbers, 1_000, 1_000_000)?;
        assert_eq!((outcome.samples_written, outcome.refused), (2, 0));
        // Twice in one call, or in two, it is the same mark.
        node.engine.end_series(&[numbers[0], numbers[0]], 1_000, 1_000_000)?;
        let found = node.select(vec![], TimeRange::ALL);
        let marked = |name: &str| found[name].get(&1_000).is_some_and(Value::is_stale);
        assert!(marked("older") && marked("empty"));
        assert!(!marked("same") && !marked("newer") && found["newer"].len() == 1);
    }
    Ok(())
}

//! Requests of values of every kind, in order and out-of-order, over restarts and merges: all come
//! back, with true hints of counter resets.

use super::model::{same_model, value};
use super::*;
use crate::model::NativeHistogram;
use crate::model::histogram::{Count, ResetHint, Side};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Request {
    rows: Vec<(u8, i64, Value)>,
    compacts: bool,
    restarts: bool,
}

/// Values that often continue the one before, so that chunks grow.
fn any_request() -> impl Strategy<Value = Request> {
    let step_ms = prop_oneof![6 => 1i64..30, 1 => -900i64..0];
    let row = (0u8..3, step_ms, value(), any::<bool>());
    (prop::collection::vec(row, 1..40), 0u8..6).prop_map(|(rows, turn)| {
        let mut before: BTreeMap<u8, Value> = BTreeMap::new();
        let row = |(series, step_ms, value, is_new): (u8, i64, Value, bool)| {
            let value = match before.get(&series) {
                Some(before) if !is_new => before.clone(),
                _ => value,
            };
            before.insert(series, value.clone());
            (series, step_ms, value)
        };
        Request {
            rows: rows.into_iter().map(row).collect(),
            compacts: turn == 0,
            restarts: turn == 1,
        }
    })
}

/// Returns whether a counter at `before` can have reached `after` without a reset.
fn goes_on<C: Count>(before: &NativeHistogram<C>, after: &NativeHistogram<C>) -> bool {
    let (a, b) = (&before.layout, &after.layout);
    let same_bounds = a.schema == b.schema
        && a.zero_threshold == b.zero_threshold
        && (!a.has_custom_buckets() || a.same_bounds(b));
    let grows = |side| {
        let after: BTreeMap<i64, C::Bucket> = after.counts(side).collect();
        before.counts(side).all(|(index, count)| {
            count == C::Bucket::default() || after.get(&index).is_some_and(|now| *now >= count)
        })
    };
    same_bounds
        && !before.is_stale()
        && before.count <= after.count
        && before.zero_count <= after.zero_count
        && grows(Side::Positive)
        && grows(Side::Negative)
}

/// Returns the first value that wrongly denies a reset before it.
fn wrong_claim(values: &BTreeMap<i64, Value>) -> Option<i64> {
    let is_wrong = |before: &Value, after: &Value| match (before, after) {
        (_, Value::Float(_)) => false,
        (Value::Histogram(before), Value::Histogram(after)) => {
            after.reset_hint == ResetHint::NotReset && !goes_on(before, after)
        }
        (Value::FloatHistogram(before), Value::FloatHistogram(after)) => {
            after.reset_hint == ResetHint::NotReset && !goes_on(before, after)
        }
        (_, Value::Histogram(after)) => after.reset_hint == ResetHint::NotReset,
        (_, Value::FloatHistogram(after)) => after.reset_hint == ResetHint::NotReset,
    };
    let two = values.values().zip(values.iter().skip(1));
    two.into_iter().find(|(before, (_, after))| is_wrong(before, after)).map(|(_, (time, _))| *time)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn requests_of_every_kind_come_back(
        requests in prop::collection::vec(any_request(), 1..40),
    ) {
        let mut node = Node::with(WITH_OUT_OF_ORDER);
        let mut model = Model::new();
        let mut newest_ms = 3000;
        for Request { rows, compacts, restarts } in requests {
            let mut batch_rows = Vec::new();
            for (series, step_ms, value) in rows {
                let name = format!("s{series}");
                let time_ms = newest_ms + step_ms;
                let held = model.entry(name.clone()).or_default();
                if held.contains_key(&time_ms) {
                    continue;
                }
                held.insert(time_ms, value.clone());
                newest_ms = newest_ms.max(time_ms);
                batch_rows.push((name, time_ms, value));
            }
            let outcome = node.engine.append_batch("append", 1_000_000, |head, batch| {
                for (name, time_ms, value) in &batch_rows {
                    let labels = Labels::from_sorted([(LABEL_NAME, &**name), ("job", "test")]);
                    let slot = head.series_by_labels(batch, &labels).expect("a valid label set");
                    Ingest::check(head, batch, slot, *time_ms, value.clone())?;
                }
                Ok(())
            });
            prop_assert_eq!(outcome.expect("storage that works").refused, 0);
            if compacts {
                node.compact();
            }
            if restarts {
                node.restart();
            }
        }
        for ends in [false, true] {
            if ends {
                node.compact();
                node.restart();
            }
            let got = node.select(Vec::new(), TimeRange::ALL);
            prop_assert!(same_model(&got, &model), "{got:?}\n{model:?}");
            for (name, values) in &got {
                prop_assert_eq!(wrong_claim(values), None, "{} {:?}", name, values);
            }
        }
    }
}

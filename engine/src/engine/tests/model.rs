//! An engine compared with a plain map over random operations: values of every kind, in order and
//! out-of-order, cuts, merges, restarts, reads.

use super::*;
use crate::head::RefusalReason;
use crate::model::MatchOp;
use crate::model::histogram::testing::any_histogram;
use crate::model::histogram::{Count, ResetHint, STALE_NAN_BITS};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Operation {
    /// Series, step from the newest time of all, value.
    Append(u8, i64, Value),
    Compact,
    Restart,
    /// A restart that loads a head snapshot instead of the log.
    CleanRestart,
    Select(TimeRange, MatchOp, String),
}

/// Mostly floats of few values, so that duplicates happen.
pub(super) fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => (0u64..3).prop_map(|bits| f64::from_bits(bits).into()),
        1 => Just(f64::from_bits(STALE_NAN_BITS).into()),
        1 => any_histogram::<u64>().prop_map(Value::from),
        1 => any_histogram::<f64>().prop_map(Value::from),
    ]
}

fn is_gauge(value: &Value) -> bool {
    fn hint<C: Count>(histogram: &crate::model::NativeHistogram<C>) -> bool {
        histogram.reset_hint == ResetHint::Gauge && !histogram.is_stale()
    }
    match value {
        Value::Float(_) => false,
        Value::Histogram(histogram) => hint(histogram),
        Value::FloatHistogram(histogram) => hint(histogram),
    }
}

/// A staleness marker of a series may have become a histogram.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    a.same_observations(b) || (a.is_stale() && b.is_stale())
}

/// Repeated rows change nothing, a gauge's hint included.
fn replace(held: &mut Value, value: &Value) {
    if !same(held, value) {
        *held = value.clone();
    }
}

pub(super) fn same_model(a: &Model, b: &Model) -> bool {
    let names = a.keys().eq(b.keys());
    names
        && a.values().zip(b.values()).all(|(a, b)| {
            let both = || a.values().zip(b.values());
            a.keys().eq(b.keys()) && both().all(|(a, b)| same(a, b) && is_gauge(a) == is_gauge(b))
        })
}

impl Node {
    /// Appends rows of different series or times in one batch, and the accepted ones to a plain
    /// map; returns their newest time.
    pub(super) fn append_to_both(
        &mut self,
        model: &mut Model,
        rows: &[(String, i64, Value)],
        now_ms: i64,
    ) -> Result<Option<i64>> {
        let outcome = self.append_rows(rows, now_ms)?;
        let mut newest_ms = None;
        for (name, time_ms, value) in rows {
            let is_refused = outcome.refusals.iter().any(|refusal| {
                refusal.timestamp_ms == *time_ms
                    && refusal.detail.contains(&format!("__name__=\"{name}\""))
            });
            if is_refused {
                continue;
            }
            newest_ms = newest_ms.max(Some(*time_ms));
            let samples = model.entry(name.clone()).or_default();
            samples
                .entry(*time_ms)
                .and_modify(|held| replace(held, value))
                .or_insert_with(|| value.clone());
        }
        Ok(newest_ms)
    }
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
        20 => (0u8..6, -2200i64..300, value())
            .prop_map(|(series, step_ms, value)| Operation::Append(series, step_ms, value)),
        2 => Just(Operation::Compact),
        1 => Just(Operation::Restart),
        1 => Just(Operation::CleanRestart),
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
        with_out_of_order: bool,
        by_columns: bool,
    ) {
        let mut node = Node::with(if with_out_of_order { WITH_OUT_OF_ORDER } else { OPTIONS });
        node.write_columns(by_columns)?;
        let window_ms = if with_out_of_order { 2000 } else { OPTIONS.block_duration_ms / 2 };
        let mut model = Model::new();
        let mut newest_ms = 1000;
        for operation in operations {
            match operation {
                Operation::Append(series, step_ms, value) => {
                    let name = format!("s{series}");
                    let time_ms = newest_ms + step_ms;
                    let outcome = node.append_value(&name, time_ms, &value);
                    let samples = model.entry(name).or_default();
                    let is_newest = samples.keys().next_back().is_none_or(|last| time_ms > *last);
                    let is_same = samples.get(&time_ms).map(|before| same(before, &value));
                    match outcome.refusals.first().map(|refusal| refusal.reason) {
                        Some(reason) => {
                            // Only what lies behind the window, is another value, or, without a
                            // window for out-of-order samples, is out of order may be refused.
                            let in_window = time_ms >= newest_ms - window_ms;
                            let other_value = reason == RefusalReason::DuplicateSample;
                            prop_assert_eq!(other_value, is_same == Some(false) && other_value);
                            prop_assert!(!(is_newest && in_window), "{:?}", outcome);
                            prop_assert!(!(in_window && is_same == Some(true)), "{:?}", outcome);
                            prop_assert!(!(in_window && with_out_of_order && is_same.is_none()));
                        }
                        None => {
                            prop_assert_eq!(outcome.samples_written + outcome.histograms_written, 1);
                            // What only a block holds may be written over by an out-of-order
                            // sample.
                            prop_assert!(with_out_of_order || is_same != Some(false));
                            samples.entry(time_ms).and_modify(|held| replace(held, &value)).or_insert(value);
                            newest_ms = newest_ms.max(time_ms);
                        }
                    }
                }
                Operation::Compact => node.compact(),
                Operation::Restart => {
                    node.restart();
                    node.write_columns(by_columns)?;
                }
                Operation::CleanRestart => {
                    node.restart_cleanly();
                    node.write_columns(by_columns)?;
                }
                Operation::Select(range, op, value) => {
                    let spec = MatcherSpec { name: LABEL_NAME.into(), op, value };
                    let matcher = Matcher::new(&spec).expect("a valid matcher");
                    let mut wanted = model.clone();
                    wanted.retain(|name, samples| {
                        samples.retain(|time_ms, _| range.contains(*time_ms));
                        matcher.matches(name) && !samples.is_empty()
                    });
                    let got = node.select(vec![spec], range);
                    prop_assert!(same_model(&got, &wanted), "{got:?}\n{wanted:?}");
                }
            }
        }
        node.compact();
        node.restart();
        model.retain(|_, samples| !samples.is_empty());
        let got = node.select(Vec::new(), TimeRange::ALL);
        prop_assert!(same_model(&got, &model), "{got:?}\n{model:?}");
    }
}

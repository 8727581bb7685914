//! The model finds the faults of answers that are known to be wrong.

use super::*;
use tidepool_tests::histogram::Point;
use tidepool_tests::proto::prometheus::histogram::ResetHint;

fn answer(model: &mut Model, points: &[(i64, f64)]) -> Result<(), String> {
    let point = |&(timestamp_ms, value): &(i64, f64)| Point {
        timestamp_ms,
        value: Value::of_float(value),
        hint: ResetHint::Unknown,
    };
    let points = points.iter().map(point).collect();
    let now = model.tick();
    let view = View { acknowledged_before: now, deleted_before: now, sent_before: now };
    model.judge(&[ValueSeries { labels: labels(), points }], Asked::EVERYTHING, view)
}

fn labels() -> Labels {
    Labels::from_pairs([("__name__", "a")])
}

fn send(model: &mut Model, timestamp_ms: i64, value: f64, is_acknowledged: bool) {
    let request = model.begin([(labels(), timestamp_ms, Value::of_float(value))]);
    model.end(request, is_acknowledged, &[]);
}

#[test]
fn each_kind_of_fault_is_told() {
    let mut model = Model::default();
    send(&mut model, 1, 1.0, true);
    send(&mut model, 2, 2.0, false);
    let wrong = |answer: Result<(), String>, word: &str| {
        let text = answer.expect_err(word);
        assert!(text.contains(word), "{text}");
    };
    assert_eq!(answer(&mut model, &[(1, 1.0)]), Ok(()));
    assert_eq!(answer(&mut model, &[(1, 1.0), (2, 2.0)]), Ok(()));
    wrong(answer(&mut model, &[(2, 2.0)]), "lost");
    wrong(answer(&mut model, &[(1, 1.5)]), "never sent");
    wrong(answer(&mut model, &[(1, 1.0), (3, 1.0)]), "never sent");
    wrong(answer(&mut model, &[(1, 1.0), (1, 1.0)]), "twice");
    let deletion = model.begin_deletion(None, 1, 1);
    assert_eq!(answer(&mut model, &[(1, 1.0)]), Ok(()));
    assert_eq!(answer(&mut model, &[]), Ok(()));
    model.end_deletion(deletion);
    wrong(answer(&mut model, &[(1, 1.0)]), "deleted and back");
    assert_eq!(model.deleted_times(&labels()), [1]);
    send(&mut model, 1, 4.0, true);
    wrong(answer(&mut model, &[]), "lost");
    assert_eq!(answer(&mut model, &[(1, 4.0)]), Ok(()));
    model.forget_since(0);
    assert_eq!(answer(&mut model, &[]), Ok(()));
}

#[test]
fn what_was_replaced_does_not_come_back() {
    let mut model = Model::default();
    send(&mut model, 1, 1.0, true);
    send(&mut model, 1, 2.0, false);
    assert_eq!(answer(&mut model, &[(1, 1.0)]), Ok(()));
    assert_eq!(answer(&mut model, &[(1, 2.0)]), Ok(()));
    send(&mut model, 1, 3.0, true);
    assert_eq!(answer(&mut model, &[(1, 3.0)]), Ok(()));
    for older in [1.0, 2.0] {
        let told = answer(&mut model, &[(1, older)]).expect_err("it was replaced");
        assert!(told.contains("the older value"), "{told}");
    }
}

#[test]
fn after_a_cut_what_was_promised_before_counts() {
    let mut model = Model::default();
    send(&mut model, 1, 1.0, true);
    let cut = model.tick();
    send(&mut model, 2, 2.0, true);
    let later = model.tick();
    send(&mut model, 3, 3.0, true);
    let view = View { acknowledged_before: cut, deleted_before: later, sent_before: later };
    let mut left = model.after_a_cut(view, None);
    assert_eq!(answer(&mut left, &[(1, 1.0)]), Ok(()));
    assert_eq!(answer(&mut left, &[(1, 1.0), (2, 2.0)]), Ok(()));
    assert!(answer(&mut left, &[(2, 2.0)]).is_err(), "it was promised");
    assert!(answer(&mut left, &[(1, 1.0), (3, 3.0)]).is_err(), "it was sent after the cut");
    send(&mut left, 4, 4.0, true);
    assert!(answer(&mut left, &[(1, 1.0)]).is_err(), "it was promised after the cut");
    assert_eq!(answer(&mut left, &[(1, 1.0), (4, 4.0)]), Ok(()));
}

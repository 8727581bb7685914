//! Effects of relabel rules and external labels on a series, as Prometheus' documentation describes
//! them.

use crate::node::{Node, feed, settings};
use crate::received::deliver_all;
use crate::{BASE_MS, TestResult};
use tidepool_runtime::{Fed, ForwardSettings, Label, RelabelAction, RelabelRule};
use tidepool_tests::series::Series;

fn rule(action: RelabelAction) -> RelabelRule {
    RelabelRule {
        source_labels: vec!["a".into()],
        separator: ";".into(),
        regex: "(.*)".into(),
        modulus: 0,
        target_label: String::new(),
        replacement: "$1".into(),
        action,
    }
}

/// The rule with another expression.
fn with_regex(regex: &str, rule: RelabelRule) -> RelabelRule {
    RelabelRule { regex: regex.into(), ..rule }
}

/// A rule for label names, which has no source labels.
fn of_names(action: RelabelAction, regex: &str) -> RelabelRule {
    RelabelRule { source_labels: Vec::new(), ..with_regex(regex, rule(action)) }
}

/// The rule with another target.
fn with_target(target: &str, rule: RelabelRule) -> RelabelRule {
    RelabelRule { target_label: target.into(), ..rule }
}

/// Sends a row of `{__name__="m", a="x", b="Y1"}`; returns the labels of the received row.
fn sent(settings: &ForwardSettings) -> TestResult<Option<String>> {
    let mut node = Node::new()?;
    node.write(&[Series::new(&[("__name__", "m"), ("a", "x"), ("b", "Y1")], &[(BASE_MS, 1.0)])])?;
    let mut destination = node.destination(settings)?;
    let fed = feed(&mut destination, &node.all_pieces()?)?;
    let rows = deliver_all(&mut destination)?;
    let total = |of: fn(&Fed) -> u64| fed.iter().map(of).sum::<u64>();
    let expected = if rows.0.is_empty() { (0, 1) } else { (1, 0) };
    assert_eq!((total(|fed| fed.rows), total(|fed| fed.dropped)), expected);
    Ok(rows.0.into_keys().next())
}

#[test]
fn every_action_does_what_it_is_named_for() -> TestResult {
    use RelabelAction as A;
    let unchanged = Some("__name__=m,a=x,b=Y1");
    let joined = RelabelRule {
        source_labels: vec!["a".into(), "b".into()],
        regex: "(.+)-(.)(.)".into(),
        separator: "-".into(),
        replacement: "${3}_$1".into(),
        ..with_target("c", rule(A::Replace))
    };
    let of_b = |action| RelabelRule { source_labels: vec!["b".into()], ..rule(action) };
    let cases = [
        (joined, Some("__name__=m,a=x,b=Y1,c=1_x")),
        (with_regex("y", with_target("c", rule(A::Replace))), unchanged),
        (with_regex("x|y", rule(A::Keep)), unchanged),
        (with_regex("y", rule(A::Keep)), None),
        (with_regex("y", rule(A::Drop)), unchanged),
        (with_regex("x", rule(A::Drop)), None),
        (with_target("a", rule(A::KeepEqual)), unchanged),
        (with_target("b", rule(A::KeepEqual)), None),
        (with_target("b", rule(A::DropEqual)), unchanged),
        (with_target("a", rule(A::DropEqual)), None),
        // The last eight bytes of the MD5 hash of "x" are f5c8564e155c67a6.
        (
            RelabelRule { modulus: 1000, ..with_target("c", rule(A::HashMod)) },
            Some("__name__=m,a=x,b=Y1,c=726"),
        ),
        (
            RelabelRule { replacement: "new_$1".into(), ..of_names(A::LabelMap, "(a)") },
            Some("__name__=m,a=x,b=Y1,new_a=x"),
        ),
        (of_names(A::LabelDrop, "a|c"), Some("__name__=m,b=Y1")),
        (of_names(A::LabelKeep, "__name__|b"), Some("__name__=m,b=Y1")),
        (of_names(A::LabelKeep, "none"), None),
        (with_target("c", of_b(A::Lowercase)), Some("__name__=m,a=x,b=Y1,c=y1")),
        (with_target("c", rule(A::Uppercase)), Some("__name__=m,a=x,b=Y1,c=X")),
    ];
    for (rule, expected) in cases {
        let about = format!("{rule:?}");
        let found = sent(&ForwardSettings { rules: vec![rule], ..settings(1) })?;
        assert_eq!(found.as_deref(), expected, "{about}");
    }
    Ok(())
}

#[test]
fn external_labels_come_before_the_rules() -> TestResult {
    let label = |name: &str, value: &str| Label { name: name.into(), value: value.into() };
    let copy = RelabelRule {
        source_labels: vec!["node".into()],
        ..with_target("copy", rule(RelabelAction::Replace))
    };
    let external_labels = vec![label("node", "n1"), label("a", "other")];
    let settings = ForwardSettings { external_labels, rules: vec![copy], ..settings(1) };
    let found = sent(&settings)?;
    assert_eq!(found.as_deref(), Some("__name__=m,a=x,b=Y1,copy=n1,node=n1"));
    Ok(())
}

//! What rules make of labels.

use crate::labels::Labels;
use crate::rules::{Action, Rule};

/// Applies rules in order; says whether the series is kept.
pub fn relabel(rules: &[Rule], labels: &mut Labels) -> bool {
    rules.iter().all(|rule| apply(rule, labels))
}

fn apply(rule: &Rule, labels: &mut Labels) -> bool {
    let values: Vec<&str> = rule.source_labels.iter().map(|name| labels.get(name)).collect();
    let value = values.join(&rule.separator);
    match rule.action {
        Action::Keep => return rule.regex.is_match(&value),
        Action::Drop => return !rule.regex.is_match(&value),
        Action::KeepEqual => return labels.get(&rule.target_label) == value,
        Action::DropEqual => return labels.get(&rule.target_label) != value,
        Action::Replace => replace(rule, &value, labels),
        Action::Lowercase => labels.set(&rule.target_label, &value.to_lowercase()),
        Action::Uppercase => labels.set(&rule.target_label, &value.to_uppercase()),
        Action::HashMod => {
            let hash = md5::compute(value.as_bytes());
            // The last eight bytes, as Prometheus does it.
            let last = hash.last_chunk::<8>().copied().unwrap_or_default();
            let rest = u64::from_be_bytes(last) % rule.modulus;
            labels.set(&rule.target_label, &rest.to_string());
        }
        Action::LabelMap => {
            for (name, value) in labels.clone().iter() {
                if rule.regex.is_match(name) {
                    let new = rule.regex.replace_all(name, rule.replacement.as_str());
                    labels.set(&new, value);
                }
            }
        }
        Action::LabelDrop => labels.retain(|name| !rule.regex.is_match(name)),
        Action::LabelKeep => labels.retain(|name| rule.regex.is_match(name)),
    }
    true
}

fn replace(rule: &Rule, value: &str, labels: &mut Labels) {
    let Some(found) = rule.regex.captures(value) else { return };
    let mut target = String::new();
    found.expand(&rule.target_label, &mut target);
    // A name that means nothing changes nothing.
    if target.is_empty() {
        return;
    }
    let mut new = String::new();
    found.expand(&rule.replacement, &mut new);
    labels.set(&target, &new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::read;

    /// What rules make of `a=1,b=2`; `None` if it is dropped.
    fn made(rules: &str, labels: &str) -> Option<String> {
        let pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
        let mut labels = Labels::of(pairs);
        let rules = read(rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
        let is_kept = relabel(&rules, &mut labels);
        let pairs: Vec<String> = labels.iter().map(|(n, v)| format!("{n}={v}")).collect();
        is_kept.then(|| pairs.join(","))
    }

    #[test]
    fn each_action_does_what_prometheus_documents() {
        for (rules, labels, expected) in [
            (
                "[{source_labels: [a], target_label: d, regex: 'f(.*)', replacement: 'x${1}y'}]",
                "a=foo",
                Some("a=foo,d=xooy"),
            ),
            (
                "[{source_labels: [a, b], target_label: d, separator: '-'}]",
                "a=1,b=2",
                Some("a=1,b=2,d=1-2"),
            ),
            ("[{source_labels: [a], target_label: d, regex: 'oo'}]", "a=foo", Some("a=foo")),
            ("[{target_label: d, replacement: 7}]", "a=1", Some("a=1,d=7")),
            (
                "[{source_labels: [a], target_label: '${1}', regex: '(.*)', replacement: x}]",
                "a=n",
                Some("a=n,n=x"),
            ),
            (
                "[{source_labels: [a], target_label: a, regex: '.*', replacement: ''}]",
                "a=1,b=2",
                Some("b=2"),
            ),
            ("[{source_labels: [a], regex: 'x|y', action: drop}]", "a=x", None),
            ("[{source_labels: [a], regex: 'x|y', action: drop}]", "a=xy", Some("a=xy")),
            ("[{source_labels: [a], regex: x, action: keep}]", "a=x", Some("a=x")),
            ("[{source_labels: [a], regex: x, action: keep}]", "b=x", None),
            (
                "[{source_labels: [a], target_label: b, action: keepequal}]",
                "a=1,b=1",
                Some("a=1,b=1"),
            ),
            ("[{source_labels: [a], target_label: b, action: keepequal}]", "a=1,b=2", None),
            ("[{source_labels: [a], target_label: b, action: dropequal}]", "a=1,b=1", None),
            (
                "[{source_labels: [c], target_label: d, modulus: 1000, action: hashmod}]",
                "c=baz",
                Some("c=baz,d=976"),
            ),
            (
                "[{regex: '(b.*)', replacement: 'bar_$1', action: labelmap}]",
                "a=1,b1=2,b2=3",
                Some("a=1,b1=2,b2=3,bar_b1=2,bar_b2=3"),
            ),
            ("[{regex: '(b.*)', action: labeldrop}]", "a=1,b1=2", Some("a=1")),
            ("[{regex: 'a', action: LabelKeep}]", "a=1,b1=2", Some("a=1")),
            (
                "[{source_labels: [a], target_label: b, action: uppercase}]",
                "a=bAr",
                Some("a=bAr,b=BAR"),
            ),
            ("[{source_labels: [a], target_label: a, action: lowercase}]", "a=bAr", Some("a=bar")),
            ("", "a=1", Some("a=1")),
        ] {
            assert_eq!(made(rules, labels).as_deref(), expected, "{rules} of {labels}");
        }
    }

    #[test]
    fn what_prometheus_refuses_is_refused() {
        for (rules, why) in [
            ("a: b", "a list of rules"),
            ("[{regex: '('}]", "rule 1: regex"),
            (
                "[{action: keep, regex: a}, {action: filter}]",
                "rule 2: there is no action \"filter\"",
            ),
            ("[{source_labels: [a]}]", "needs a target_label"),
            ("[{action: hashmod, target_label: a}]", "needs a modulus"),
            ("[{action: labeldrop, regex: a, target_label: b}]", "takes no target_label"),
            ("[{sources: [a]}]", "no key \"sources\""),
        ] {
            let read = read(rules);
            assert!(read.as_ref().is_err_and(|error| error.contains(why)), "{rules}: {read:?}");
        }
    }
}

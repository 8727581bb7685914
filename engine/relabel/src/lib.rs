//! Rules that change or drop label sets, as Prometheus' `relabel_config`.
//!
//! Source: prometheus/prometheus, `model/relabel` and `docs/configuration/configuration.md`. Rules
//! are applied in order. An expression is anchored at both ends, and its dot matches a newline.
//! `tests/upstream.rs` compares the results with upstream's.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod case;
mod globs;
mod labels;
mod literals;
mod pattern;
mod prefixes;
pub mod re2;
mod replacer;
mod search;
mod substitution;
mod template;

use labels::Labels;
pub use pattern::Pattern;
use regex_automata::util::captures::Captures;
pub use replacer::Replacer;
pub use search::Search;
use std::collections::BTreeMap;
pub use substitution::Substitution;

/// Maximum length of an expression, in bytes.
pub const REGEX_BYTES_MAX: usize = 64 * 1024;

/// Maximum memory of one compiled expression, in bytes.
const REGEX_COMPILED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Expression of a rule without `regex`.
pub const REGEX_DEFAULT: &str = "(.*)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sets the target to the replacement if the expression matches.
    Replace,
    /// Keeps sets that the expression matches.
    Keep,
    /// Drops sets that the expression matches.
    Drop,
    /// Keeps sets whose target label equals the joined source.
    KeepEqual,
    /// Drops sets whose target label equals the joined source.
    DropEqual,
    /// Sets the target to the hash of the joined source, modulo a number.
    HashMod,
    /// Copies labels whose names match to names made by the replacement.
    LabelMap,
    /// Removes labels whose names match.
    LabelDrop,
    /// Removes labels whose names do not match.
    LabelKeep,
    /// Sets the target to the joined source in lower case.
    Lowercase,
    /// Sets the target to the joined source in upper case.
    Uppercase,
}

impl Action {
    pub const ALL: [Action; 11] = [
        Action::Replace,
        Action::Keep,
        Action::Drop,
        Action::KeepEqual,
        Action::DropEqual,
        Action::HashMod,
        Action::LabelMap,
        Action::LabelDrop,
        Action::LabelKeep,
        Action::Lowercase,
        Action::Uppercase,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Action::Replace => "replace",
            Action::Keep => "keep",
            Action::Drop => "drop",
            Action::KeepEqual => "keepequal",
            Action::DropEqual => "dropequal",
            Action::HashMod => "hashmod",
            Action::LabelMap => "labelmap",
            Action::LabelDrop => "labeldrop",
            Action::LabelKeep => "labelkeep",
            Action::Lowercase => "lowercase",
            Action::Uppercase => "uppercase",
        }
    }
}

/// A rule as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSpec {
    /// Labels whose values are joined to the source.
    pub source_labels: Vec<String>,
    pub separator: String,
    /// The expression, in RE2's syntax.
    pub regex: String,
    pub modulus: u64,
    /// Label to set; may refer to groups of the expression.
    pub target_label: String,
    /// Value to set; may refer to groups of the expression.
    pub replacement: String,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The expression does not parse, or is too large.
    #[error("the regular expression {expression:?} of a relabel rule is invalid: {reason}")]
    Regex {
        expression: String,
        /// Error of the parser or compiler.
        reason: String,
    },
    /// The rule has a part that its action does not use.
    #[error("a relabel rule with the action {action:?} takes no {part}")]
    Foreign {
        action: Action,
        /// Name of the part without use.
        part: &'static str,
    },
    /// The action needs a part that is missing.
    #[error("a relabel rule with the action {action:?} needs {part}")]
    Missing {
        action: Action,
        /// Name of the part that is missing.
        part: &'static str,
    },
}

/// A rule with its expression compiled.
#[derive(Debug)]
pub struct Rule {
    spec: RuleSpec,
    regex: Replacer,
    captures: Captures,
}

impl RuleSpec {
    /// Returns a rule with upstream's defaults.
    pub fn new(action: Action) -> RuleSpec {
        RuleSpec {
            source_labels: Vec::new(),
            separator: ";".into(),
            regex: REGEX_DEFAULT.into(),
            modulus: 0,
            target_label: String::new(),
            replacement: "$1".into(),
            action,
        }
    }

    /// Checks that the rule has all parts that its action needs, and no other parts.
    fn check(&self) -> Result<(), RuleError> {
        use Action::{DropEqual, HashMod, KeepEqual, LabelDrop, LabelKeep, LabelMap};
        use Action::{Lowercase, Replace, Uppercase};
        let action = self.action;
        let missing = |part| Err(RuleError::Missing { action, part });
        let foreign = |part| Err(RuleError::Foreign { action, part });
        let needs_target = [Replace, HashMod, Lowercase, Uppercase, KeepEqual, DropEqual];
        if needs_target.contains(&action) && self.target_label.is_empty() {
            return missing("a target_label");
        }
        if action == HashMod && self.modulus == 0 {
            return missing("a modulus above zero");
        }
        if action == LabelMap && self.replacement.is_empty() {
            return missing("a replacement");
        }
        // A part that equals its default cannot be distinguished from an absent part.
        let default = RuleSpec::new(action);
        let compares = [KeepEqual, DropEqual].contains(&action);
        let chooses = [LabelDrop, LabelKeep].contains(&action);
        let takes_case = [Lowercase, Uppercase].contains(&action);
        if (compares || chooses || takes_case) && self.replacement != default.replacement {
            return foreign("replacement");
        }
        if (compares || chooses) && self.separator != default.separator {
            return foreign("separator");
        }
        if (compares || chooses) && self.modulus != default.modulus {
            return foreign("modulus");
        }
        if compares && self.regex != default.regex {
            return foreign("regex");
        }
        if chooses && !self.target_label.is_empty() {
            return foreign("target_label");
        }
        if chooses && !self.source_labels.is_empty() {
            return foreign("source_labels");
        }
        Ok(())
    }
}

impl Rule {
    /// Checks and compiles a rule.
    pub fn new(spec: RuleSpec) -> Result<Rule, RuleError> {
        spec.check()?;
        // Compiled even if the action does not use the expression, so that an invalid expression is
        // always refused.
        let wrong = |reason: String| RuleError::Regex { expression: spec.regex.clone(), reason };
        let regex = Replacer::new(&spec.regex).map_err(wrong)?;
        let captures = regex.captures();
        Ok(Rule { spec, regex, captures })
    }

    /// Applies the rule; returns whether the set is kept.
    fn apply(&mut self, labels: &mut Labels) -> bool {
        let spec = &self.spec;
        // A missing label joins as an empty value.
        let value_of = |name: &String| labels.get(name);
        let sources: Vec<&str> = spec.source_labels.iter().map(value_of).collect();
        let source = sources.join(&spec.separator);
        match spec.action {
            Action::Keep => return self.regex.is_match(&source),
            Action::Drop => return !self.regex.is_match(&source),
            Action::KeepEqual => return value_of(&spec.target_label) == source,
            Action::DropEqual => return value_of(&spec.target_label) != source,
            Action::Replace => {
                if self.regex.find(&source, &mut self.captures) {
                    // Both templates refer to the source; an empty value removes the target.
                    let target = self.expanded(&source, &self.spec.target_label);
                    let value = self.expanded(&source, &self.spec.replacement);
                    labels.set(target, value);
                }
            }
            Action::HashMod => {
                // Upstream takes the last eight bytes of the digest, big-endian.
                let digest = md5(source.as_bytes());
                let mut last = [0; 8];
                last.copy_from_slice(&digest[8..]);
                let hash = u64::from_be_bytes(last).checked_rem(spec.modulus).unwrap_or(0);
                labels.set(spec.target_label.clone(), hash.to_string());
            }
            Action::Lowercase => labels.set(spec.target_label.clone(), case::lower(&source)),
            Action::Uppercase => labels.set(spec.target_label.clone(), case::upper(&source)),
            Action::LabelMap => {
                // Collected before labels are set, because new labels must not be mapped again.
                let mut mapped = Vec::new();
                for (name, value) in labels.iter() {
                    if self.regex.find(name, &mut self.captures) {
                        mapped
                            .push((self.expanded(name, &self.spec.replacement), value.to_owned()));
                    }
                }
                mapped.into_iter().for_each(|(name, value)| labels.set(name, value));
            }
            Action::LabelDrop => labels.retain(|name| !self.regex.is_match(name)),
            Action::LabelKeep => labels.retain(|name| self.regex.is_match(name)),
        }
        true
    }

    /// Returns a template with the groups of the last match inserted.
    fn expanded(&self, text: &str, template: &str) -> String {
        self.regex.expanded(&self.captures, text, template)
    }
}

/// Applies rules in order; returns whether the set is kept. A set without labels is dropped.
pub fn relabel(rules: &mut [Rule], labels: &mut BTreeMap<String, String>) -> bool {
    let mut changed = Labels::of(std::mem::take(labels));
    let is_kept = rules.iter_mut().all(|rule| rule.apply(&mut changed)) && !changed.is_empty();
    *labels = changed.into_map();
    is_kept
}

/// MD5 (RFC 1321), by which upstream distributes label sets. It protects no secret here.
fn md5(bytes: &[u8]) -> [u8; 16] {
    use md5::{Digest as _, Md5};
    Md5::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type LabelMap = BTreeMap<String, String>;

    fn set_of(pairs: &[(&str, &str)]) -> LabelMap {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn apply(spec: RuleSpec, pairs: &[(&str, &str)]) -> Option<LabelMap> {
        let mut labels = set_of(pairs);
        let mut rules = [Rule::new(spec).expect("a rule")];
        relabel(&mut rules, &mut labels).then_some(labels)
    }

    fn rule(action: Action, source: &[&str], regex: &str, target: &str, to: &str) -> RuleSpec {
        let default = RuleSpec::new(action);
        let or = |text: &str, default: &str| match text {
            "-" => default.to_owned(),
            text => text.to_owned(),
        };
        RuleSpec {
            source_labels: source.iter().map(|name| (*name).into()).collect(),
            regex: or(regex, REGEX_DEFAULT),
            target_label: target.into(),
            replacement: or(to, &default.replacement),
            modulus: if action == Action::HashMod { 1000 } else { 0 },
            ..default
        }
    }

    /// The cases of upstream's documentation and of its test of the same name.
    #[test]
    fn rules_do_what_upstreams_do() {
        use Action::*;
        let abc = [("a", "foo"), ("b", "bar"), ("c", "baz")];
        let with = |more: &[(&str, &str)]| Some(set_of(&[&abc[..], more].concat()));
        for (spec, expected) in [
            (rule(Replace, &["a"], "f(.*)", "d", "ch${1}-ch${1}"), with(&[("d", "choo-choo")])),
            (rule(Replace, &["a", "b"], "f(.*);(.*)r", "a", "b${1}${2}m"), {
                Some(set_of(&[("a", "boobam"), ("b", "bar"), ("c", "baz")]))
            }),
            (
                rule(Replace, &["a"], "(f).*", "$1_x", "v"),
                with(&[("f", "")]).map(|mut l| {
                    // `$1_x` names a group that does not exist, so it is empty.
                    l.remove("f");
                    l
                }),
            ),
            (rule(Replace, &["a"], "(f).*", "${1}_x", "v"), with(&[("f_x", "v")])),
            (rule(Replace, &["a"], "no", "d", "x"), with(&[])),
            (rule(Replace, &["a"], "foo", "b", ""), Some(set_of(&[("a", "foo"), ("c", "baz")]))),
            (rule(Keep, &["a"], "foo|x", "", ""), with(&[])),
            (rule(Keep, &["a"], "fo", "", ""), None),
            (rule(Drop, &["a"], ".*o.*", "", ""), None),
            (rule(Drop, &["x"], "y", "", ""), with(&[])),
            (rule(KeepEqual, &["a"], "-", "b", "-"), None),
            (rule(DropEqual, &["a"], "-", "b", "-"), with(&[])),
            (rule(HashMod, &["c"], "", "d", ""), with(&[("d", "976")])),
            (rule(LabelMap, &[], "(b.*)", "", "bar_${1}"), with(&[("bar_b", "bar")])),
            (rule(LabelDrop, &[], "[ab]", "", "-"), Some(set_of(&[("c", "baz")]))),
            (rule(LabelKeep, &[], "[ab]", "", "-"), Some(set_of(&abc[..2]))),
            (rule(LabelKeep, &[], "z", "", "-"), None),
            (rule(Uppercase, &["a"], "", "d", "-"), with(&[("d", "FOO")])),
            (rule(Lowercase, &["a", "b"], "", "d", "-"), with(&[("d", "foo;bar")])),
        ] {
            assert_eq!(apply(spec.clone(), &abc), expected, "{spec:?}");
        }
    }

    #[test]
    fn rules_that_cannot_work_are_refused() {
        let wrong = [
            rule(Action::Replace, &["a"], "(", "b", ""),
            rule(Action::Replace, &["a"], "a", "", ""),
            RuleSpec { modulus: 0, ..rule(Action::HashMod, &["a"], "a", "b", "") },
            rule(Action::LabelDrop, &["a"], "a", "", "-"),
            rule(Action::KeepEqual, &["a"], "a", "b", "-"),
            rule(Action::LabelMap, &[], "a", "", ""),
            rule(Action::Keep, &["a"], &"a".repeat(REGEX_BYTES_MAX + 1), "", ""),
        ];
        for spec in wrong {
            assert!(Rule::new(spec).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_replaced_or_refused(
            regex in "[a-z().*+?|$^{}\\[\\]\\\\0-9]{0,12}",
            replacement in "[a-z$ {}0-9]{0,12}",
            value in "[a-z0-9\n]{0,12}",
        ) {
            let spec = rule(Action::Replace, &["a"], &regex, "b", &replacement);
            if let Ok(rule) = Rule::new(spec) {
                relabel(&mut [rule], &mut set_of(&[("a", &value)]));
            }
        }
    }
}

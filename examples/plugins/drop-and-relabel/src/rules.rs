//! Reads rules in the format of Prometheus' configuration.
//!
//! Source: Prometheus' documentation, "Configuration", section `relabel_config`.

use saphyr::{LoadableYamlNode as _, Yaml};
use tidepool_relabel::{Action, Rule, RuleSpec};

const ACTIONS: [(&str, Action); 11] = [
    ("replace", Action::Replace),
    ("keep", Action::Keep),
    ("drop", Action::Drop),
    ("keepequal", Action::KeepEqual),
    ("dropequal", Action::DropEqual),
    ("hashmod", Action::HashMod),
    ("labelmap", Action::LabelMap),
    ("labeldrop", Action::LabelDrop),
    ("labelkeep", Action::LabelKeep),
    ("lowercase", Action::Lowercase),
    ("uppercase", Action::Uppercase),
];

pub fn read(text: &str) -> Result<Vec<Rule>, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| format!("invalid YAML: {error}"))?;
    let Some(document) = documents.first() else { return Ok(Vec::new()) };
    if document.is_null() {
        return Ok(Vec::new());
    }
    let items = document.as_sequence().ok_or("expected a list of rules")?;
    let number = |(place, item)| rule(item).map_err(|why| format!("rule {}: {why}", place + 1));
    items.iter().enumerate().map(number).collect()
}

fn rule(item: &Yaml<'_>) -> Result<Rule, String> {
    let map = item.as_mapping().ok_or("expected lines of the form `key: value`")?;
    let mut spec = RuleSpec::new(Action::Replace);
    for (key, value) in map {
        let key = key.as_str().ok_or("expected a string as key")?;
        match key {
            "source_labels" => {
                let names = value.as_sequence().ok_or("source_labels: expected a list")?;
                let names = names.iter().map(|name| text("source_labels", name));
                spec.source_labels = names.collect::<Result<_, _>>()?;
            }
            "separator" => spec.separator = text(key, value)?,
            "regex" => spec.regex = text(key, value)?,
            "modulus" => {
                let modulus = value.as_integer().and_then(|number| u64::try_from(number).ok());
                spec.modulus = modulus.ok_or("modulus: expected a number")?;
            }
            "target_label" => spec.target_label = text(key, value)?,
            "replacement" => spec.replacement = text(key, value)?,
            "action" => {
                let action = text(key, value)?.to_lowercase();
                let known = ACTIONS.iter().find(|(name, _)| *name == action);
                spec.action = known.ok_or(format!("unknown action {action:?}"))?.1;
            }
            _ => return Err(format!("unknown key {key:?}")),
        }
    }
    Rule::new(spec).map_err(|error| error.to_string())
}

/// Returns a scalar as text, whatever type it looks like.
fn text(key: &str, value: &Yaml<'_>) -> Result<String, String> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    if let Some(number) = value.as_integer() {
        return Ok(number.to_string());
    }
    match value.as_bool() {
        Some(yes) => Ok(yes.to_string()),
        None if value.is_null() => Ok(String::new()),
        None => Err(format!("{key}: expected a string; put it in quotes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use tidepool_relabel::relabel;

    #[test]
    fn rules_are_read_as_they_are_written() -> Result<(), String> {
        let mut rules = read(
            "- {source_labels: [a, b], separator: '-', target_label: d}\n\
             - {regex: 'a|7', action: LabelDrop}\n\
             - {target_label: n, replacement: 7}\n\
             - {source_labels: [b], target_label: m, modulus: 3, action: hashmod}\n",
        )?;
        let set = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let mut labels = set(&[("a", "1"), ("b", "2")]);
        assert!(relabel(&mut rules, &mut labels));
        assert_eq!(labels, set(&[("b", "2"), ("d", "1-2"), ("m", "0"), ("n", "7")]));
        assert!(read("").is_ok_and(|rules| rules.is_empty()));
        Ok(())
    }

    #[test]
    fn what_prometheus_refuses_is_refused() {
        for (rules, why) in [
            ("a: b", "a list of rules"),
            ("[{target_label: a, regex: '('}]", "rule 1: the regular expression"),
            ("[{action: keep, regex: a}, {action: filter}]", "rule 2: unknown action \"filter\""),
            ("[{source_labels: [a]}]", "needs a target_label"),
            ("[{action: hashmod, target_label: a}]", "needs a modulus"),
            ("[{action: labeldrop, regex: a, target_label: b}]", "takes no target_label"),
            ("[{sources: [a]}]", "unknown key \"sources\""),
        ] {
            let read = read(rules).map(|rules| rules.len());
            assert!(read.as_ref().is_err_and(|error| error.contains(why)), "{rules}: {read:?}");
        }
    }

    /// Compares how rules are read; their effects are compared in `tidepool-relabel`.
    #[test]
    #[ignore = "needs what tests/peers/build makes"]
    fn upstream_reads_and_applies_rules_alike() -> Result<(), Box<dyn std::error::Error>> {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target"), PathBuf::from);
        let program = target.join("peers/go-relabel");
        let output = Command::new(&program).args(["8", "1000"]).output()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let labels_of = |value: &Yaml<'_>| -> Option<BTreeMap<String, String>> {
            let pairs = value.as_mapping()?.iter();
            pairs.map(|(k, v)| Some((k.as_str()?.to_owned(), v.as_str()?.to_owned()))).collect()
        };
        let mut compared = 0;
        for line in String::from_utf8(output.stdout)?.lines() {
            // JSON is YAML.
            let documents = Yaml::load_from_str(line)?;
            let line = &documents[0];
            let text = line["rules"].as_str().ok_or("no rules")?;
            let error = line["error"].as_str().ok_or("no error")?;
            let mut rules = match read(text) {
                Ok(rules) if error.is_empty() => rules,
                Err(_) if !error.is_empty() => continue,
                other => panic!("{text}: {:?}, upstream {error:?}", other.err()),
            };
            for case in line["cases"].as_sequence().ok_or("no cases")? {
                let before = labels_of(&case["labels"]).ok_or("no labels")?;
                let mut made = before.clone();
                let made = relabel(&mut rules, &mut made).then_some(made);
                assert_eq!(made, labels_of(&case["result"]), "{text} of {before:?}");
                compared += 1;
            }
        }
        assert!(compared > 2000, "{compared} compared");
        Ok(())
    }
}

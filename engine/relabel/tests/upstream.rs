//! Random rules and label sets have the same outcome as upstream, whose own package runs in a
//! program made by `tests/peers/build`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidepool_relabel::{Action, Rule, RuleError, RuleSpec, relabel};

/// Seed and number of the cases: the same each time, and enough for all combinations.
const SEED: &str = "20261122";
const COUNT: &str = "4000";

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

/// Parses a rule; `None` if the action does not exist.
fn rule(item: &Value) -> Option<Result<Rule, RuleError>> {
    let name = item["action"].as_str().unwrap_or("replace").to_lowercase();
    let (_, action) = *ACTIONS.iter().find(|(known, _)| *known == name)?;
    let mut spec = RuleSpec::new(action);
    let set = |to: &mut String, key: &str| {
        if let Some(text) = item[key].as_str() {
            *to = text.to_owned();
        }
    };
    set(&mut spec.separator, "separator");
    set(&mut spec.regex, "regex");
    set(&mut spec.target_label, "target_label");
    set(&mut spec.replacement, "replacement");
    spec.modulus = item["modulus"].as_u64().unwrap_or_default();
    let names = item["source_labels"].as_array().into_iter().flatten();
    spec.source_labels = names.filter_map(Value::as_str).map(str::to_owned).collect();
    Some(Rule::new(spec))
}

fn labels(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    pairs.map(|(name, value)| (name.clone(), text(value))).collect()
}

#[test]
fn rules_do_what_upstreams_do() {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let program = target.join("peers/go-relabel");
    let output = Command::new(&program).args([SEED, COUNT]).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let (mut refused, mut compared, mut wrong) = (0, 0, Vec::new());
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let text = line["rules"].as_str().expect("rules");
        let items: Value = serde_json::from_str(text).expect("rules in JSON");
        let rules = items.as_array().expect("a list").iter().map(rule);
        let rules: Option<Result<Vec<Rule>, _>> = rules.collect();
        let mut rules = match (rules, line["error"].as_str()) {
            (None | Some(Err(_)), Some(error)) if !error.is_empty() => {
                refused += 1;
                continue;
            }
            (Some(Ok(rules)), Some("")) => rules,
            (ours, theirs) => {
                wrong.push(format!("{text}: {:?}, upstream {theirs:?}", ours.map(Result::err)));
                continue;
            }
        };
        for case in line["cases"].as_array().expect("cases") {
            let before = labels(&case["labels"]);
            let expected = (!case["result"].is_null()).then(|| labels(&case["result"]));
            let mut made = before.clone();
            let made = relabel(&mut rules, &mut made).then_some(made);
            compared += 1;
            if made != expected {
                wrong.push(format!("{text} of {before:?}: {made:?}, upstream {expected:?}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    assert!(refused > 100 && compared > 10_000, "{refused} refused, {compared} compared");
}

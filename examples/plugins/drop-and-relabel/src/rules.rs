//! Rules as Prometheus' configuration has them.
//!
//! Source: Prometheus' documentation, "Configuration", section `relabel_config`.

use regex::Regex;
use saphyr::{LoadableYamlNode as _, Yaml};

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Replace,
    Keep,
    Drop,
    KeepEqual,
    DropEqual,
    HashMod,
    LabelMap,
    LabelDrop,
    LabelKeep,
    Lowercase,
    Uppercase,
}

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

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    pub action: Action,
    pub source_labels: Vec<String>,
    pub separator: String,
    /// Anchored at both ends.
    pub regex: Regex,
    /// Whether the regex is the one that matches everything.
    pub is_default_regex: bool,
    pub modulus: u64,
    pub target_label: String,
    pub replacement: String,
}

/// Reads a list of rules.
pub fn read(text: &str) -> Result<Vec<Rule>, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| format!("no YAML: {error}"))?;
    let Some(document) = documents.first() else { return Ok(Vec::new()) };
    if document.is_null() {
        return Ok(Vec::new());
    }
    let items = document.as_sequence().ok_or("a list of rules is wanted")?;
    let number = |(place, item)| rule(item).map_err(|why| format!("rule {}: {why}", place + 1));
    items.iter().enumerate().map(number).collect()
}

fn rule(item: &Yaml<'_>) -> Result<Rule, String> {
    let map = item.as_mapping().ok_or("lines of the form `key: value` are wanted")?;
    let mut rule = Rule {
        action: Action::Replace,
        source_labels: Vec::new(),
        separator: ";".to_owned(),
        regex: anchored("(.*)")?,
        is_default_regex: true,
        modulus: 0,
        target_label: String::new(),
        replacement: "$1".to_owned(),
    };
    let mut given = Vec::new();
    for (key, value) in map {
        let key = key.as_str().ok_or("a key is no text")?;
        given.push(key);
        match key {
            "source_labels" => {
                let names = value.as_sequence().ok_or("source_labels: a list is wanted")?;
                let names = names.iter().map(|name| text("source_labels", name));
                rule.source_labels = names.collect::<Result<_, _>>()?;
            }
            "separator" => rule.separator = text(key, value)?,
            "regex" => {
                let regex = text(key, value)?;
                rule.is_default_regex = regex == "(.*)";
                rule.regex = anchored(&regex)?;
            }
            "modulus" => {
                let modulus = value.as_integer().and_then(|number| u64::try_from(number).ok());
                rule.modulus = modulus.ok_or("modulus: a number is wanted")?;
            }
            "target_label" => rule.target_label = text(key, value)?,
            "replacement" => rule.replacement = text(key, value)?,
            "action" => {
                let action = text(key, value)?.to_lowercase();
                let known = ACTIONS.iter().find(|(name, _)| *name == action);
                rule.action = known.ok_or(format!("there is no action {action:?}"))?.1;
            }
            _ => return Err(format!("there is no key {key:?}")),
        }
    }
    check(&rule, &given)?;
    Ok(rule)
}

/// What Prometheus refuses, too.
fn check(rule: &Rule, given: &[&str]) -> Result<(), String> {
    use Action::{
        DropEqual, HashMod, KeepEqual, LabelDrop, LabelKeep, Lowercase, Replace, Uppercase,
    };
    let needs_target =
        matches!(rule.action, Replace | HashMod | Lowercase | Uppercase | KeepEqual | DropEqual);
    if needs_target && rule.target_label.is_empty() {
        return Err("this action needs a target_label".to_owned());
    }
    if rule.action == HashMod && rule.modulus == 0 {
        return Err("hashmod needs a modulus".to_owned());
    }
    let foreign = |allowed: &[&str]| given.iter().copied().find(|key| !allowed.contains(key));
    let foreign = match rule.action {
        LabelDrop | LabelKeep => foreign(&["action", "regex"]),
        KeepEqual | DropEqual => foreign(&["action", "source_labels", "separator", "target_label"]),
        _ => None,
    };
    foreign.map_or(Ok(()), |key| Err(format!("this action takes no {key}")))
}

/// The text of a scalar, whatever it looks like.
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
        None => Err(format!("{key}: a text is wanted; put it in quotes")),
    }
}

fn anchored(regex: &str) -> Result<Regex, String> {
    Regex::new(&format!("^(?s:{regex})$")).map_err(|error| format!("regex {regex:?}: {error}"))
}

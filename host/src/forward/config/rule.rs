//! Rules of `write_relabel_configs`, judged by the crate that applies them in the engine.

use crate::wasm::{RelabelAction, RelabelRule};
use crate::yaml;
use serde::{Deserialize, Deserializer};
use tidepool_relabel::{Action, Rule, RuleError, RuleSpec};

/// A rule that the engine can use.
#[derive(Deserialize)]
#[serde(try_from = "RuleSection")]
pub(super) struct RuleConfig(RelabelRule);

/// One rule, by upstream's names and with upstream's defaults.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RuleSection {
    source_labels: Vec<String>,
    separator: String,
    regex: String,
    #[serde(deserialize_with = "yaml::number::<_, _, 1, { u64::MAX }>")]
    modulus: u64,
    target_label: String,
    replacement: String,
    #[serde(deserialize_with = "action")]
    action: RelabelAction,
}

impl Default for RuleSection {
    fn default() -> RuleSection {
        RuleSection {
            source_labels: Vec::new(),
            separator: ";".to_owned(),
            regex: "(.*)".to_owned(),
            modulus: 0,
            target_label: String::new(),
            replacement: "$1".to_owned(),
            action: RelabelAction::Replace,
        }
    }
}

fn action<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RelabelAction, D::Error> {
    yaml::parsed(deserializer, |text| {
        Ok(match text.to_ascii_lowercase().as_str() {
            "replace" => RelabelAction::Replace,
            "keep" => RelabelAction::Keep,
            "drop" => RelabelAction::Drop,
            "keepequal" => RelabelAction::KeepEqual,
            "dropequal" => RelabelAction::DropEqual,
            "hashmod" => RelabelAction::HashMod,
            "labelmap" => RelabelAction::LabelMap,
            "labeldrop" => RelabelAction::LabelDrop,
            "labelkeep" => RelabelAction::LabelKeep,
            "lowercase" => RelabelAction::Lowercase,
            "uppercase" => RelabelAction::Uppercase,
            _ => return Err(format!("there is no action {text:?}")),
        })
    })
}

impl From<RuleConfig> for RelabelRule {
    fn from(RuleConfig(rule): RuleConfig) -> RelabelRule {
        rule
    }
}

impl TryFrom<RuleSection> for RuleConfig {
    type Error = RuleError;

    fn try_from(section: RuleSection) -> Result<RuleConfig, RuleError> {
        let RuleSection {
            source_labels,
            separator,
            regex,
            modulus,
            target_label,
            replacement,
            action,
        } = section;
        let rule = RelabelRule {
            source_labels,
            separator,
            regex,
            modulus,
            target_label,
            replacement,
            action,
        };
        check(rule.clone()).map(|()| RuleConfig(rule))
    }
}

fn check(rule: RelabelRule) -> Result<(), RuleError> {
    let action = match rule.action {
        RelabelAction::Replace => Action::Replace,
        RelabelAction::Keep => Action::Keep,
        RelabelAction::Drop => Action::Drop,
        RelabelAction::KeepEqual => Action::KeepEqual,
        RelabelAction::DropEqual => Action::DropEqual,
        RelabelAction::HashMod => Action::HashMod,
        RelabelAction::LabelMap => Action::LabelMap,
        RelabelAction::LabelDrop => Action::LabelDrop,
        RelabelAction::LabelKeep => Action::LabelKeep,
        RelabelAction::Lowercase => Action::Lowercase,
        RelabelAction::Uppercase => Action::Uppercase,
    };
    let RelabelRule { source_labels, separator, regex, modulus, target_label, replacement, .. } =
        rule;
    let spec =
        RuleSpec { source_labels, separator, regex, modulus, target_label, replacement, action };
    Rule::new(spec).map(drop)
}

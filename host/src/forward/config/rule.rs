//! Rules of `write_relabel_configs`, judged by the crate that applies them in the engine.

use crate::config::Wrong;
use crate::config::section::Section;
use crate::wasm::{RelabelAction, RelabelRule};
use tidepool_relabel::{Action, Rule, RuleError, RuleSpec};

/// Reads one, and checks that the engine can use it.
pub(super) fn rule(mut section: Section<'_, '_>) -> Result<RelabelRule, Wrong> {
    let action = section.get("action", |text| {
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
    })?;
    let text = |text: Option<String>, default: &str| text.unwrap_or_else(|| default.to_owned());
    let rule = RelabelRule {
        source_labels: section.texts("source_labels")?.unwrap_or_default(),
        separator: text(section.text("separator")?, ";"),
        regex: text(section.text("regex")?, "(.*)"),
        modulus: section.number("modulus", 1..=u64::MAX)?.unwrap_or(0),
        target_label: text(section.text("target_label")?, ""),
        replacement: text(section.text("replacement")?, "$1"),
        action: action.unwrap_or(RelabelAction::Replace),
    };
    let checked = check(&rule).map_err(|error| section.wrong(error));
    // A key that was misspelt may be what the rule lacks.
    section.end()?;
    checked.map(|()| rule)
}

fn check(rule: &RelabelRule) -> Result<(), RuleError> {
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
        rule.clone();
    let spec =
        RuleSpec { source_labels, separator, regex, modulus, target_label, replacement, action };
    Rule::new(spec).map(drop)
}

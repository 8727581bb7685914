//! Rules of `write_relabel_configs`.

use crate::config::Wrong;
use crate::config::section::Section;
use crate::wasm::{RelabelAction, RelabelRule};

/// Reads one.
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
    section.end()?;
    Ok(rule)
}

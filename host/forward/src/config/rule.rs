//! Converts rules of `write_relabel_configs` to relabel rules of the engine.

use tidepool_relabel::{Action, RuleSpec};
use tidepool_runtime::{RelabelAction, RelabelRule};
use tidepool_settings::RelabelConfig;

pub(super) fn relabel_rule(config: RelabelConfig) -> RelabelRule {
    let spec = RuleSpec::from(config);
    let RuleSpec { source_labels, separator, regex, modulus, target_label, replacement, action } =
        spec;
    let action = match action {
        Action::Replace => RelabelAction::Replace,
        Action::Keep => RelabelAction::Keep,
        Action::Drop => RelabelAction::Drop,
        Action::KeepEqual => RelabelAction::KeepEqual,
        Action::DropEqual => RelabelAction::DropEqual,
        Action::HashMod => RelabelAction::HashMod,
        Action::LabelMap => RelabelAction::LabelMap,
        Action::LabelDrop => RelabelAction::LabelDrop,
        Action::LabelKeep => RelabelAction::LabelKeep,
        Action::Lowercase => RelabelAction::Lowercase,
        Action::Uppercase => RelabelAction::Uppercase,
    };
    RelabelRule { source_labels, separator, regex, modulus, target_label, replacement, action }
}

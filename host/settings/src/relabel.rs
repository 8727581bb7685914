//! Relabel rules as YAML. The crate `tidepool_relabel` validates and applies them.

use crate::yaml;
use serde::{Deserialize, Deserializer};
use tidepool_relabel::{Action, REGEX_DEFAULT, Rule, RuleError, RuleSpec};

/// A valid rule, with Prometheus' keys and defaults.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "Section")]
pub struct RelabelConfig(RuleSpec);

/// One rule as written in the file, before validation.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    source_labels: Vec<String>,
    separator: String,
    regex: String,
    #[serde(deserialize_with = "yaml::number::<_, _, 1, { u64::MAX }>")]
    modulus: u64,
    target_label: String,
    replacement: String,
    #[serde(deserialize_with = "action")]
    action: Action,
}

impl RelabelConfig {
    pub fn spec(&self) -> &RuleSpec {
        &self.0
    }

    pub fn rule(&self) -> Result<Rule, RuleError> {
        Rule::new(self.0.clone())
    }
}

impl From<RelabelConfig> for RuleSpec {
    fn from(RelabelConfig(spec): RelabelConfig) -> RuleSpec {
        spec
    }
}

impl Default for Section {
    fn default() -> Section {
        Section {
            source_labels: Vec::new(),
            separator: ";".to_owned(),
            regex: REGEX_DEFAULT.to_owned(),
            modulus: 0,
            target_label: String::new(),
            replacement: "$1".to_owned(),
            action: Action::Replace,
        }
    }
}

fn action<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Action, D::Error> {
    yaml::parsed(deserializer, |text| {
        // Case is ignored, as in upstream (`model/relabel` in prometheus/prometheus).
        let is_meant = |action: &Action| action.name().eq_ignore_ascii_case(text);
        let action = Action::ALL.into_iter().find(is_meant);
        action.ok_or_else(|| format!("there is no action {text:?}"))
    })
}

impl TryFrom<Section> for RelabelConfig {
    type Error = RuleError;

    fn try_from(section: Section) -> Result<RelabelConfig, RuleError> {
        let Section { source_labels, separator, regex, modulus, target_label, replacement, action } =
            section;
        let spec = RuleSpec {
            source_labels,
            separator,
            regex,
            modulus,
            target_label,
            replacement,
            action,
        };
        // Compiled only to report a wrong rule with its position in the file.
        Rule::new(spec.clone()).map(|_| RelabelConfig(spec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<RuleSpec>, String> {
        let rules = yaml::load(text)
            .and_then(|node| yaml::read::<Vec<RelabelConfig>>("relabel_configs", &node))
            .map_err(|error| error.to_string())?;
        Ok(rules.into_iter().map(RuleSpec::from).collect())
    }

    #[test]
    fn what_is_left_out_has_upstreams_default() {
        let expected = RuleSpec { target_label: "a".into(), ..RuleSpec::new(Action::Replace) };
        assert_eq!(read("- target_label: a\n"), Ok(vec![expected]));
        let text = "- {source_labels: [a, b], separator: '-', modulus: 8, target_label: c, \
                    action: HashMod}\n";
        let expected = RuleSpec {
            source_labels: vec!["a".into(), "b".into()],
            separator: "-".into(),
            modulus: 8,
            target_label: "c".into(),
            ..RuleSpec::new(Action::HashMod)
        };
        assert_eq!(read(text), Ok(vec![expected]));
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_place() {
        for (text, said) in [
            ("- {action: sink}", "1:12: relabel_configs[0].action: there is no action \"sink\""),
            ("- {action: replace}", "1:3: relabel_configs[0]: a relabel rule with the action"),
            ("- {regex: (, action: drop}", "1:3: relabel_configs[0]: the regular expression \"(\""),
            ("- {source_label: [a]}", "1:4: relabel_configs[0].source_label: there is no such"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}

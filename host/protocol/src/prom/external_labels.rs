//! External labels, which distinguish this node from all others.
//!
//! Series are stored without external labels; the labels are added to data that leaves the node.

use std::collections::BTreeMap;
use std::str::FromStr;

/// One label as given on the command line: `name=value`, or `name="value"` with Prometheus' quotes
/// around the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalLabel {
    name: String,
    value: String,
}

impl FromStr for ExternalLabel {
    type Err = String;

    fn from_str(text: &str) -> Result<ExternalLabel, String> {
        let wrong = |what| format!("{text:?} {what}; write it as name=value");
        let (name, value) = text.split_once('=').ok_or_else(|| wrong("has no `=`"))?;
        let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let value = unquoted.unwrap_or(value);
        match () {
            () if name.is_empty() => Err(wrong("has no name")),
            () if name == "__name__" => Err(wrong("would name all metrics the same")),
            () if value.is_empty() => Err(wrong("has no value, which is as no label")),
            () => Ok(ExternalLabel { name: name.to_owned(), value: value.to_owned() }),
        }
    }
}

impl ExternalLabel {
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// External labels of this node, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalLabels(BTreeMap<String, String>);

impl ExternalLabels {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of a label, if this node has it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Of labels with the same name, the later label wins.
impl FromIterator<ExternalLabel> for ExternalLabels {
    fn from_iter<T: IntoIterator<Item = ExternalLabel>>(labels: T) -> ExternalLabels {
        ExternalLabels(labels.into_iter().map(|label| (label.name, label.value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_with_and_without_quotes() {
        let labels: Result<ExternalLabels, String> = ["node=edge-7", "site=\"a=b\"", "node=edge-8"]
            .iter()
            .map(|text| text.parse())
            .collect();
        let Ok(labels) = labels else { panic!("{labels:?}") };
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("node", "edge-8"), ("site", "a=b")]);
        assert_eq!(labels.get("node"), Some("edge-8"));
        for wrong in ["", "node", "=x", "node=", "node=\"\"", "__name__=up"] {
            assert!(wrong.parse::<ExternalLabel>().is_err(), "{wrong:?}");
        }
    }
}

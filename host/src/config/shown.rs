//! The loaded configuration for the API: the file without secrets, but with the external labels
//! that are in use, whether set in the file or by flags.

use std::fmt::Write as _;
use tidepool_protocol::prom::external_labels::ExternalLabels;
use tidepool_settings::shown::{quoted, shown_entries};
use tidepool_settings::yaml::{Data, Entry, Node};

#[derive(Clone, Debug, Default)]
pub(super) struct ShownConfig {
    /// Lines of the section `global`, indented by two spaces.
    global: String,
    /// Lines of all other sections.
    others: String,
}

impl ShownConfig {
    /// Formats a file, given as its YAML mapping.
    pub fn of(document: &Node) -> ShownConfig {
        let entries = entries_of(document);
        let is_global = |entry: &&Entry| entry.key == "global";
        let global = entries.iter().find(is_global).map_or(&[][..], |one| entries_of(&one.value));
        let global = global.iter().filter(|entry| entry.key != "external_labels");
        // External labels are left out here: `yaml` adds those in use under `global`.
        let others = entries.iter().filter(|entry| {
            !is_global(entry) && super::upstream::our_name(&entry.key) != "external-label"
        });
        ShownConfig { global: shown_entries(global, 2), others: shown_entries(others, 0) }
    }

    /// Returns the file with these external labels, which Thanos reads from the API.
    pub fn yaml(&self, labels: &ExternalLabels) -> String {
        let mut yaml = String::new();
        if labels.is_empty() && self.global.is_empty() {
            yaml += "global: {}\n";
        } else {
            yaml += "global:\n";
            yaml += &self.global;
        }
        if !labels.is_empty() {
            yaml += "  external_labels:\n";
            for (name, value) in labels.iter() {
                // Writing to a string cannot fail.
                let _ = writeln!(yaml, "    {}: {}", quoted(name), quoted(value));
            }
        }
        yaml + &self.others
    }
}

fn entries_of(node: &Node) -> &[Entry] {
    match &node.data {
        Data::Map(entries) => entries,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_settings::yaml::{Error, load};

    fn labels(all: &[&str]) -> ExternalLabels {
        all.iter().map(|text| text.parse().expect("a label")).collect()
    }

    #[test]
    fn the_labels_that_hold_are_shown() -> Result<(), Error> {
        let nothing = ShownConfig::default();
        assert_eq!(nothing.yaml(&labels(&[])), "global: {}\n");
        let expected = concat!(
            "global:\n  external_labels:\n",
            "    \"node\": \"\\u0085é\"\n",
            "    \"on\": \"true\"\n",
            "    \"site\": \"a: \\\"b\\\"\\n\"\n",
        );
        let given = labels(&["site=a: \"b\"\n", "node=\u{85}é", "on=true"]);
        assert_eq!(nothing.yaml(&given), expected);

        let text = "external-label: {a: b}\nglobal: {scrape_interval: 5s, external_labels: {a: b}}\n\
                    scrape_configs:\n- {job_name: x, basic_auth: {password: hunter2}}\n";
        let document = load(text)?;
        let shown = ShownConfig::of(&document);
        let expected = "global:\n  scrape_interval: 5s\n  external_labels:\n    \"c\": \"d\"\n\
                        scrape_configs:\n- job_name: x\n  basic_auth:\n    password: <secret>\n";
        assert_eq!(shown.yaml(&labels(&["c=d"])), expected);
        Ok(())
    }
}

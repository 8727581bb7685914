//! Rule files that ship with the program: alerts about the machine and about tidepool itself.
//!
//! Their tests are `tests/builtin/*.test.yml`, which promtool can run; `host/docs/alerts.md` has a
//! section for each alert, to which its annotation `runbook` leads.

/// Returns the names and the text of the files. A name is no path of a file.
pub fn files() -> [(&'static str, &'static str); 2] {
    [("builtin:node", include_str!("node.yml")), ("builtin:tidepool", include_str!("tidepool.yml"))]
}

#[cfg(test)]
mod tests {
    use super::files;
    use crate::file::{Checks, Kind, Options, RuleFile, lint, parse};
    use crate::template::Template;
    use std::collections::BTreeSet;
    use std::path::Path;
    use tidepool_promql::syntax::{ParserOptions, parse as parse_expression};

    const DOCUMENT: &str = include_str!("../../../docs/alerts.md");
    const DOCUMENT_PATH: &str = "docs/alerts.md#";

    struct Real;

    impl Checks for Real {
        fn expression(&self, text: &str) -> Result<(), String> {
            let parsed = parse_expression(text, &ParserOptions::default());
            parsed.map(drop).map_err(|error| error.to_string())
        }

        fn template(&self, alert: &str, text: &str) -> Result<(), String> {
            Template::of_alert(alert, text).map(drop).map_err(|error| error.to_string())
        }
    }

    fn parsed() -> Vec<RuleFile> {
        let parse = |(name, text): (&str, &str)| {
            let options = Options::default();
            let file = parse(Path::new(name), text.as_bytes(), &options, &Real);
            file.unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        files().map(parse).into()
    }

    #[test]
    fn the_files_have_no_mistake_and_no_lint() {
        let files = parsed();
        assert_eq!(lint(&files), []);
        assert!(files.iter().all(|file| file.rule_count() > 0 && file.ignored.is_none()));
    }

    /// The tests themselves need an engine: `tests/tests/peers/rules/verdicts.rs` runs them.
    #[test]
    fn each_alert_fires_in_a_test() {
        let tests = [
            include_str!("../../tests/builtin/node.test.yml"),
            include_str!("../../tests/builtin/tidepool.test.yml"),
        ];
        for (file, tests) in parsed().iter().zip(tests) {
            for rule in file.groups.iter().flat_map(|group| &group.rules) {
                let expected = format!("- alertname: {}\n", rule.name());
                assert!(tests.contains(&expected), "{}", rule.name());
            }
        }
    }

    #[test]
    fn each_alert_has_severity_text_and_a_section_of_the_document() {
        let mut sections = BTreeSet::new();
        for (file, prefix) in parsed().iter().zip(["Node", "Tidepool"]) {
            for rule in file.groups.iter().flat_map(|group| &group.rules) {
                let name = rule.name();
                let Kind::Alerting { annotations, .. } = &rule.kind else {
                    panic!("{name} is no alert");
                };
                assert!(name.starts_with(prefix), "{name}");
                let severity = rule.labels.get("severity").map(String::as_str);
                assert!(matches!(severity, Some("critical" | "warning" | "info")), "{name}");
                let keys: Vec<&str> = annotations.keys().map(String::as_str).collect();
                assert_eq!(keys, ["description", "runbook", "summary"], "{name}");
                let runbook = format!("{DOCUMENT_PATH}{}", name.to_lowercase());
                assert_eq!(annotations["runbook"], runbook, "{name}");
                assert!(sections.insert(name.to_owned()), "{name} is there twice");
            }
        }
        let headings = DOCUMENT.lines().filter_map(|line| line.strip_prefix("### "));
        assert_eq!(headings.map(str::to_owned).collect::<BTreeSet<_>>(), sections);
    }
}

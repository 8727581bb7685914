//! Rules of a file that write the same series, or are the same alert.
//!
//! Upstream compares rules within a file only, by name and labels with those of the group. Such
//! rules are valid: they are warnings unless the user says that they are fatal.

use super::error::quoted;
use super::{Labels, Position, RuleFile};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;

/// Maximum number of places that a message lists.
const PLACES_MAX: usize = 10;

/// Exit code of a check that found lints and no mistakes, if lints are fatal.
pub const LINT_EXIT_CODE: u8 = 3;

/// What `--lint` has of `check rules`: a list of `all`, `duplicate-rules` and `none`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintOptions {
    pub duplicate_rules: bool,
    /// Words that mean nothing; upstream warns of them and goes on.
    pub unknown: Vec<String>,
}

/// The lints of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Lint {
    pub path: PathBuf,
    /// In the order of their first rule.
    pub duplicates: Vec<Duplicate>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Duplicate {
    /// Name of the series or of the alert.
    pub name: String,
    /// With those of the group.
    pub labels: Labels,
    /// Places of the rules, at least two.
    pub places: Vec<Position>,
}

impl Default for LintOptions {
    fn default() -> LintOptions {
        LintOptions { duplicate_rules: true, unknown: Vec::new() }
    }
}

impl LintOptions {
    /// Parses the words, with commas between them. `none` does not cancel others, as in upstream.
    pub fn parse(text: &str) -> LintOptions {
        let mut options = LintOptions { duplicate_rules: false, unknown: Vec::new() };
        for word in text.split(',').filter(|_| !text.is_empty()) {
            match word {
                "all" | "duplicate-rules" => options.duplicate_rules = true,
                "none" => {}
                _ => options.unknown.push(word.to_owned()),
            }
        }
        options
    }

    /// Returns the lints of the files that have any.
    pub fn lint(&self, files: &[RuleFile]) -> Vec<Lint> {
        if self.duplicate_rules { lint(files) } else { Vec::new() }
    }
}

/// Returns the exit code of a check: mistakes matter more than lints, which matter if fatal.
pub fn exit_code(has_mistakes: bool, has_lints: bool, is_lint_fatal: bool) -> u8 {
    match (has_mistakes, has_lints && is_lint_fatal) {
        (true, _) => 1,
        (false, true) => LINT_EXIT_CODE,
        (false, false) => 0,
    }
}

/// Returns the lints of the files that have any. All of them are fatal with `--lint-fatal`.
pub fn lint(files: &[RuleFile]) -> Vec<Lint> {
    let lints =
        files.iter().map(|file| Lint { path: file.path.clone(), duplicates: duplicates(file) });
    lints.filter(|lint| !lint.duplicates.is_empty()).collect()
}

fn duplicates(file: &RuleFile) -> Vec<Duplicate> {
    type Key<'f> = (&'f str, BTreeMap<&'f str, &'f str>);
    let mut found: HashMap<Key<'_>, Vec<Position>> = HashMap::new();
    for group in &file.groups {
        for rule in &group.rules {
            // Labels of the rule override those of the group.
            let labels = group.labels.iter().chain(&rule.labels);
            let labels = labels.map(|(name, value)| (name.as_str(), value.as_str())).collect();
            found.entry((rule.name(), labels)).or_default().push(rule.position);
        }
    }
    let repeated = found.into_iter().filter(|(_, places)| places.len() > 1);
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut duplicates: Vec<Duplicate> = repeated
        .map(|((name, labels), places)| Duplicate {
            name: name.to_owned(),
            labels: labels.into_iter().map(owned).collect(),
            places,
        })
        .collect();
    // Rules of a merged mapping have the place of their anchor, so names decide.
    duplicates.sort_by(|one, other| {
        let key = |duplicate: &Duplicate| {
            duplicate.places.first().map(|place| (place.line, place.column))
        };
        key(one)
            .cmp(&key(other))
            .then_with(|| one.name.cmp(&other.name))
            .then_with(|| one.labels.cmp(&other.labels))
    });
    duplicates
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(&self.name))?;
        for (number, (name, value)) in self.labels.iter().enumerate() {
            let begin = if number == 0 { "{" } else { ", " };
            write!(f, "{begin}{name}={}", quoted(value))?;
        }
        let end = if self.labels.is_empty() { "" } else { "}" };
        write!(f, "{end}: lines")?;
        for (number, place) in self.places.iter().take(PLACES_MAX).enumerate() {
            write!(f, "{}{}", if number == 0 { " " } else { ", " }, place.line)?;
        }
        match self.places.len().saturating_sub(PLACES_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Writes the number of duplicates, and a line for each of them.
impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, count) = (self.path.display(), self.duplicates.len());
        write!(f, "{path}: {count} duplicate rule(s) found; what they write may be inconsistent")?;
        self.duplicates.iter().try_for_each(|duplicate| write!(f, "\n  {duplicate}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Checks, Options, parse};
    use super::*;
    use std::path::Path;

    struct Nothing;

    impl Checks for Nothing {
        fn expression(&self, _: &str) -> Result<(), String> {
            Ok(())
        }

        fn template(&self, _: &str, _: &str) -> Result<(), String> {
            Ok(())
        }
    }

    fn file(text: &str) -> RuleFile {
        let read = parse(Path::new("a.yml"), text.as_bytes(), &Options::default(), &Nothing);
        read.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Upstream compares name and labels, with those of the group, and not the kind
    /// (`checkDuplicates`).
    #[test]
    fn rules_with_the_same_name_and_labels_are_found() {
        let text = "\
groups:
- name: a
  labels: {team: x, env: p}
  rules:
  - {record: m, expr: a}
  - {record: m, expr: b, labels: {team: y}}
  - {record: n, expr: c}
- name: b
  rules:
  - {record: m, expr: a, labels: {env: p, team: x}}
  - {alert: n, expr: c, labels: {env: p, team: x}}
  - {record: n, expr: c, labels: {env: p, team: x, empty: ''}}
  - {alert: n, expr: d, labels: {team: x, env: p}}
- name: c
  labels: {team: y}
  rules:
  - {record: m, expr: b, labels: {env: q}}
";
        let other = file("groups: [{name: a, rules: [{record: m, expr: a}]}]");
        let lints = lint(&[other.clone(), file(text), other]);
        assert_eq!(lints.len(), 1);
        assert_eq!(
            lints[0].to_string(),
            "a.yml: 2 duplicate rule(s) found; what they write may be inconsistent\n\
             \x20 \"m\"{env=\"p\", team=\"x\"}: lines 5, 10\n\
             \x20 \"n\"{env=\"p\", team=\"x\"}: lines 7, 11, 13"
        );
        let many =
            "groups:\n- name: a\n  rules:\n".to_owned() + &"  - {record: m, expr: a}\n".repeat(12);
        let lints = lint(&[file(&many)]);
        assert!(
            lints[0]
                .to_string()
                .ends_with("\"m\": lines 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 and 2 more")
        );
    }

    /// Upstream: `newRulesLintConfig`, `CheckRules`.
    #[test]
    fn words_and_exit_codes_are_upstreams() {
        for (text, duplicate_rules, unknown) in [
            ("", false, &[][..]),
            ("all", true, &[]),
            ("none", false, &[]),
            ("duplicate-rules", true, &[]),
            ("none,duplicate-rules", true, &[]),
            ("all,foo,", true, &["foo", ""]),
            ("too-long-scrape-interval", false, &["too-long-scrape-interval"]),
        ] {
            let options = LintOptions::parse(text);
            assert_eq!(options.duplicate_rules, duplicate_rules, "{text}");
            assert_eq!(options.unknown, unknown, "{text}");
        }
        assert!(LintOptions::default().duplicate_rules);
        let twice =
            file("groups: [{name: a, rules: [{record: m, expr: a}, {record: m, expr: b}]}]");
        let twice = [twice];
        assert_eq!(LintOptions::parse("all").lint(&twice).len(), 1);
        assert_eq!(LintOptions::parse("none").lint(&twice).len(), 0);
        assert_eq!(
            [
                exit_code(false, true, false),
                exit_code(false, true, true),
                exit_code(true, true, true)
            ],
            [0, LINT_EXIT_CODE, 1]
        );
    }
}

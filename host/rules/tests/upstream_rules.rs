//! Upstream's own rule files, and our cases, have upstream's verdicts, and mistakes its lines
//! (`rulefmt.Parse`, Prometheus 3.16). The files are read where Go keeps the module that the peers
//! are built of.

mod module;

use module::module;
use std::collections::BTreeMap;
use std::path::Path;
use tidepool_promql::syntax::{ParserOptions, parse as parse_expression};
use tidepool_rules::file::{self, Checks, NameValidation, Options, RuleFile, RuleFileError};

const DIRECTORIES: [&str; 2] = ["model/rulefmt/testdata", "cmd/promtool/testdata"];

/// What upstream refuses: files, and for each mistake its line with a part of our message.
/// Upstream tells no lines of missing keys, groups and names: those are ours.
const REFUSED: [(&str, &[(u32, &str)]); 48] = [
    ("bad_expr.bad.yaml", &[(5, "groups[0].rules[0].expr: the expression is not valid: ")]),
    (
        "bad_field.bad.yaml",
        &[(8, "rules[0].annotation: there is no such key; did you mean annotations?")],
    ),
    (
        "duplicate_grp.bad.yaml",
        &[(3, "groups[1].name: the group name \"yolo\" is repeated in the same file")],
    ),
    ("invalid_label_name.bad.yaml", &[(7, "labels.__name__: invalid label name")]),
    ("invalid_record_name.bad.yaml", &[(4, "record: braces in the name of a recording rule")]),
    ("legacy_validation_annotation.bad.yaml", &[(7, "invalid annotation name: \"ins-tance\"")]),
    ("no_rec_alert.bad.yaml", &[(4, "rules[0]: one of record and alert must be set")]),
    ("noexpr.bad.yaml", &[(4, "expr: expr must be set")]),
    (
        "record_and_alert.bad.yaml",
        &[(4, "only one of record and alert may be set (alert is set in line 5)")],
    ),
    ("record_and_for.bad.yaml", &[(4, "a recording rule has no for (line 6)")]),
    (
        "record_and_keep_firing_for.bad.yaml",
        &[(4, "a recording rule has no keep_firing_for (line 6)")],
    ),
    (
        "at-modifier-test.yml",
        &[(1, "rule_files: there is no such key"), (4, "tests: there is no such key")],
    ),
    ("authorization_credentials_file.bad.yml", &[(1, "scrape_configs: there is no such key")]),
    ("authorization_credentials_file.good.yml", &[(1, "scrape_configs: there is no such key")]),
    ("bad-input-series.yml", &[(1, "tests: there is no such key")]),
    ("bad-promql.yml", &[(1, "tests: there is no such key")]),
    (
        "bad-rules-error-test.yml",
        &[(1, "rule_files: there is"), (4, "tests: there is no such key")],
    ),
    (
        "bad-rules-syntax-test.yml",
        &[(1, "rule_files: there is"), (4, "tests: there is no such key")],
    ),
    ("bad-rules-syntax.yml", &[(7, "expr: the expression is not valid: ")]),
    ("bad-sd-file-format.yml", &[(1, "expected lines of the form")]),
    ("config_with_rule_files.yml", &[(1, "rule_files: there is no such key")]),
    ("config_with_service_discovery_files.yml", &[(1, "scrape_configs: "), (6, "alerting: ")]),
    ("config_with_tls_files.yml", &[(1, "scrape_configs: ")]),
    ("failing.yml", &[(1, "rule_files: "), (4, "tests: ")]),
    ("experimental-functions.yml", &[(7, "rules[0].expr: the expression is not valid: ")]),
    ("experimental-functions-test.yml", &[(1, "rule_files: "), (4, "tests: ")]),
    ("features.yml", &[(6, "rules[0].expr: the expression"), (12, ".expr: the expression")]),
    ("good-sd-file.yaml", &[(1, "expected lines of the form")]),
    ("good-sd-file.yml", &[(1, "expected lines of the form")]),
    ("long-period.yml", &[(2, "evaluation_interval: "), (4, "rule_files: "), (7, "tests: ")]),
    ("negative-offset-test.yml", &[(1, "rule_files: "), (4, "tests: ")]),
    ("no-test-group-interval.yml", &[(1, "tests: ")]),
    ("prometheus-aws-sd-empty-region.good.yml", &[(6, "scrape_configs: ")]),
    ("prometheus-config.bad.yml", &[(1, "not-prometheus: ")]),
    (
        "prometheus-config.lint.too_long_scrape_interval.yml",
        &[(1, "scrape_configs: "), (4, "rule_files: ")],
    ),
    ("prometheus-config.lint.yml", &[(1, "rule_files: ")]),
    ("rules-bad.yml", &[(12, "rules[0].annotations.summary: the template is not valid: ")]),
    (
        "rules_extrafields.yml",
        &[(7, "groups[0].namespace: there is"), (21, "groups[1].ownership: there is")],
    ),
    ("rules_run.yml", &[(1, "rule_files: "), (4, "evaluation_interval: "), (7, "tests: ")]),
    (
        "rules_run_extrafields.yml",
        &[(4, "rule_files: "), (7, "evaluation_interval: "), (10, "tests: ")],
    ),
    (
        "rules_run_fuzzy.yml",
        &[(5, "evaluation_interval: "), (6, "fuzzy_compare: "), (8, "tests: ")],
    ),
    (
        "rules_run_no_fuzzy.yml",
        &[(4, "evaluation_interval: "), (5, "fuzzy_compare: "), (7, "tests: ")],
    ),
    ("start-time-test.yml", &[(1, "rule_files: "), (4, "evaluation_interval: "), (6, "tests: ")]),
    ("unittest.yml", &[(1, "rule_files: "), (4, "evaluation_interval: "), (6, "tests: ")]),
    ("url_in_alert_targetgroup_with_relabel_config.bad.yml", &[(1, "alerting: ")]),
    ("url_in_alert_targetgroup_with_relabel_config.good.yml", &[(1, "alerting: ")]),
    ("url_in_scrape_targetgroup_with_relabel_config.bad.yml", &[(1, "scrape_configs: ")]),
    ("url_in_scrape_targetgroup_with_relabel_config.good.yml", &[(1, "scrape_configs: ")]),
];

/// Numbers of groups and rules of files that upstream accepts.
const ACCEPTED: [(&str, usize, usize); 14] = [
    ("legacy_validation_annotation.good.yaml", 1, 1),
    ("test.yaml", 2, 6),
    ("test_aliases.yaml", 2, 8),
    ("utf-8_annotation.good.yaml", 1, 1),
    ("utf-8_lname.good.yaml", 1, 1),
    ("at-modifier.yml", 1, 1),
    ("bad-rules-error.yml", 1, 1),
    ("negative-offset.yml", 1, 1),
    ("prometheus-config.good.yml", 0, 0),
    ("prometheus-config.rules.good.yml", 1, 0),
    ("prometheus-rules.lint.yml", 1, 2),
    ("rules.yml", 2, 5),
    ("rules_duplicates.yml", 2, 5),
    ("rules_large.yml", 1, 10002),
];

/// Cases that we refuse and upstream accepts, with what we say.
const STRICTER: [(&str, &str); 6] = [
    ("duplicate in unknown key ignored", "1:11: x: the key a is there already, in line 1"),
    // A key without a value is skipped there.
    ("null key", "2:1: there is no such key"),
    ("null key in labels", "7:7: groups[0].rules[0].labels.: invalid label name: \"\""),
    ("own tag", "the tag !x means nothing here"),
    ("own tag on text", "the tag !x means nothing here"),
    ("binary tag", "means nothing here"),
];

/// Cases that we accept and upstream refuses: YAML 1.2, and a tag that only a number needs.
const LAXER: [&str; 5] =
    ["directive 1.2", "tab after dash", "nel", "line separator", "int tag on text"];

/// A case whose mistake is seen at the alias, in the next line.
const OTHER_LINE: &str = "self alias";

/// PromQL of this project, and templates that are wrong if upstream's cases have such a one.
struct Real;

impl Checks for Real {
    fn expression(&self, text: &str) -> Result<(), String> {
        let parsed = parse_expression(text, &ParserOptions::default());
        parsed.map(drop).map_err(|error| error.to_string())
    }

    fn template(&self, name: &str, text: &str) -> Result<(), String> {
        let wrong = ["$label.", "$bad", "* 100"].iter().find(|wrong| text.contains(**wrong));
        wrong.map_or(Ok(()), |wrong| Err(format!("{name}: {wrong}")))
    }
}

fn validation(is_legacy: bool) -> NameValidation {
    if is_legacy { NameValidation::Legacy } else { NameValidation::Utf8 }
}

#[test]
fn upstreams_files_have_upstreams_verdicts_and_lines() {
    let Some(module) = module() else { return };
    let (refused, accepted) = (
        BTreeMap::from(REFUSED),
        BTreeMap::from(ACCEPTED.map(|(name, groups, rules)| (name, (groups, rules)))),
    );
    let mut wrong = Vec::new();
    let mut found = 0;
    for directory in DIRECTORIES {
        for entry in std::fs::read_dir(module.join(directory)).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !name.ends_with(".yml") && !name.ends_with(".yaml") {
                continue;
            }
            found += 1;
            let validation = validation(name.contains("legacy"));
            let options = Options { validation, ..Options::default() };
            let read = file::read(&path, &options, &Real);
            let is_right = match (&read, refused.get(name), accepted.get(name)) {
                (Ok(file), None, Some(counts)) => (file.groups.len(), file.rule_count()) == *counts,
                (Err(error), Some(expected), None) => {
                    // What is experimental in PromQL depends on its version.
                    let has_more = name != "features.yml" && error.mistakes.len() > expected.len();
                    !has_more
                        && expected.iter().all(|(line, part)| {
                            error.mistakes.iter().any(|mistake| {
                                mistake.place.line == *line && mistake.to_string().contains(part)
                            })
                        })
                }
                _ => false,
            };
            if !is_right {
                let read = read.map(|file| (file.groups.len(), file.rule_count()));
                wrong.push(format!(
                    "{name}: {}",
                    read.map_or_else(|error| error.to_string(), |ok| format!("{ok:?}"))
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Two files are new in 3.16.
    let known = REFUSED.len() + ACCEPTED.len();
    assert!((known - 2..=known).contains(&found), "files are gone: {found} of {known}");
}

/// `rule_files.json` has texts, and of each what `rulefmt.Parse` says: whether it is valid, then
/// the numbers of groups and rules and whether it has a rest, else the lines of mistakes that it
/// tells.
#[test]
fn our_cases_have_upstreams_verdicts_and_lines() {
    let cases: serde_json::Value =
        serde_json::from_str(include_str!("rule_files.json")).expect("cases");
    let cases = cases.as_array().expect("a list");
    assert!(cases.len() > 250);
    let stricter = BTreeMap::from(STRICTER);
    let mut wrong = Vec::new();
    for case in cases {
        let flag = |key: &str| case[key].as_bool().unwrap_or_default();
        let name = case["name"].as_str().expect("a name");
        let text = case["text"].as_str().expect("a text");
        let options = Options {
            ignore_unknown_fields: flag("ignore"),
            validation: validation(flag("legacy")),
            ..Options::default()
        };
        let read = file::parse(Path::new("case.yml"), text.as_bytes(), &options, &Real);
        let number = |key: &str| case[key].as_u64().and_then(|number| usize::try_from(number).ok());
        let is_right = match (&read, flag("valid"), stricter.get(name)) {
            (Err(error), true, Some(said)) => error.to_string().contains(said),
            (Ok(_), false, None) => LAXER.contains(&name),
            (Ok(RuleFile { groups, ignored, .. }), true, None) => {
                let rules = groups.iter().map(|group| group.rules.len()).sum();
                ignored.is_some() == flag("rest")
                    && (Some(groups.len()), Some(rules)) == (number("groups"), number("rules"))
            }
            (Err(RuleFileError { mistakes, .. }), false, None) if !LAXER.contains(&name) => {
                let lines = case["lines"].as_array().expect("lines");
                name == OTHER_LINE
                    || lines.iter().all(|line| {
                        mistakes
                            .iter()
                            .any(|mistake| Some(u64::from(mistake.place.line)) == line.as_u64())
                    })
            }
            _ => false,
        };
        if !is_right {
            let read = read.map_or_else(
                |error| error.to_string(),
                |file| {
                    format!(
                        "{} groups, {} rules, rest {:?}",
                        file.groups.len(),
                        file.rule_count(),
                        file.ignored
                    )
                },
            );
            wrong.push(format!("{name}: {read}; upstream: {} {}", case["valid"], case["lines"]));
        }
    }
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

//! Results are those of `promtool test rules` of Prometheus 3.16, which `promtool.json` has: for
//! each case its files, or the name of one of upstream's, its flags, exit code, standard output,
//! standard error and JUnit XML. `DIR` stands for the folder of the files.

use crate::module::module;
use crate::store::{Memories, Real};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tidepool_promql::syntax::ParserOptions;
use tidepool_relabel::Search;
use tidepool_rules::file::Options as FileOptions;
use tidepool_rules::unit_test::{Options, Output, junit, run_files};

const TIME: &str = "2026-01-02T03:04:05";

/// Cases whose errors have other texts: ours have all mistakes with their places. The exit code
/// is upstream's.
const OTHER_ERRORS: [(&str, &[&str]); 19] = [
    ("bad-input-series", &["DIR/bad-input-series.yml:4:17: tests[0].input_series[0]: "]),
    ("bad-rules-syntax-test", &["DIR/bad-rules-syntax.yml:7:15: groups[0].rules[0].expr: "]),
    ("own experimental functions", &["DIR/rules.yml:1:46: groups[0].rules[0].expr: "]),
    ("experimental-functions-test", &["DIR/experimental-functions.yml:7:15: "]),
    ("rules_run_extrafields", &["DIR/rules_extrafields.yml:7:5: ", "extrafields.yml:21:5: "]),
    ("features", &["DIR/features.yml:1:1: groups: there is no such key; there are rule_files, "]),
    ("rules", &["DIR/rules.yml:3:1: groups: there is no such key"]),
    (
        "order repeated",
        &["DIR/t.yml:1:19: group_eval_order: group name repeated in evaluation order: \"a\""],
    ),
    (
        "histograms that do not fit",
        &["cannot merge from schema 0 to 1", "DIR/t.yml:1:45: tests[0].input_series[0]: "],
    ),
    ("unknown key", &["DIR/t.yml:1:1: test: there is no such key; did you mean tests?"]),
    (
        "unknown keys in tests",
        &[
            "tests[0].series: there is no such key",
            "input_series[0].serie: there is no such key; did you mean series?",
            "promql_expr_test[0].exp: there is no such key; did you mean expr?",
            "exp_samples[0].val: there is no such key; did you mean value?",
            "alert_rule_test[0].alert: there is no such key",
            "exp_alerts[0].labels: there is no such key",
        ],
    ),
    (
        "wrong types",
        &[
            "DIR/t.yml:1:13: rule_files: expected a list",
            "DIR/t.yml:2:22: evaluation_interval: \"1x\" is not a duration",
            "DIR/t.yml:3:16: fuzzy_compare: expected true or false",
            "DIR/t.yml:4:8: tests: expected a list",
        ],
    ),
    (
        "wrong values",
        &[
            "DIR/t.yml:2:13: tests[0].interval: \"5\" is not a duration",
            "start_timestamp: \"soon\" is no time in RFC 3339 or in seconds since the epoch",
            "promql_expr_test[0].eval_time: \"-1m\" is not a duration",
            "exp_samples[0].value: expected a number",
            "exp_samples[1].value: expected a number",
        ],
    ),
    ("no yaml", &["DIR/t.yml:"]),
    ("list", &["DIR/t.yml:1:1: expected lines of the form"]),
    ("key twice", &["the key tests is there already, in line 1"]),
    (
        "wrong values of series",
        &["input_series[0]: \"x 1 y\": 1:5: parse error: ", "input_series[1]: \"x{ 1\": 1:4: "],
    ),
    ("line breaks", &["a series and its values stand in one line"]),
    ("rule file with mistakes", &["DIR/rules.yml:1:28: groups[0].rules[0].expr: expr must be"]),
];

struct Result {
    code: i64,
    out: String,
    err: String,
    junit: String,
}

fn run(directory: &Path, names: &[&str], flags: &[&str]) -> Result {
    let value_of = |flag: &str| -> Vec<&str> {
        flags.iter().filter_map(|it| it.strip_prefix(flag)?.strip_prefix('=')).collect()
    };
    let patterns = value_of("--run");
    let run = Search::new(&patterns.join("|")).expect("an expression");
    let experimental = value_of("--enable-feature").contains(&"promql-experimental-functions");
    let parser = match experimental {
        true => ParserOptions { experimental_functions: true, ..ParserOptions::default() },
        false => ParserOptions::default(),
    };
    let ignore_unknown_fields = flags.contains(&"--ignore-unknown-fields");
    let options = Options {
        run: (!patterns.is_empty()).then_some(&run),
        diff: flags.contains(&"--diff"),
        debug: flags.contains(&"--debug"),
        rules: FileOptions { ignore_unknown_fields, ..FileOptions::default() },
    };
    let paths: Vec<PathBuf> = names.iter().map(|name| directory.join(name)).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut output = Output { out: &mut out, err: &mut err };
    let (checks, mut memories) = (Real(parser), Memories(parser));
    let time = || TIME.to_owned();
    let suites = run_files(&paths, &options, &checks, &mut memories, &time, &mut output)
        .expect("a vector takes all");
    let code = i64::from(!suites.iter().all(|suite| suite.has_passed()));
    let text = |bytes| {
        let text = String::from_utf8(bytes).expect("UTF-8");
        text.replace(&format!("{}/", directory.display()), "DIR/")
    };
    Result { code, out: text(out), err: text(err), junit: text(junit(&suites).into_bytes()) }
}

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("promtool.json")).expect("cases")
}

#[test]
fn results_are_those_of_promtool() {
    let module = module();
    let mut wrong = Vec::new();
    for case in &cases() {
        let texts = |key: &str| -> Vec<&str> {
            case[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let name = case["name"].as_str().expect("a name");
        let folder = tempfile::tempdir().expect("a folder");
        let directory = match (case["files"].as_object(), &module) {
            (Some(files), _) => {
                for (name, text) in files {
                    let path = folder.path().join(name);
                    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
                    std::fs::write(path, text.as_str().expect("a text")).expect("a file");
                }
                folder.path().to_owned()
            }
            (None, Some(module)) => module.join("cmd/promtool/testdata"),
            (None, None) => continue,
        };
        // Two files are new in 3.16.
        if name.starts_with("experimental-functions")
            && !directory.join(texts("arguments")[0]).exists()
        {
            continue;
        }
        let found = run(&directory, &texts("arguments"), &texts("flags"));
        let text = |key: &str| case[key].as_str().unwrap_or_default();
        let mut differ = |what: &str, expected: &str, found: &str| {
            if expected != found {
                wrong.push(format!("{name}: {what}:\n{expected}\n--- but:\n{found}\n"));
            }
        };
        differ("code", &case["code"].to_string(), &found.code.to_string());
        match OTHER_ERRORS.iter().find(|(other, _)| *other == name) {
            Some((_, parts)) => {
                for part in parts.iter().filter(|part| !found.err.contains(**part)) {
                    differ("part of err", part, &found.err);
                }
            }
            None => {
                differ("out", text("out"), &found.out);
                differ("err", text("err"), &found.err);
                differ("junit", text("junit"), &found.junit);
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// A file can ask for more evaluations than there is time for.
#[test]
fn evaluations_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        "evaluation_interval: 1ms\ntests: [{promql_expr_test: [{expr: 1, eval_time: 290y}]}]\n";
    std::fs::write(folder.path().join("t.yml"), text).expect("a file");
    let found = run(folder.path(), &["t.yml"], &[]);
    assert_eq!(found.code, 1);
    assert!(found.err.contains("more than 1000000 evaluations"), "{}", found.err);
}

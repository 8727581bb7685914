//! Prometheus' own test scripts of PromQL, run by its own harness against the HTTP API.

mod differential;

use std::collections::BTreeMap;
use std::process::{Command, Output};
use tidepool_tests::{peers, tidepool};

/// Number of statements in the scripts of the pinned release.
const STATEMENTS: usize = 2243;

/// Patterns for the names of scripts. The harness waits for one answer at a time, so several
/// instances run; a script that no pattern matches is missing in the number of statements.
const SCRIPTS: [&str; 4] = ["^[a-e]", "^f", "^[g-m]", "^[n-z]"];

/// Statements that fail here, as `FILE:LINE REASON` each.
const LEFT_OUT: &str = include_str!("left_out.txt");

/// Returns `FILE:LINE` of each statement that was evaluated, and whether it passed.
///
/// The harness prints `--- PASS: TestScripts/testdata/FILE/line_LINE/EXPRESSION (0.01s)`.
fn outcomes(output: &str) -> BTreeMap<String, bool> {
    let outcome = |line: &str| {
        let (verdict, name) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
        let mut parts = name.split('/').skip_while(|part| *part != "testdata").skip(1);
        let (file, line) = (parts.next()?, parts.next()?.strip_prefix("line_")?);
        Some((format!("{file}:{line}"), verdict == "PASS"))
    };
    output.lines().filter_map(outcome).collect()
}

/// Returns the harness' output for some scripts.
fn run(scripts: &str) -> Output {
    let harness = peers::built("promql-scripts").unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(harness);
    command.args(["-test.v", &format!("-test.run=TestScripts/testdata/{scripts}")]);
    command.env("TIDEPOOL_BIN", tidepool::binary()).output().expect("the harness runs")
}

#[test]
fn upstreams_scripts_pass() {
    let running = SCRIPTS.map(|scripts| std::thread::spawn(move || run(scripts)));
    let outputs = running.map(|running| running.join().expect("it ends"));
    let text: String = outputs.iter().map(|one| String::from_utf8_lossy(&one.stdout)).collect();
    let error: String = outputs.iter().map(|one| String::from_utf8_lossy(&one.stderr)).collect();
    let all = outcomes(&text);
    let lines = LEFT_OUT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let left_out: Vec<_> = lines.map(|line| line.split_once(' ').expect("a reason").0).collect();
    let failed: Vec<_> = all.iter().filter(|(_, passed)| !**passed).map(|(name, _)| name).collect();
    let others: Vec<_> = failed.iter().filter(|name| !left_out.contains(&name.as_str())).collect();
    let reasons: Vec<_> = text.lines().filter(|line| line.contains("Error:")).collect();
    assert!(others.is_empty(), "{} fail: {others:#?}\n{reasons:#?}", others.len());
    let passing: Vec<_> = left_out.iter().filter(|name| all.get(**name) != Some(&false)).collect();
    assert!(passing.is_empty(), "left out, but they pass or are not there: {passing:#?}");
    assert_eq!(all.len(), STATEMENTS, "{error}");
}

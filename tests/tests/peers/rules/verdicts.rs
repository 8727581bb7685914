//! Rule files and unit tests of rules, judged by both tools.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tidepool_tests::cli::{self, run_command};
use tidepool_tests::peers::{Release, go_module};
use tidepool_tests::promtool;
use tidepool_tests::soak;

/// Runs both programs with the same arguments; promtool's output comes first.
fn both(command: [&str; 2], arguments: &[&OsStr]) -> (promtool::Output, cli::Output) {
    let [first, second] = command;
    let arguments = [&[OsStr::new(second)], arguments].concat();
    let all = [&[OsStr::new(first)], arguments.as_slice()].concat();
    let theirs = promtool::run(Release::V3, all, Stdio::null()).expect("promtool runs");
    (theirs, run_command(first, &arguments, ""))
}

/// Lists the files in folders of upstream that end as rule files do.
fn files(folders: &[&str]) -> Vec<PathBuf> {
    let upstream = go_module("github.com/prometheus/prometheus");
    let upstream = upstream.unwrap_or_else(|error| panic!("{error}"));
    let entries =
        folders.iter().flat_map(|folder| fs::read_dir(upstream.join(folder)).expect("a folder"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_yaml =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "yml" || end == "yaml");
    let mut files: Vec<PathBuf> = paths.filter(is_yaml).collect();
    files.sort_unstable();
    files
}

#[test]
fn rule_files_have_the_verdict_of_promtool() {
    let files = files(&["cmd/promtool/testdata", "model/rulefmt/testdata", "rules/fixtures"]);
    assert!(files.len() >= 40, "{files:?}");
    let mut seen = BTreeSet::new();
    for file in &files {
        for flags in [&[][..], &["--lint-fatal"], &["--ignore-unknown-fields"]] {
            let arguments = flags.iter().map(OsStr::new).chain([file.as_os_str()]);
            let (theirs, ours) = both(["check", "rules"], &arguments.collect::<Vec<_>>());
            assert_eq!(theirs.code, ours.code, "{} {flags:?}", file.display());
            seen.insert(theirs.code);
        }
    }
    assert_eq!(seen, [Some(0), Some(1), Some(3)].into(), "all verdicts");
}

/// Files that are no unit tests are read by both, too.
#[test]
fn unit_tests_have_the_results_of_promtool() {
    let files = files(&["cmd/promtool/testdata"]);
    let (mut passed, mut failed) = (0, 0);
    for file in &files {
        for flags in [&[][..], &["--diff", "--debug"], &["--ignore-unknown-fields", "--run=^t"]] {
            let arguments = flags.iter().map(OsStr::new).chain([file.as_os_str()]);
            let (theirs, ours) = both(["test", "rules"], &arguments.collect::<Vec<_>>());
            // Since 3.16, each file is announced.
            let announced = format!("Processing test file: {}\n", file.display());
            let said = ours.stdout.replacen(&announced, "", 1);
            assert_ne!(said, ours.stdout, "the file is announced");
            let what = format!("{} {flags:?}: {theirs:?} {ours:?}", file.display());
            assert_eq!((theirs.code, theirs.stdout), (ours.code, said), "{what}");
            *if theirs.code == Some(0) { &mut passed } else { &mut failed } += 1;
        }
    }
    assert!(passed >= 20 && failed >= 20, "{passed} passed, {failed} failed");
}

#[test]
fn the_rules_that_ship_pass_their_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/rules/tests/builtin");
    for name in ["node.test.yml", "tidepool.test.yml"] {
        let file = folder.join(name);
        let ours = run_command("test", &["rules".as_ref(), file.as_os_str()], "");
        assert_eq!(ours.code, Some(0), "{ours:?}");
        // promtool takes more than twice as long.
        if soak::count(0, 1) == 1 {
            let (theirs, _) = both(["test", "rules"], &[file.as_os_str()]);
            assert_eq!(theirs.code, Some(0), "{theirs:?}");
        }
    }
}

//! Configuration files: upstream's own, and some that name files of every kind.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tidepool_tests::cli::{self, run_command};
use tidepool_tests::peers::{Release, go_module};
use tidepool_tests::promtool;
use tidepool_tests::{arguments, data_dir};

const MODULE: &str = "github.com/prometheus/prometheus";

/// Upstream's files on which the verdicts differ, as `FILE REASON` each.
const LEFT_OUT: &str = include_str!("left_out.txt");

/// Smallest number of upstream's files: a missing folder would have none.
const FILES_MIN: usize = 200;

/// Runs both programs with the same arguments; promtool's result comes first.
fn both(arguments: &[&OsStr]) -> (promtool::Output, cli::Output) {
    let all = [&[OsStr::new("check")], arguments].concat();
    let theirs = promtool::run(Release::V3, all, Stdio::null()).expect("promtool runs");
    (theirs, run_command("check", arguments, ""))
}

/// Lists all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    files.collect()
}

#[test]
fn upstreams_own_files_have_its_verdict() {
    let upstream = go_module(MODULE).unwrap_or_else(|error| panic!("{error}"));
    let directory = tempfile::tempdir().expect("a directory");
    data_dir::copy(&upstream.join("config/testdata"), directory.path()).expect("a copy");
    let lines = LEFT_OUT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let left_out: BTreeMap<&str, &str> =
        lines.map(|line| line.split_once(' ').expect("a reason")).collect();
    let (mut differing, mut wrong) = (BTreeSet::new(), Vec::new());
    let files = files(directory.path());
    assert!(files.len() >= FILES_MIN, "{} files", files.len());
    for file in files {
        let name = file.strip_prefix(directory.path()).expect("a file of the folder");
        let name = name.to_str().expect("a name").to_owned();
        let (theirs, ours) = both(arguments!["config", file.as_path()]);
        let differs = theirs.code != ours.code || theirs.stdout != ours.stdout;
        if differs && !left_out.contains_key(name.as_str()) {
            wrong.push(format!("{name}: {theirs:?}\n{ours:?}"));
        }
        let has_said = ours.stderr.contains("  FAILED: ");
        assert_eq!(has_said, ours.code == Some(1), "{name}: {ours:?}");
        if differs {
            differing.insert(name);
        }
    }
    assert!(wrong.is_empty(), "{} differ: {wrong:#?}", wrong.len());
    let same: Vec<&&str> = left_out.keys().filter(|name| !differing.contains(**name)).collect();
    assert!(same.is_empty(), "left out, but they are the same or are not there: {same:?}");
}

/// Lines of a file's only job, and the flags.
const CASES: [(&str, &[&str]); 36] = [
    ("", &[]),
    ("", &["--lint=all", "--lint-fatal"]),
    ("scrape_interval: 5m", &["--lint=too-long-scrape-interval"]),
    ("scrape_interval: 5m", &["--lint=all", "--lint-fatal"]),
    ("scrape_interval: 5m", &["--lint=all,none", "--lint-fatal"]),
    ("scrape_interval: 5m", &["--lint=all", "--lint-fatal", "--syntax-only"]),
    ("scrape_interval: 1m", &["--lint=all", "--lint-fatal", "--query.lookback-delta=1m"]),
    ("", &["--lint=unknown"]),
    ("", &["--agent"]),
    ("", &["--ignore-unknown-fields"]),
    ("bearer_token_file: there", &[]),
    ("bearer_token_file: none", &[]),
    ("bearer_token_file: none", &["--syntax-only"]),
    ("authorization: {credentials_file: none}", &[]),
    ("basic_auth: {username: a, password_file: none}", &[]),
    ("tls_config: {ca_file: none}", &[]),
    ("tls_config: {cert_file: there, key_file: there}", &[]),
    ("tls_config: {cert_file: none, key_file: there}", &[]),
    ("tls_config: {cert_file: there, key_file: none}", &[]),
    ("tls_config: {cert_file: none, key_file: none}", &["--syntax-only"]),
    ("tls_config: {cert_file: there, key: x}", &["--syntax-only"]),
    ("tls_config: {cert_file: there}", &[]),
    ("oauth2: {client_id: a, client_secret_file: none, token_url: 'http://a/'}", &[]),
    ("static_configs: [{targets: ['a:1', b]}]", &[]),
    ("static_configs: [{targets: [a], labels: {__scrape_interval__: 1s}}]", &[]),
    ("static_configs: [{targets: [a], labels: {__scrape_interval__: 1s}}]", &["--syntax-only"]),
    ("static_configs: [{targets: [a/b]}]", &[]),
    ("static_configs: [{targets: [a/b]}], relabel_configs: [{action: drop, regex: ''}]", &[]),
    (
        "static_configs: [{targets: [a/b]}], \
         relabel_configs: [{target_label: __address__, replacement: c}]",
        &[],
    ),
    ("file_sd_configs: [{files: [good.json, 'g*.json']}]", &[]),
    ("file_sd_configs: [{files: [none.json, 'n*e.yml']}]", &[]),
    ("file_sd_configs: [{files: [none.json]}]", &["--syntax-only"]),
    ("file_sd_configs: [{files: [bad.json]}]", &[]),
    ("file_sd_configs: [{files: [bad.json]}]", &["--syntax-only"]),
    ("file_sd_configs: [{files: [path.yml]}]", &[]),
    ("file_sd_configs: [{files: [null.yml]}]", &[]),
];

#[test]
fn files_that_are_named_are_looked_at() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in [
        ("there", "x"),
        ("good.json", r#"[{"targets": ["a:1"], "labels": {"x": "y"}}]"#),
        ("bad.json", r#"[{"targets": ["a:1"], "x": 1}]"#),
        ("path.yml", "- targets: ['a/b']\n"),
        ("null.yml", "- \n"),
        ("further.yml", "scrape_configs: [{job_name: k, bearer_token_file: none}]\n"),
        ("good.yml", "scrape_configs: [{job_name: k}]\n"),
    ] {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    let path = directory.path().join("prometheus.yml");
    let job = |(text, flags): &(&str, &'static [&'static str])| {
        let comma = if text.is_empty() { "" } else { ", " };
        (format!("scrape_configs: [{{job_name: j{comma}{text}}}]\n"), *flags)
    };
    let further = |pattern: &str| format!("scrape_config_files: ['{pattern}']\n");
    let more: [(String, &[&str]); 7] = [
        (further("further.yml"), &[]),
        (further("further.yml"), &["--syntax-only"]),
        (further("none.yml"), &[]),
        (further("go*.yml"), &["--lint=all", "--lint-fatal", "--query.lookback-delta=1m"]),
        (further("a*/b"), &["--syntax-only"]),
        (String::new(), &[]),
        ("scrape_configs: [\n".to_owned(), &[]),
    ];
    for (text, flags) in CASES.iter().map(job).chain(more) {
        fs::write(&path, &text).expect("a file");
        let mut arguments = vec![OsStr::new("config"), path.as_os_str()];
        arguments.extend(flags.iter().map(OsStr::new));
        let (theirs, ours) = both(&arguments);
        assert_eq!(ours.code, theirs.code, "{text} {flags:?}: {theirs:?}\n{ours:?}");
        assert_eq!(ours.stdout, theirs.stdout, "{text} {flags:?}");
        let long = |said: &str| said.contains("  FAILED: too long scrape interval found");
        assert_eq!(long(&ours.stderr), long(&theirs.stderr), "{text} {flags:?}");
    }
    // Several files at once, one of them invalid.
    let bad = directory.path().join("bad.yml");
    fs::write(&bad, "scrape_configs: [{}]\n").expect("a file");
    fs::write(&path, "").expect("a file");
    let (theirs, ours) = both(arguments!["config", bad.as_path(), path.as_path()]);
    assert_eq!((ours.code, ours.stdout), (theirs.code, theirs.stdout));
    let (theirs, ours) = both(arguments!["config", directory.path().join("none").as_path()]);
    assert_eq!((ours.code, theirs.code), (Some(1), Some(1)));
}

/// Texts that replace a value in [`KEYS`].
const SPELLINGS: [&str; 44] = [
    "y",
    "No",
    "ON",
    "off",
    "true",
    "False",
    "yEs",
    "'yes'",
    "1",
    "0",
    "07",
    "08",
    "0o17",
    "0x1F",
    "0b11",
    "-0b11",
    "1_000",
    "1e3",
    "1.5",
    "-1",
    "+2",
    ".5",
    "5.",
    ".inf",
    "-.INF",
    ".nan",
    "inf",
    "1e999",
    "18446744073709551615",
    "2001-12-14",
    "~",
    "NULL",
    "",
    "''",
    "'5'",
    "a",
    "5",
    "5s",
    "1m30s",
    "!!bool yes",
    "!!int '5'",
    "!!float 5",
    "!!str yes",
    "[]",
];

/// A file for each kind of value.
const KEYS: [&str; 24] = [
    "scrape_configs: [{job_name: j, honor_labels: VALUE}]",
    "scrape_configs: [{job_name: j, honor_timestamps: VALUE}]",
    "scrape_configs: [{job_name: j, follow_redirects: VALUE}]",
    "scrape_configs: [{job_name: j, always_scrape_classic_histograms: VALUE}]",
    "scrape_configs: [{job_name: j, tls_config: {insecure_skip_verify: VALUE}}]",
    "scrape_configs: [{job_name: j, sample_limit: VALUE}]",
    "scrape_configs: [{job_name: j, native_histogram_min_bucket_factor: VALUE}]",
    "scrape_configs: [{job_name: j, scrape_interval: VALUE}]",
    "scrape_configs: [{job_name: j, body_size_limit: VALUE}]",
    "scrape_configs: [{job_name: j, params: {a: [VALUE]}}]",
    "scrape_configs: [{job_name: j, static_configs: [{targets: [VALUE]}]}]",
    "scrape_configs: [{job_name: j, static_configs: [{targets: [a], labels: {a: VALUE}}]}]",
    "scrape_configs: [{job_name: j, relabel_configs: [{target_label: a, replacement: VALUE}]}]",
    "scrape_configs: [{job_name: j, relabel_configs: [{action: hashmod, target_label: a, modulus: VALUE}]}]",
    "scrape_configs: [{job_name: j, dns_sd_configs: [{names: [a], type: A, port: VALUE}]}]",
    "scrape_configs: [{job_name: j, dns_sd_configs: [{names: [a], refresh_interval: VALUE}]}]",
    "scrape_configs: [{job_name: j, basic_auth: {username: VALUE, password: VALUE}}]",
    "scrape_configs: [{job_name: VALUE}]",
    "global: {external_labels: {a: VALUE}}",
    "global: {scrape_timeout: VALUE}",
    "remote_write: [{url: 'http://a/', send_exemplars: VALUE}]",
    "remote_write: [{url: 'http://a/', queue_config: {max_shards: VALUE}}]",
    "remote_write: [{url: 'http://a/', queue_config: {batch_send_deadline: VALUE}}]",
    "scrape_configs: [{job_name: j, file_sd_configs: [{files: [list.yml]}]}]",
];

/// Values that upstream accepts and tidepool refuses: negative numbers that Go converts to others,
/// and times of zero for something that would then be repeated without a pause.
const REFUSED_HERE: [(&str, &[&str]); 5] = [
    ("sample_limit", &["-.INF"]),
    ("modulus", &["-.INF"]),
    ("port", &["-0b11", "-1", "-.INF"]),
    ("refresh_interval", &["0"]),
    ("batch_send_deadline", &["0", "~", ""]),
];

/// Values that tidepool accepts and upstream refuses: an empty text for no limit, and a null that
/// upstream makes an empty text of.
const TAKEN_HERE: [(&str, &[&str]); 4] = [
    ("body_size_limit", &["''"]),
    ("scrape_interval", &["NULL"]),
    ("scrape_timeout", &["NULL"]),
    ("refresh_interval", &["NULL"]),
];

/// Spellings of true, numbers and null in go-yaml are accepted, for each kind of value.
#[test]
fn values_are_spelled_as_in_go() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut files = Vec::new();
    for (number, (key, value)) in
        KEYS.iter().flat_map(|key| SPELLINGS.map(|value| (key, value))).enumerate()
    {
        let folder = directory.path().join(number.to_string());
        fs::create_dir(&folder).expect("a folder");
        let list = format!("- targets: [{value}]\n  labels: {{a: {value}}}\n");
        fs::write(folder.join("list.yml"), list).expect("a file");
        let path = folder.join("prometheus.yml");
        fs::write(&path, key.replace("VALUE", value) + "\n").expect("a file");
        files.push((path, key, value));
    }
    let mut arguments = vec![OsStr::new("config")];
    arguments.extend(files.iter().map(|(path, ..)| path.as_os_str()));
    let (theirs, ours) = both(&arguments);
    let is_right = |said: &str, path: &Path| said.contains(&format!("{} is valid", path.display()));
    let (mut wrong, mut right) = (Vec::new(), 0);
    for (path, key, value) in &files {
        let (is_theirs, is_ours) = (is_right(&theirs.stdout, path), is_right(&ours.stdout, path));
        right += usize::from(is_theirs);
        let differing: &[(&str, &[&str])] = if is_theirs { &REFUSED_HERE } else { &TAKEN_HERE };
        let is_known = differing.iter().any(|(name, values)| {
            key.contains(&format!("{name}: VALUE")) && values.contains(value)
        });
        if (is_theirs != is_ours) != is_known {
            wrong.push(format!("{key} {value:?}: upstream {is_theirs}, tidepool {is_ours}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", ours.stderr);
    assert!(right > 300 && right + 100 < files.len(), "{right} of {}", files.len());
}

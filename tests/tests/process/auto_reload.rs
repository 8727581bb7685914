//! The configuration is reloaded automatically when one of its files changes.

use super::scrape::api;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);
const SUCCESSFUL: &str = "prometheus_config_last_reload_successful";

fn start(path: &Path, flags: &[&str]) -> Store {
    let config = |config: Config| {
        let config = config.flag(&format!("--config={}", path.display()));
        flags.iter().fold(config, |config, flag| config.flag(flag))
    };
    Store::start_with(config).expect("tidepool starts")
}

#[track_caller]
fn wait_for(store: &Store, what: &str, mut is_so: impl FnMut() -> bool) {
    wait::until(what, TIMEOUT, || is_so().then_some(()))
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
}

fn flag(store: &Store, name: &str) -> String {
    let flags = api(&store.server, "status/flags");
    flags[name].as_str().unwrap_or_default().to_owned()
}

fn jobs(store: &Store) -> Vec<String> {
    let pools = api(&store.server, "scrape_pools");
    let pools = pools["scrapePools"].as_array().expect("names").iter();
    pools.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Replaces a file in one step: the program may read at any moment, but never an empty file.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("a file");
    fs::rename(new, path).expect("renamed");
}

/// Returns a job; jobs are listed once their targets are known, a few seconds after the reload.
fn job(name: &str) -> String {
    format!(
        "scrape_configs: [{{job_name: {name}, static_configs: [{{targets: ['127.0.0.1:1']}}]}}]\n"
    )
}

#[test]
fn a_file_that_changes_is_read_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let included = "scrape_config_files: ['jobs-*.yml']\n";
    fs::write(file("first.yml"), format!("read-timeout: 11s\n{included}")).expect("a file");
    fs::write(file("second.yml"), format!("read-timeout: 12s\n{included}")).expect("a file");
    symlink("first.yml", file("tidepool.yml")).expect("a link");
    let store = start(&file("tidepool.yml"), &["--config-auto-reload-interval=100ms"]);
    assert_eq!(flag(&store, "read-timeout"), "11s");
    // A link is replaced, as in a mounted directory.
    symlink("second.yml", file("next.yml")).expect("a link");
    fs::rename(file("next.yml"), file("tidepool.yml")).expect("renamed");
    wait_for(&store, "the second file", || flag(&store, "read-timeout") == "12s");
    // An included file that did not exist before.
    write(&file("jobs-a.yml"), &job("a"));
    wait_for(&store, "a job", || jobs(&store) == ["a"]);
    write(&file("jobs-a.yml"), &job("b"));
    wait_for(&store, "another job", || jobs(&store) == ["b"]);
    // A mistake changes nothing, and its position is reported.
    write(&file("second.yml"), "read-timeout: soon\n");
    // The log line comes last.
    wait_for(&store, "a failed reload", || store.server.log().contains("tidepool.yml:1:15"));
    assert_eq!(store.metric(SUCCESSFUL), Some(0.0));
    assert_eq!(
        (flag(&store, "read-timeout").as_str(), jobs(&store)),
        ("12s", vec!["b".to_owned()])
    );
    // A failure is logged once, and not at each look.
    let failures = || store.server.log().matches("configuration reload failed").count();
    assert_eq!(failures(), 1);
    write(&file("second.yml"), "read-timeout: 13s\n");
    // The new settings hold before this metric changes.
    wait_for(&store, "the mended file", || store.metric(SUCCESSFUL) == Some(1.0));
    assert_eq!((failures(), flag(&store, "read-timeout").as_str()), (1, "13s"));
    wait_for(&store, "the end of the job", || jobs(&store).is_empty());
}

#[test]
fn it_can_be_turned_off() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tidepool.yml");
    fs::write(&path, "read-timeout: 11s\n").expect("a file");
    let looks = ["--config-auto-reload-interval=10ms", "--no-config-auto-reload"];
    let (off, on) = (start(&path, &looks), start(&path, &looks[..1]));
    write(&path, "read-timeout: 12s\n");
    // Once the other server has read the file, this one would have read it as well.
    wait_for(&on, "the new file", || flag(&on, "read-timeout") == "12s");
    assert_eq!(flag(&off, "read-timeout"), "11s");
}

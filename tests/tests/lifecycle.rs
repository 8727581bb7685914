//! From start to end: flags, health pages, own metrics, signals, and the lock on the data.

use rustix::process::Signal;
use std::io::{Seek, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use tidepool_tests::http::{Client, Response};
use tidepool_tests::peers::Release;
use tidepool_tests::promtool;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{assert_holds, recent_data, send_all};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Store, binary};
use tidepool_tests::wait::{self, now_ms};

/// How long an orderly end may take.
const END_MAX: Duration = Duration::from_secs(10);

fn get(store: &Store, path: &str) -> Response {
    Client::default().get(&format!("{}{path}", store.server.url())).expect("an answer")
}

#[test]
fn health_pages_answer() {
    let store = Store::start().expect("tidepool starts");
    for path in ["/-/healthy", "/-/ready"] {
        let response = get(&store, path);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
    }
    assert_eq!(get(&store, "/no/such/page").status, 404);
}

/// Both generations of promtool take our metrics for valid, and find nothing to complain about.
#[test]
fn own_metrics_are_a_valid_exposition() {
    let store = Store::start().expect("tidepool starts");
    let up = Series::new(&[("__name__", "up")], &[(now_ms(), 1.0)]);
    store.writer().send(Version::V2, &[up.row()]).expect("an answer");
    let response = get(&store, "/metrics");
    assert_eq!(response.status, 200);
    let content_type = response.header("Content-Type").unwrap_or_default();
    assert!(content_type.starts_with("text/plain"), "{content_type}");
    assert!(response.text().lines().any(|line| line.starts_with("tidepool_")));
    for release in Release::ALL {
        let mut input = tempfile::tempfile().expect("a temporary file");
        input.write_all(&response.body).expect("it can be written");
        input.rewind().expect("it can be read");
        let output = promtool::run(release, ["check", "metrics"], Stdio::from(input));
        let output = output.expect("promtool runs");
        assert!(output.success, "{release:?}: {}{}", output.stdout, output.stderr);
    }
}

#[test]
fn signals_end_it_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let store = Store::start().expect("tidepool starts");
        let data = recent_data(71, 100, 60);
        send_all(&store, Version::V1, &data);
        // An idle connection must not hold the end up.
        let _idle = std::net::TcpStream::connect(store.server.address()).expect("a connection");
        let Store { server, config, directory } = store;
        let ending = server.end_by(signal).expect("tidepool ends");
        assert_eq!(ending.status.code(), Some(0), "{signal:?}: {ending:?}");
        assert!(ending.took < END_MAX, "{signal:?}: {ending:?}");
        let server = config.start().expect("tidepool starts again");
        assert_holds(&Store { server, config, directory }, &data);
    }
}

/// Two processes on one data directory would damage it.
#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let store = Store::start().expect("tidepool starts");
    let launch = store.config.launch().expect("a free port");
    let mut second = launch.spawn().expect("it can be spawned");
    let status = second.wait_end(END_MAX).expect("the second ends");
    assert!(!status.success(), "{status}");
    let log = second.log().to_lowercase();
    assert!(log.contains("lock") || log.contains("in use") || log.contains("another"), "{log}");
    assert_eq!(get(&store, "/-/healthy").status, 200, "the first is not disturbed");
    // After the first is gone, even by force, its data is free.
    let store = store.restart(|server| server.kill()).expect("tidepool starts again");
    assert_eq!(get(&store, "/-/ready").status, 200);
}

#[test]
fn a_taken_address_is_a_clear_error() {
    let store = Store::start().expect("tidepool starts");
    let other = tempfile::tempdir().expect("a temporary directory");
    let address = store.server.address();
    let config = tidepool_tests::tidepool::Config::new(other.path());
    let mut second = config.launch_at(address).spawn().expect("it can be spawned");
    let status = second.wait_end(END_MAX).expect("the second ends");
    assert!(!status.success(), "{status}");
    assert!(second.log().contains(&address.to_string()), "{}", second.log());
}

/// Runs tidepool to its end, which has to come soon: code, output, errors.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let file = || tempfile::NamedTempFile::new().expect("a temporary file");
    let (output, errors) = (file(), file());
    let handle = |file: &tempfile::NamedTempFile| file.reopen().expect("the temporary file");
    // Should it start to serve, then not in our folder.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut child = Command::new(binary())
        .args(arguments)
        .current_dir(&directory)
        .stdin(Stdio::null())
        .stdout(handle(&output))
        .stderr(handle(&errors))
        .spawn()
        .expect("tidepool runs");
    let ended = wait::until("the end", END_MAX, || child.try_wait().ok().flatten());
    if ended.is_err() {
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }
    let text = |file: &tempfile::NamedTempFile| {
        std::fs::read_to_string(file.path()).expect("the output is text")
    };
    let status = ended.unwrap_or_else(|e| panic!("{arguments:?}: {e}"));
    (status.code(), text(&output), text(&errors))
}

#[test]
fn help_and_version_are_told() {
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    assert!(help.contains("serve"), "{help}");
    let (code, help, _) = run(&["serve", "--help"]);
    assert_eq!(code, Some(0));
    for flag in ["--data-dir", "--listen", "--wal-sync", "--block-duration"] {
        assert!(help.contains(flag), "{flag} is missing: {help}");
    }
    let (code, version, _) = run(&["--version"]);
    assert_eq!(code, Some(0));
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
}

#[test]
fn wrong_flags_are_errors() {
    for arguments in [
        &["serve", "--no-such-flag"][..],
        &["serve", "--listen", "nowhere"],
        &["serve", "--wal-sync=sometimes"],
        &["serve", "--block-duration=soon"],
        &["serve", "--block-duration=0s"],
        &["no-such-command"],
    ] {
        let (code, _, errors) = run(arguments);
        assert!(code.is_some_and(|code| code != 0), "{arguments:?}: {code:?}");
        assert!(!errors.is_empty(), "{arguments:?} fails without a word");
    }
}

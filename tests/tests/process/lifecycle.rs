//! From start to end: flags, health pages, own metrics, signals, and the lock on the data.

use rustix::process::Signal;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::Duration;
use tidepool_tests::checksum::{Checksum, assert_same};
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, Response};
use tidepool_tests::process::Launch;
use tidepool_tests::remote_read::Reader;
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::sender::{assert_holds, hours_of_data, read_all, recent_data, send_all};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Config, Store, WalSync, command};
use tidepool_tests::wait;

/// Longest duration of a clean end.
const END_MAX: Duration = Duration::from_secs(10);
/// Timeout for events that a busy machine delays.
const TIMEOUT: Duration = Duration::from_secs(60);

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

#[test]
fn signals_end_it_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let store = Store::start().expect("tidepool starts");
        let data = recent_data(71, 100, 60);
        send_all(&store, Version::V1, &data);
        // An idle connection must not delay the end.
        let _idle = std::net::TcpStream::connect(store.server.address()).expect("a connection");
        let Store { server, config, directory } = store;
        let ending = server.end_by(signal).expect("tidepool ends");
        assert_eq!(ending.status.code(), Some(0), "{signal:?}: {ending:?}");
        assert!(ending.took < END_MAX, "{signal:?}: {ending:?}");
        let server = config.start().expect("tidepool starts again");
        assert_holds(&Store { server, config, directory }, &data);
    }
}

/// Writes and large reads continue when the signal comes: the end is as soon, acknowledged samples
/// are kept, and of the others at most the request that was under way.
#[test]
fn a_signal_under_load_ends_it_in_time_and_loses_nothing() {
    let store = Store::start_with(|config| config.wal_sync(WalSync::Always));
    let Store { server, config, directory } = store.expect("tidepool starts");
    let data = hours_of_data(79);
    let requests = data.requests(20);
    let (url, acknowledged) = (server.url(), AtomicUsize::new(0));
    let (begun, has_begun) = channel();
    let ending = std::thread::scope(|scope| {
        scope.spawn(|| {
            let writer = Writer::new(&url);
            for rows in &requests {
                match writer.send(Version::V2, rows) {
                    Ok(answer) if answer.status == 204 => {
                        if acknowledged.fetch_add(1, SeqCst) == 50 {
                            begun.send(()).expect("the test waits");
                        }
                    }
                    _ => return,
                }
            }
            panic!("all was sent before the end");
        });
        for _ in 0..3 {
            scope.spawn(|| while Reader::new(&url).streamed(&[read_all()]).is_ok() {});
        }
        // At once, because the writer has work for only a few seconds.
        has_begun.recv_timeout(TIMEOUT).expect("requests are taken");
        server.end_by(Signal::TERM).expect("tidepool ends")
    });
    assert_eq!(ending.status.code(), Some(0), "{ending:?}");
    assert!(ending.took < END_MAX, "{ending:?}");
    let server = config.start().expect("tidepool starts again");
    let store = Store { server, config, directory };
    let got = Checksum::of(&store.reader().streamed(&[read_all()]).expect("a stream")[0]);
    let acknowledged = acknowledged.load(SeqCst);
    let of_first = |count: usize| {
        let mut sum = Checksum::default();
        requests[..count].iter().flatten().for_each(|row| sum.add_row(*row));
        sum
    };
    let kept = [acknowledged, acknowledged + 1].map(of_first);
    assert!(kept.contains(&got), "{acknowledged} requests were acknowledged: {kept:?} {got:?}");
}

/// Starts a server that cannot start and must end by itself; returns its log.
#[track_caller]
fn refused(launch: &Launch) -> String {
    let mut second = launch.spawn().expect("it can be spawned");
    let status = second.wait_end(TIMEOUT).expect("the second ends");
    assert_eq!(status.code(), Some(1), "{}", second.log());
    second.log()
}

/// Two processes on one data directory would damage it.
#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let store = Store::start().expect("tidepool starts");
    let data = recent_data(72, 20, 20);
    send_all(&store, Version::V2, &data);
    // Under its own name, and under another one.
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink(store.config.data_dir(), directory.path().join("data"))
        .expect("a symbolic link");
    let linked = Config::new(directory.path());
    for config in [&store.config, &linked] {
        let log = refused(&config.launch().expect("a free port"));
        assert!(log.contains("in use by another process"), "{log}");
        assert!(log.contains("data/lock is locked; stop that process"), "{log}");
    }
    let more = Series::new(&[("__name__", "more")], &[(now_ms(), 1.0)]);
    let answer = store.writer().send(Version::V2, &[more.row()]).expect("an answer");
    assert_eq!(answer.status, 204, "the first is not disturbed");
    // After the first has ended, even by force, its data is free.
    let Store { server, config, directory: kept } = store;
    server.kill().expect("tidepool ends");
    let server = linked.start().expect("tidepool starts by the other name");
    let store = Store { server, config, directory: kept };
    let all: Vec<_> = data.series.iter().chain([&more]).cloned().collect();
    let got = store.reader().streamed(&[read_all()]).expect("a stream");
    assert_same("after the kill", &all, &got[0]);
}

/// The content of the lock file does not matter; only a lock on it does.
#[test]
fn a_lock_file_that_somebody_left_does_not_stop_a_start() {
    for mode in [0o644, 0o444, 0o000] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = Config::new(directory.path());
        let lock = config.data_dir().join("lock");
        std::fs::create_dir(config.data_dir()).expect("a directory");
        std::fs::write(&lock, b"4711\n\xff garbage").expect("a file");
        std::fs::set_permissions(&lock, Permissions::from_mode(mode)).expect("a mode");
        let server = config.start();
        // Root may open any file; for other users a file that cannot be opened cannot be locked.
        if mode != 0 || rustix::process::geteuid().is_root() {
            let server = server.unwrap_or_else(|e| panic!("{mode:o}: {}", wait::chain(&e)));
            refused(&config.launch().expect("a free port"));
            server.terminate().expect("tidepool ends");
        }
        std::fs::set_permissions(&lock, Permissions::from_mode(0o644)).expect("a mode");
        assert_eq!(std::fs::read(&lock).expect("a file"), b"4711\n\xff garbage");
    }
}

#[test]
fn a_taken_address_is_a_clear_error() {
    let store = Store::start().expect("tidepool starts");
    let other = tempfile::tempdir().expect("a temporary directory");
    let address = store.server.address();
    let config = tidepool_tests::tidepool::Config::new(other.path());
    let mut second = config.launch_at(address).spawn().expect("it can be spawned");
    let status = second.wait_end(TIMEOUT).expect("the second ends");
    assert!(!status.success(), "{status}");
    assert!(second.log().contains(&address.to_string()), "{}", second.log());
    // A later start in another directory finds no traces.
    assert!(!config.data_dir().exists());
}

/// Runs tidepool to its end; returns code, output, errors.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let file = || tempfile::NamedTempFile::new().expect("a temporary file");
    let (output, errors) = (file(), file());
    let handle = |file: &tempfile::NamedTempFile| file.reopen().expect("the temporary file");
    // If it started to serve, then not in the folder of the tests.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut child = command()
        .args(arguments)
        .current_dir(&directory)
        .stdin(Stdio::null())
        .stdout(handle(&output))
        .stderr(handle(&errors))
        .spawn()
        .expect("tidepool runs");
    let ended = wait::until("the end", TIMEOUT, || child.try_wait().ok().flatten());
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
    for flag in ["--data-dir", "--listen", "--wal-sync", "--help-all"] {
        assert!(help.contains(flag), "{flag} is missing: {help}");
    }
    assert!(!help.contains("--block-duration"), "few people need it: {help}");
    let (code, help, _) = run(&["serve", "--help-all"]);
    assert_eq!(code, Some(0));
    for flag in ["--data-dir", "--block-duration", "--head-timeout"] {
        assert!(help.contains(flag), "{flag} is missing: {help}");
    }
    // With help on itself, `help` prints its usual text.
    for arguments in [&["help", "--help"][..], &["help", "-h"], &["help", "serve", "--help"]] {
        let said: Vec<&str> =
            arguments.iter().copied().filter(|word| !word.starts_with('-')).collect();
        assert_eq!(run(arguments), run(&said), "{arguments:?}");
        assert_eq!(run(arguments).0, Some(0), "{arguments:?}");
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

//! Notifications to systemd from a tidepool that systemd started.

use rustix::process::Signal;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::tidepool::Config;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for systemd's next datagram with this beginning; returns it after all before it.
fn heard(socket: &UnixDatagram, beginning: &str) -> Vec<String> {
    let (mut heard, mut buffer) = (Vec::<String>::new(), [0; 4096]);
    while !heard.last().is_some_and(|message| message.starts_with(beginning)) {
        let bytes = socket.recv(&mut buffer).unwrap_or_else(|error| {
            panic!("{beginning} is not said: {error}; said is {heard:?}");
        });
        heard.push(String::from_utf8_lossy(&buffer[..bytes]).into_owned());
    }
    heard
}

fn listen(directory: &Path) -> (UnixDatagram, String) {
    let path = directory.join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    (socket, format!("NOTIFY_SOCKET={}", path.display()))
}

#[test]
fn systemd_hears_of_starts_reloads_life_and_stops() {
    let directory = tempfile::tempdir().expect("a directory");
    let (socket, notify) = listen(directory.path());
    let starter = ["/usr/bin/env", &notify, "WATCHDOG_USEC=200000"].map(Into::into);
    let server = Config::new(directory.path()).started_by(starter.to_vec()).start();
    let server = server.expect("tidepool starts");
    let first = heard(&socket, "READY=1");
    assert!(!first.iter().any(|message| message.starts_with("WATCHDOG")), "{first:?}");
    heard(&socket, "WATCHDOG=1");
    heard(&socket, "WATCHDOG=1");
    server.signal(Signal::HUP).expect("the signal is sent");
    let reloading = heard(&socket, "RELOADING=1");
    let monotonic = reloading.last().and_then(|message| message.split_once("MONOTONIC_USEC="));
    let monotonic = monotonic.and_then(|(_, micros)| micros.parse::<u64>().ok());
    assert!(monotonic.is_some_and(|micros| micros > 0), "{reloading:?}");
    heard(&socket, "READY=1");
    server.terminate().expect("tidepool ends");
    heard(&socket, "STOPPING=1");
}

/// A failed reload ends with `READY=1` as well.
#[test]
fn a_reload_that_fails_ends_all_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let (socket, notify) = listen(directory.path());
    let file = directory.path().join("tidepool.yml");
    std::fs::write(&file, "access-log: true\n").expect("a file");
    let starter = ["/usr/bin/env", &notify].map(Into::into);
    let config = Config::new(directory.path()).flag(&format!("--config={}", file.display()));
    let server = config.started_by(starter.to_vec()).start().expect("tidepool starts");
    heard(&socket, "READY=1");
    std::fs::write(&file, "access-log: maybe\n").expect("a file");
    server.signal(Signal::HUP).expect("the signal is sent");
    heard(&socket, "RELOADING=1");
    // No watchdog was requested.
    assert_eq!(heard(&socket, "READY=1"), ["READY=1"]);
}

//! The configuration file and its reload, the access log, HTTP/2 without TLS, and the end of
//! requests that run when the store is stopped.

use rustix::process::Signal;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tidepool_tests::data_dir::{self, Block};
use tidepool_tests::http::Client;
use tidepool_tests::process::{Launch, Server, free_address};
use tidepool_tests::remote_write::{PATH, Version, Written, encode};
use tidepool_tests::sender::{
    assert_holds, hours_of_data, recent_data, send_all, uncut_ms_max, wait_for_blocks,
};
use tidepool_tests::series::Row;
use tidepool_tests::tidepool::{Store, binary, command};
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Starts a store whose configuration file has this text.
pub fn start(directory: &Path, text: &str, flags: &[&str]) -> (Store, PathBuf) {
    let path = directory.join("tidepool.yml");
    fs::write(&path, text).expect("a file");
    let flag = format!("--config={}", path.display());
    let store = Store::start_with(|config| {
        // The file may turn the log off. Tests that write the file decide when it is read.
        let config = config.keeps_address().flag(&flag).flag("--no-config-auto-reload");
        flags.iter().fold(config, |config, flag| config.flag(flag))
    });
    (store.expect("tidepool starts"), path)
}

fn get(store: &Store, path: &str) -> u16 {
    Client::default().get(&(store.server.url() + path)).expect("an answer").status
}

/// Reloads the configuration; returns status and text.
pub fn reload(store: &Store) -> (u16, String) {
    let url = store.server.url() + "/-/reload";
    let answer = Client::default().post(&url, &[], b"").expect("an answer");
    (answer.status, answer.text())
}

#[track_caller]
fn wait_for_log(store: &Store, text: &str) {
    wait::until(text, TIMEOUT, || store.server.log().contains(text).then_some(()))
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
}

#[test]
fn the_file_says_what_flags_say_and_flags_come_first() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = "# one of three\nmax-series: 1\naccess-log: true\n";
    let (store, _) = start(directory.path(), text, &["--max-series=2"]);
    let data = recent_data(301, 3, 2);
    let rows: Vec<_> = data.scrapes().flatten().collect();
    let answer = store.writer().send(Version::V2, &rows).expect("an answer");
    assert_eq!(answer.status, 429, "{}", answer.text());
    // Two samples of each of two series.
    assert_eq!(Written::from_response(&answer).map(|written| written.samples), Some(4));
    wait_for_log(&store, "access_log: answered client=127.0.0.1:");
    let line = format!("method=POST path=\"{PATH}\" version=HTTP/1.1 status=429");
    wait_for_log(&store, &line);
}

#[test]
fn a_wrong_file_is_refused_with_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tidepool.yml");
    let refusal = |text: &str| {
        fs::write(&path, text).expect("a file");
        let output = run(&["serve", "--config", path.to_str().expect("a path")]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (text, place, what) in [
        ("listen: 127.0.0.1:0\n\nwal-sink: batch\n", "3:1", "`wal-sync` is like it"),
        ("max-series: 12\nretention-time: soon\n", "2:17", "retention-time: invalid value 'soon'"),
        ("max-series: [1\n", "2:1", "this is not YAML"),
        ("max-series: 1\ntls-cert-file: a.pem\n", "2:1", "--tls-key-file"),
        ("max-series: 1\nmax-request-size: 32MB\nmax-inflight-bytes: 1MB\n", "3:1", "than twice"),
        ("log-level: a=b=c\n", "1:12", "invalid value 'a=b=c'"),
        ("max-series: 1\nmax-series: 1\n", "2:1", "the key max-series is there already, in line 1"),
        ("remote_write:\n  - url: [a]\n", "2:10", "remote_write[0].url: expected one plain value"),
    ] {
        let said = refusal(text);
        assert!(said.contains(&format!("tidepool.yml:{place}: ")), "{text:?}: {said}");
        assert!(said.contains(what), "{text:?}: {said}");
    }
    let missing = run(&["--config=does-not-exist.yml"]);
    assert_eq!(missing.status.code(), Some(2));
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("does-not-exist.yml could not be read"), "{said}");
}

/// A word that is no level would be taken for a target's name, and turn off everything else.
#[test]
fn only_levels_are_log_levels() {
    for word in ["verbose", "fatal", "", "off", "tidepool_host"] {
        let output = run(&[&format!("--log-level={word}")]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{word:?}: {said}");
        assert!(said.contains("debug, info, warn or error"), "{word:?}: {said}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let text = "log-level: warning\nenable-lifecycle: true\n";
    let (store, path) = start(directory.path(), text, &["--access-log"]);
    for word in ["fatal", "''", "verbose"] {
        fs::write(&path, format!("log-level: {word}\nenable-lifecycle: true\n")).expect("a file");
        let (status, said) = reload(&store);
        assert_eq!(status, 500, "{word}: {said}");
        assert!(said.contains("tidepool.yml:1:12: log-level: "), "{word}: {said}");
    }
    wait_for_log(&store, "configuration reload failed");
    assert!(!store.server.log().contains(" INFO "), "{}", store.server.log());
    let text = "log-level: error,tidepool_host::access_log=info\nenable-lifecycle: true\n";
    fs::write(&path, text).expect("a file");
    assert_eq!(reload(&store).0, 200);
    assert_eq!(get(&store, "/-/healthy"), 200);
    wait_for_log(&store, "path=\"/-/healthy\"");
}

/// A command line with which Prometheus was started.
#[test]
fn prometheus_names_start_a_server() {
    for host in ["", "localhost", "127.0.0.1"] {
        let directory = tempfile::tempdir().expect("a directory");
        let address = free_address().expect("a port");
        let data_dir = directory.path().join("data");
        let arguments = [
            format!("--storage.tsdb.path={}", data_dir.display()),
            format!("--web.listen-address={host}:{}", address.port()),
            "--storage.tsdb.retention.time=30d".to_owned(),
            "--storage.tsdb.retention.size=512MB".to_owned(),
            "--web.enable-lifecycle".to_owned(),
            "--web.enable-remote-write-receiver".to_owned(),
            "--log.level=warn".to_owned(),
            "--log.format=logfmt".to_owned(),
        ];
        let launch = Launch {
            name: "tidepool",
            program: binary(),
            arguments: arguments.iter().map(Into::into).collect(),
            address,
            ready_path: "/-/ready",
            log_path: directory.path().join("log"),
        };
        let server = launch.start().unwrap_or_else(|error| panic!("{host:?}: {error}"));
        let flags = Client::default().get(&(server.url() + "/api/v1/status/flags"));
        let flags = flags.expect("an answer").text();
        for shown in [r#""retention-size":"512MB""#, r#""storage.tsdb.retention.time":"30d""#] {
            assert!(flags.contains(shown), "{shown}: {flags}");
        }
        let reload = Client::default().post(&(server.url() + "/-/reload"), &[], b"");
        assert_eq!(reload.expect("an answer").status, 200);
        assert!(data_dir.join("wal").exists());
        server.terminate().expect("tidepool ends");
    }
}

#[test]
fn prometheus_configuration_is_refused_section_by_section() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("prometheus.yml");
    let text = "global:\n  scrape_interval: 15s\nrule_files: [a.yml]\nalerting:\n  alertmanagers: \
                [{static_configs: [{targets: [a]}]}]\nstorage: {}\ntracing: {}\n";
    fs::write(&path, text).expect("a file");
    let output = run(&["--config.file", path.to_str().expect("a path")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let named = [(6, "storage"), (7, "tracing")];
    for (line, section) in named {
        let expected =
            format!("prometheus.yml:{line}:1: tidepool does not know the section `{section}`: ");
        assert!(said.contains(&expected), "{section}: {said}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_flag() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("text"), "nothing of the kind").expect("a file");
    for flag in ["write", "read", "admin"] {
        for (file, what) in [("missing", "cannot be read"), ("text", "line 1")] {
            let flag = format!("--{flag}-credentials-file");
            let data_dir = path("data");
            let value = path(file);
            let output = run(&[&flag, &value, "--data-dir", &data_dir, "--listen=127.0.0.1:0"]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{flag}: {said}");
            assert!(said.contains(&flag) && said.contains(what), "{flag}: {said}");
        }
    }
    let (cert, key) = (path("text"), path("missing"));
    let output = run(&["--tls-cert-file", &cert, "--tls-key-file", &key, "--listen=127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--tls-key-file"), "{said}");
}

fn run(arguments: &[&str]) -> Output {
    command().args(arguments).output().expect("tidepool runs")
}

#[test]
fn what_can_change_changes_and_the_rest_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = "enable-lifecycle: true\nenable-admin-api: false\nmax-series: 100\n";
    let (store, path) = start(directory.path(), text, &[]);
    let snapshot = || {
        let url = store.server.url() + "/api/v1/admin/tsdb/snapshot";
        Client::default().post(&url, &[], b"").expect("an answer").status
    };
    assert_eq!(snapshot(), 500);
    assert_eq!(get(&store, "/-/reload"), 405);

    let changed = "enable-lifecycle: true\nenable-admin-api: true\nmax-series: 200\n";
    fs::write(&path, changed).expect("a file");
    let (status, said) = reload(&store);
    assert_eq!(
        (status, said.as_str()),
        (200, "changed flags take effect only after a restart: max-series\n")
    );
    assert_eq!(store.metric("tidepool_config_flags_need_restart"), Some(1.0));
    assert_eq!(snapshot(), 200);
    wait_for_log(&store, "changed=\"enable-admin-api\"");

    // An invalid file changes nothing, and the response names the mistake.
    fs::write(&path, "enable-lifecycle: true\nread-timeout: never\n").expect("a file");
    let (status, said) = reload(&store);
    assert_eq!(status, 500);
    assert!(said.contains("tidepool.yml:2:15: read-timeout: invalid value 'never'"), "{said}");
    assert_eq!(store.metric("prometheus_config_last_reload_successful"), Some(0.0));
    assert_eq!(snapshot(), 200);

    // By signal; the log's level is reloaded as well.
    fs::write(&path, "access-log: true\nlog-level: debug\n").expect("a file");
    store.server.signal(Signal::HUP).expect("the signal is sent");
    wait_for_log(&store, "changed=\"access-log, enable-admin-api, enable-lifecycle, log-level\"");
    assert_eq!(store.metric("prometheus_config_last_reload_successful"), Some(1.0));
    wait_for_log(&store, "path=\"/metrics\"");
    assert_eq!(snapshot(), 500);
    assert_eq!(reload(&store).0, 403);
}

/// Credentials are reloaded together with the endpoints that they guard: at no moment does a client
/// have access that a start with the same file would deny.
#[test]
fn nothing_is_offered_by_a_reload_that_a_start_would_refuse() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        fs::write(&path, content).expect("a file");
        path.display().to_string()
    };
    let (writers, readers) = (file("w", "bearer w\n"), file("r", "bearer r\n"));
    let admins = file("a", "bearer a\n");
    let closed = format!("write-credentials-file: {writers}\nread-credentials-file: {readers}\n");
    let (store, path) = start(directory.path(), &closed, &[]);
    let status = |path: &str, token: &str| {
        let url = store.server.url() + path;
        let authorization = format!("Bearer {token}");
        let headers = [("Authorization", authorization.as_str())];
        let headers = if token.is_empty() { &headers[..0] } else { &headers };
        Client::default().post(&url, headers, b"").expect("an answer").status
    };
    let admin = ["/api/v1/admin/tsdb/snapshot", "/api/v1/admin/tsdb/clean_tombstones"];
    let offered = |token: &str| admin.map(|path| status(path, token));
    let reload_as = |text: &str, expected: &str| {
        let before = store.server.log().matches(expected).count();
        fs::write(&path, text).expect("a file");
        store.server.signal(Signal::HUP).expect("the signal is sent");
        let is_told = || (store.server.log().matches(expected).count() > before).then_some(());
        wait::until(expected, TIMEOUT, is_told)
            .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
    };
    assert_eq!(offered(""), [500; 2]);

    let open = format!("{closed}enable-admin-api: true\nenable-lifecycle: true\n");
    let guarded = format!("{open}admin-credentials-file: {admins}\n");
    reload_as(&guarded, "configuration reloaded");
    assert_eq!((offered(""), offered("w"), offered("a")), ([401; 2], [401; 2], [200, 204]));
    assert_eq!((status("/-/reload", ""), status("/-/reload", "a")), (401, 200));

    // The credentials file cannot be removed alone, nor be empty.
    reload_as(&open, "need --admin-credentials-file");
    assert_eq!((offered(""), offered("a")), ([401; 2], [200, 204]));
    let empty = file("empty", "# nobody\n");
    let nobody = format!("{open}admin-credentials-file: {empty}\n");
    reload_as(&nobody, "holds no credential");
    assert_eq!((offered(""), offered("a")), ([401; 2], [200, 204]));

    // Another file and other readers; then no credentials are required any more, and no other
    // endpoint is enabled.
    let others = file("b", "bearer b\n");
    let other = format!(
        "write-credentials-file: {others}\nread-credentials-file: {writers}\n\
         enable-admin-api: true\nadmin-credentials-file: {others}\n"
    );
    reload_as(&other, "configuration reloaded");
    assert_eq!((offered("a"), offered("b")), ([401; 2], [200, 204]));
    assert_eq!((status("/api/v1/labels", "r"), status("/api/v1/labels", "w")), (401, 200));
    assert_eq!((status(PATH, "w"), status(PATH, "b")), (401, 400));
    reload_as("", "configuration reloaded");
    assert_eq!(offered(""), [500; 2]);
    assert_eq!((status("/api/v1/labels", ""), status(PATH, "")), (200, 400));
}

/// Settings that need a restart count with their current value in a reload: here the largest
/// request would not fit.
#[test]
fn a_reload_is_judged_by_what_will_hold() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = "enable-lifecycle: true\nmax-request-size: 1MiB\nmax-inflight-bytes: 2MiB\n";
    let (store, path) = start(directory.path(), text, &[]);
    fs::write(&path, text.replace("1MiB", "8MiB").replace("2MiB", "16MiB")).expect("a file");
    let (status, said) = reload(&store);
    assert_eq!(status, 500, "{said}");
    assert!(said.contains("--max-inflight-bytes=2097152 is less than twice"), "{said}");
    assert!(said.contains("only a restart can change"), "{said}");
    // Alone, the setting is only named, and the flags show the value in use.
    fs::write(&path, text.replace("2MiB", "16MiB")).expect("a file");
    let named =
        (200, "changed flags take effect only after a restart: max-inflight-bytes\n".to_owned());
    assert_eq!(reload(&store), named);
    let flags = store.server.url() + "/api/v1/status/flags";
    let flags = Client::default().get(&flags).expect("an answer").text();
    assert!(flags.contains("\"max-inflight-bytes\":\"2MiB\""), "{flags}");
}

#[test]
fn a_new_retention_drops_blocks() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, path) = start(directory.path(), "block-duration: 10m\n", &[]);
    let data = hours_of_data(302);
    send_all(&store, Version::V2, &data);
    let before = wait_for_blocks(&store, &data, 600_000);
    // The start of a block depends on the progress of merges, so its end counts.
    let newest_ms = before.iter().map(|block| block.end_ms).max().expect("blocks");
    let is_old = |block: &Block| block.end_ms < newest_ms - 3_600_000;
    assert!(before.iter().any(is_old), "{before:?}");
    fs::write(&path, "block-duration: 10m\nretention-time: 1h\n").expect("a file");
    store.server.signal(Signal::HUP).expect("the signal is sent");
    wait::until("blocks to be dropped", TIMEOUT, || {
        let blocks = data_dir::blocks(store.config.data_dir()).ok()?;
        (!blocks.is_empty() && !blocks.iter().any(is_old)).then_some(())
    })
    .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
}

/// Snapshots belong to the client that made them; Prometheus does not count them either.
#[test]
fn snapshots_do_not_count_for_the_retention_by_size() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = "enable-lifecycle: true\nenable-admin-api: true\nblock-duration: 10m\n";
    let (store, path) = start(directory.path(), text, &[]);
    let data = hours_of_data(304);
    let scrapes: Vec<Vec<Row<'_>>> = data.scrapes().collect();
    let (first, rest) = scrapes.split_at(600);
    let send = |scrapes: &[Vec<Row<'_>>]| {
        for rows in scrapes {
            assert_eq!(store.writer().send(Version::V2, rows).expect("an answer").status, 204);
        }
        let newest_ms = scrapes.last().map_or(0, |rows| rows[0].samples[0].timestamp_ms);
        wait::until("blocks", TIMEOUT, || {
            let blocks = data_dir::blocks(store.config.data_dir()).ok()?;
            (newest_ms - blocks.last()?.end_ms <= uncut_ms_max(600_000)).then_some(blocks)
        })
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()))
    };
    let oldest_ms = send(first)[0].min_ms;
    let bytes = data_dir::total_bytes(store.config.data_dir());
    for _ in 0..3 {
        let url = store.server.url() + "/api/v1/admin/tsdb/snapshot";
        assert_eq!(Client::default().post(&url, &[], b"").expect("an answer").status, 200);
    }
    let retention_of = |bytes: u64| {
        fs::write(&path, format!("{text}retention-size: {bytes}B\n")).expect("a file");
        assert_eq!(reload(&store), (200, String::new()));
    };
    // Snapshots would make it four times the bytes; this limit is two and a half times.
    retention_of(bytes * 5 / 2);
    assert_eq!(send(rest)[0].min_ms, oldest_ms, "{}", store.server.log());
    // Less than the size without snapshots.
    retention_of(bytes * 2 / 3);
    wait::until("blocks to be dropped", TIMEOUT, || {
        let blocks = data_dir::blocks(store.config.data_dir()).ok()?;
        (blocks.first()?.min_ms > oldest_ms).then_some(())
    })
    .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
}

/// Runs `curl` with HTTP/2 from the first byte; returns its output.
fn curl(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("curl")
        .args(["--http2-prior-knowledge", "-sS", "--max-time", "30"])
        .args(arguments)
        .output()
        .expect("curl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Sends 200 requests at once over one connection of Node's HTTP/2 client.
const MANY_AT_A_TIME: &str = r"
const session = require('node:http2').connect(process.argv[1]);
const one = (number) => new Promise((resolve, reject) => {
  const request = session.request({ ':path': `/api/v1/status/tsdb?limit=${number + 1}` });
  let body = '', status;
  request.on('response', (headers) => { status = headers[':status']; });
  request.setEncoding('utf8').on('data', (text) => { body += text; });
  request.on('end', () => resolve(status === 200 && JSON.parse(body).status === 'success'));
  request.on('error', reject);
});
session.once('remoteSettings', async () => {
  const answers = await Promise.all(Array.from({ length: 200 }, (_, number) => one(number)));
  console.log(`${answers.filter(Boolean).length} answers of 200`);
  session.close();
});
";

#[test]
fn http2_in_the_clear_serves_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, _) = start(directory.path(), "access-log: true\n", &[]);
    let data = recent_data(303, 300, 40);
    let body = directory.path().join("body");
    let answer = "%{http_version} %{response_code}\n";
    for (number, rows) in data.requests(4000).into_iter().enumerate() {
        fs::write(&body, encode(Version::V2, &rows)).expect("a body");
        let said = curl(&[
            "-w",
            answer,
            "-H",
            &format!("Content-Type: {}", Version::V2.content_type()),
            "-H",
            "Content-Encoding: snappy",
            "--data-binary",
            &format!("@{}", body.display()),
            &(store.server.url() + PATH),
        ]);
        assert_eq!(String::from_utf8_lossy(&said), "2 204\n", "request {number}");
    }
    assert_holds(&store, &data);
    // Many requests at a time on one connection.
    let output = Command::new("node")
        .args(["--eval", MANY_AT_A_TIME, &store.server.url()])
        .output()
        .expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "200 answers of 200\n", "{}", String::from_utf8_lossy(&output.stderr));
    wait_for_log(&store, "version=HTTP/2.0 status=204");
}

/// A process that does not outlive its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The reader of the log may close the pipe, as `journald` does when it restarts.
#[test]
fn the_store_goes_on_when_nobody_reads_its_log() {
    let directory = tempfile::tempdir().expect("a directory");
    for format in ["text", "logfmt", "json"] {
        let address = free_address().expect("a port");
        let child = command()
            .arg(format!("--data-dir={}", directory.path().join(format).display()))
            .args([format!("--listen={address}"), format!("--log-format={format}")])
            .args(["--access-log", "--enable-lifecycle"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("tidepool runs");
        let mut server = Killed(child);
        drop(server.0.stderr.take());
        let get = |path: &str| {
            let answer = Client::default().get(&format!("http://{address}{path}"));
            answer.ok().map(|answer| answer.status)
        };
        let is_ready = || (get("/-/ready") == Some(200)).then_some(());
        let ready = wait::until("readiness", TIMEOUT, is_ready);
        for _ in 0..3 {
            assert_eq!(get("/-/healthy"), Some(200), "{format}: {:?}", server.0.try_wait());
        }
        let reload = Client::default().post(&format!("http://{address}/-/reload"), &[], b"");
        assert_eq!(reload.map(|answer| answer.status).ok(), Some(200), "{format}");
        ready.expect("it is ready");
        let pid = i32::try_from(server.0.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.expect("a process"), Signal::TERM).expect("the signal");
        assert!(server.0.wait().expect("it ends").success(), "{format}");
    }
}

/// A connection that speaks HTTP/2 and sends nothing more is closed, with a GOAWAY frame.
#[test]
fn idle_http2_connections_are_closed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, _) = start(directory.path(), "idle-timeout: 1s\n", &[]);
    let mut stream = TcpStream::connect(store.server.address()).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    // The preface, then an empty SETTINGS frame (RFC 9113 sections 3.4 and 6.5), byte by byte.
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0" {
        stream.write_all(&[*byte]).expect("written");
        stream.flush().expect("written");
    }
    let mut frames = Vec::new();
    stream.read_to_end(&mut frames).expect("it is closed");
    let mut kinds = Vec::new();
    let mut rest = frames.as_slice();
    while let [a, b, c, kind, ..] = *rest {
        kinds.push(kind);
        let len = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        rest = &rest[9 + len..];
    }
    assert!(kinds.contains(&7), "no GOAWAY frame among {kinds:?}");
    assert_eq!(get(&store, "/-/healthy"), 200);
}

/// A request whose body is half sent when the store is stopped is accepted and acknowledged.
#[test]
fn requests_that_run_are_answered_before_the_end() {
    let store = Store::start().expect("tidepool starts");
    let data = recent_data(304, 50, 20);
    let rows: Vec<_> = data.scrapes().flatten().collect();
    let body = encode(Version::V2, &rows);
    let mut stream = TcpStream::connect(store.server.address()).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\n\
         Content-Encoding: snappy\r\nContent-Length: {}\r\n\r\n",
        Version::V2.content_type(),
        body.len()
    );
    let (first, second) = body.split_at(body.len() / 2);
    stream.write_all(&[head.as_bytes(), first].concat()).expect("written");
    // Its head is read: a connection without a request is closed at once.
    let is_read = || (store.metric("tidepool_http_inflight_bytes")? > 0.0).then_some(());
    wait::until("the first half", TIMEOUT, is_read).expect("it is there");
    store.server.signal(Signal::TERM).expect("the signal is sent");
    wait_for_log(&store, "stopping");
    let refused = || TcpStream::connect(store.server.address()).is_err().then_some(());
    wait::until("new connections to be refused", TIMEOUT, refused).expect("they are");
    stream.write_all(second).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and the end");
    assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert_holds(&store, &data);
}

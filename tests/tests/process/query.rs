//! `tidepool query` by itself: credentials and TLS, a data directory, mistakes.
//! `tests/tests/peers/query.rs` compares its output with promtool's.

use std::ffi::OsStr;
use tidepool_tests::authority::Authority;
use tidepool_tests::busy::{assert_unchanged, busy_store, files};
use tidepool_tests::cli::{Output, run_command};
use tidepool_tests::guarded::Node;
use tidepool_tests::{data_dir, tidepool};

#[track_caller]
fn query(arguments: &[&str]) -> Output {
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    run_command("query", &arguments, "")
}

#[track_caller]
fn answer(arguments: &[&str]) -> String {
    let output = query(arguments);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    output.stdout
}

/// Blocks and samples that are only in the log, as the server had them; nothing is written.
#[test]
fn a_directory_answers_as_its_server_did() {
    let (store, data) = busy_store(195);
    let url = store.server.url();
    let (first_ms, last_ms) = data.time_range_ms().expect("samples");
    let (start, end) =
        (format!("--start={}", first_ms / 1000), format!("--end={}", last_ms / 1000));
    let time = format!("--time={}", last_ms / 1000);
    let all = "{__name__=~\".+\"}";
    let questions: [(&[&str], &[&str]); 6] = [
        (&["instant", &time], &["count by (__name__) ({__name__=~\".+\"})"]),
        (&["instant", &time], &["sum by (__name__) (last_over_time({__name__=~\".+\"}[1d]))"]),
        (&["instant", &time], &["up +"]),
        (&["range", &start, &end, "--step=5m"], &[all]),
        (&["series", "--match", all, &start, &end], &[]),
        (&["labels", &start, &end], &["__name__"]),
    ];
    let asked =
        |place: &[&str]| questions.map(|(before, behind)| query(&[before, place, behind].concat()));
    let expected = asked(&[&url]);
    assert_eq!(expected.each_ref().map(|output| output.code), [0, 0, 1, 0, 0, 0].map(Some));
    assert!(expected.iter().enumerate().all(|(at, output)| at == 2 || output.stdout.len() > 20));

    let dir = store.config.data_dir().display().to_string();
    let output = query(&["instant", "--dir", &dir, "up"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert!(output.stderr.contains("a server is running on "), "{}", output.stderr);
    assert!(output.stderr.contains("tidepool query instant http://"), "{}", output.stderr);

    let assert_same = |what: &str| {
        let before = files(store.config.data_dir());
        for (found, expected) in asked(&["--dir", &dir]).iter().zip(&expected) {
            assert_eq!(found.stdout, expected.stdout, "{what}");
            assert_eq!((found.code, &found.stderr), (expected.code, &expected.stderr), "{what}");
        }
        assert_unchanged(store.config.data_dir(), &before, what);
    };
    store.server.kill().expect("it can be killed");
    assert_same("killed");
    // A server that ends cleanly also leaves a head snapshot.
    store.config.start().expect("tidepool starts").terminate().expect("it ends");
    assert_same("stopped");
}

/// An answer without a damaged part is printed, but is not a success.
#[test]
fn a_damaged_block_is_named() {
    let (store, _) = busy_store(196);
    let dir = store.config.data_dir().to_owned();
    store.server.terminate().expect("tidepool ends");
    let block = data_dir::blocks(&dir).expect("blocks").swap_remove(0);
    std::fs::write(block.path.join("index"), "no index").expect("written");
    let text = dir.display().to_string();
    let output = query(&["instant", "--time=1", "--dir", &text, "1"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), "scalar: 1 @[1]\n"));
    let named = format!("{}/index is left out: ", block.ulid);
    assert!(output.stderr.contains(&named), "{}", output.stderr);
}

#[test]
fn credentials_and_tls_come_from_a_file() {
    let authority = Authority::new();
    let node = Node::open_to_all().with_credentials().with_tls(&authority);
    let ca = node.file("query-ca.pem", &authority.certificate);
    let server = node.start_secure(&ca);
    let url = format!("https://127.0.0.1:{}", server.address().port());
    node.file("query-password", "re4d:secret\n");
    let with_file = |text: &str| {
        let file = node.file("http.yml", text);
        query(&["--http.config.file", &file, "instant", "--time=1", &url, "1 + 1"])
    };
    let by_file = "basic_auth: {username: reader, password_file: query-password}\n";
    let in_place = "basic_auth: {username: reader, password: 're4d:secret'}\n";
    let tls = format!("tls_config: {{ca_file: {ca}}}\n");
    for credentials in [by_file, in_place] {
        let output = with_file(&format!("{credentials}{tls}"));
        assert_eq!((output.stderr.as_str(), output.stdout.as_str()), ("", "scalar: 2 @[1]\n"));
    }
    let name = "tls_config: {ca_file: query-ca.pem, server_name: elsewhere.example}\n";
    for (text, why) in [
        (by_file.to_owned(), "query error: Post \"https://127.0.0.1:"),
        (format!("{by_file}{name}"), "certificate"),
        (tls.clone(), "query error: client_error: client error: 401"),
        (format!("authorization: {{credentials: nobodys}}\n{tls}"), "client error: 401"),
        (format!("{by_file}proxy_url: x\n"), "http.yml:2:12: proxy_url: no URL such as http://"),
        (format!("{by_file}proxy_urls: x\n"), "http.yml:2:1: proxy_urls: there is no such key"),
    ] {
        let output = with_file(&text);
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{text}");
        assert!(output.stderr.contains(why), "{text}: {}", output.stderr);
        assert!(!output.stderr.contains("secret"), "{}", output.stderr);
    }
}

#[test]
fn credentials_in_the_url_are_sent_and_not_shown() {
    let node = Node::open_to_all().with_credentials();
    let server = node.start();
    let url = |user: &str| server.url().replace("http://", &format!("http://{user}@"));
    let own = url("reader:re4d%3Asecret");
    assert_eq!(answer(&["instant", "--time=1", &own, "1"]), "scalar: 1 @[1]\n");
    let config = node.file("empty.yml", "");
    let output = query(&["--http.config.file", &config, "instant", &own, "1"]);
    assert!(output.stderr.contains("Cannot set base auth in the server URL"), "{}", output.stderr);
    server.terminate().expect("tidepool ends");
    let output = query(&["instant", "--time=1", &own, "1"]);
    assert_eq!(output.code, Some(1));
    assert!(!output.stderr.contains("secret"), "{}", output.stderr);
}

#[test]
fn mistakes_are_named() {
    let empty = tempfile::tempdir().expect("a temporary directory");
    let dir = empty.path().display().to_string();
    for (wrong, why) in [
        (&["instant", "up"][..], "EXPR is missing"),
        (&["instant", "--dir", &dir, "http://a", "up"], "not both of them"),
        (&["instant", "ftp://a", "up"], "is no URL"),
        (&["instant", "--dir", &dir, "--header", "a=b", "up"], "for a server, not for --dir"),
        (&["instant", "--header", "a", "http://a", "up"], "expected NAME=VALUE"),
        (&["range", "--step", "fast", "http://a", "up"], "is not a duration"),
        (&["series", "http://a"], "--match"),
        (&["series", "--match", "up"], "SERVER"),
        (&["analyze", "--type", "histogram", "--match", "up"], "--server"),
        (&["-o", "xml", "instant", "http://a", "up"], "xml"),
        (&["no-such-command"], "no-such-command"),
    ] {
        let output = query(wrong);
        assert_eq!(output.code, Some(2), "{wrong:?}: {}", output.stderr);
        assert!(output.stderr.contains(why), "{wrong:?}: {}", output.stderr);
    }
    let output = query(&["instant", "--dir", "no-such-directory", "up"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("no-such-directory does not exist"), "{}", output.stderr);
    assert_eq!(answer(&["instant", "--dir", &dir, "up"]), "\n");
    assert_eq!(answer(&["series", "--dir", &dir, "--match", "up", "-o", "json"]), "[]\n");
    let help = tidepool::command().args(["query", "instant", "--help"]).output().expect("it runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.contains("tidepool query instant [OPTIONS] --dir DIR EXPR"), "{help}");
}

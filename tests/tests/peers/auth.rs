//! Prometheus with passwords, tokens and certificates writes to tidepool and reads from it.

use tidepool_tests::authority::Authority;
use tidepool_tests::clock::now_ms;
use tidepool_tests::guarded::{Node, TIMEOUT, curl};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus;
use tidepool_tests::remote_write::Version;
use tidepool_tests::wait;

/// Starts a Prometheus that scrapes itself and writes, and a reader, both with these lines of YAML.
fn write_and_read_back(server: &Server, scheme: &str, writer: &str, reader: &str) {
    let base = format!("{scheme}://{}", server.address());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = prometheus::Config::new(Release::V3, &directory.path().join("writer"))
        .expect("the directory can be used");
    let own_address = config.address();
    let writer = config
        .scrape("prometheus", own_address)
        .remote_write_with(&base, Version::V2, writer)
        .start()
        .expect("the writer starts");
    let reader = prometheus::Config::new(Release::V3, &directory.path().join("reader"))
        .expect("the directory can be used")
        .remote_read_with(&base, reader)
        .start()
        .expect("the reader starts");
    let arrived = || {
        let found = prometheus::query(&reader, "count_over_time(up[1m])", now_ms()).ok()?;
        found.values().next()?.parse::<f64>().ok().filter(|count| *count >= 3.0)
    };
    wait::until("samples", TIMEOUT, arrived)
        .unwrap_or_else(|e| panic!("{e}\n{}\n{}\n{}", writer.log(), reader.log(), server.log()));
    reader.terminate().expect("the reader ends");
    writer.terminate().expect("the writer ends");
}

#[test]
fn prometheus_writes_and_reads_with_passwords_and_tokens() {
    let node = Node::open_to_all().with_credentials();
    let server = node.start();
    let basic = |user: &str, password: &str| {
        format!("\n    basic_auth: {{username: {user}, password: '{password}'}}")
    };
    let token = |name: &str, token: &str| {
        let file = node.file(name, &format!("{token}\n"));
        format!("\n    authorization: {{credentials_file: {file}}}")
    };
    let (writer, reader) = (basic("writer", "wr1te-secret"), basic("reader", "re4d:secret"));
    write_and_read_back(&server, "http", &writer, &reader);
    let writer = token("writer.token", "wr1te-token");
    let reader = token("reader.token", "re4d-token");
    write_and_read_back(&server, "http", &writer, &reader);
}

#[test]
fn prometheus_writes_and_reads_over_tls_with_certificates_of_its_own() {
    let authority = Authority::new();
    let node = Node::open_to_all().with_credentials();
    let ca = node.file("ca.crt", &authority.certificate);
    let node = node.with_tls(&authority);
    let server = node.start_secure(&ca);
    let lines = |credential: &str| {
        format!(
            "\n    tls_config: {{ca_file: {ca}}}\n    authorization: {{credentials: {credential}}}"
        )
    };
    write_and_read_back(&server, "https", &lines("wr1te-token"), &lines("re4d-token"));
    server.terminate().expect("tidepool ends");

    // Now each client must also present a certificate.
    let node = node.flag("--tls-client-ca-file", &ca);
    let (certificate, key) = authority.issue("client");
    let certificate = node.file("client.crt", &certificate);
    let key = node.file("client.key", &key);
    let server = node.launch().spawn().expect("tidepool starts");
    let with = ["--cacert", &ca, "--cert", &certificate, "--key", &key];
    let is_ready = || (curl(&server, "https", "/-/ready", &with).0 == 200).then_some(());
    wait::until("readiness", TIMEOUT, is_ready).unwrap_or_else(|e| panic!("{e}\n{}", server.log()));
    assert_eq!(curl(&server, "https", "/-/ready", &["--cacert", &ca]).0, 0);
    let other = Authority::new();
    let (certificate_of_other, key_of_other) = other.issue("client");
    let certificate_of_other = node.file("other.crt", &certificate_of_other);
    let key_of_other = node.file("other.key", &key_of_other);
    let with_other = ["--cacert", &ca, "--cert", &certificate_of_other, "--key", &key_of_other];
    assert_eq!(curl(&server, "https", "/-/ready", &with_other).0, 0);
    let lines = |credential: &str| {
        format!(
            "\n    tls_config: {{ca_file: {ca}, cert_file: {certificate}, key_file: {key}}}\
             \n    authorization: {{credentials: {credential}}}"
        )
    };
    write_and_read_back(&server, "https", &lines("wr1te-token"), &lines("re4d-token"));
}

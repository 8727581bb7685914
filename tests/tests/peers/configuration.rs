//! Prometheus' flags are recognized, and its web configuration file is read as Prometheus reads it.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use tidepool_tests::authority::Authority;
use tidepool_tests::peers::Release;
use tidepool_tests::promtool;
use tidepool_tests::tidepool::binary;

/// Each flag in Prometheus' own help is accepted, or refused with the name of a replacement.
#[test]
fn every_flag_of_prometheus_is_known() {
    let help = Command::new(Release::V3.prometheus().expect("it is built")).arg("--help").output();
    let help = help.expect("Prometheus runs");
    let help = String::from_utf8_lossy(&[help.stdout, help.stderr].concat()).into_owned();
    let flags = help.lines().filter_map(|line| line.strip_prefix("      --"));
    let mut known = 0;
    for flag in flags {
        let word = flag.split(|c: char| c == '=' || c.is_whitespace()).next().unwrap_or_default();
        let (name, value) = match word.strip_prefix("[no-]") {
            Some(name) => (name, ""),
            None => (word, "=1"),
        };
        if name == "version" {
            continue;
        }
        // The last argument is always invalid, so that nothing is started.
        let output = Command::new(binary())
            .args([&format!("--{name}{value}"), "--listen=nowhere"])
            .output()
            .expect("tidepool runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(!said.contains("unexpected argument"), "{name}: {said}");
        known += 1;
    }
    assert!(known > 30, "{known} flags in {help}");
}

/// A web configuration, and whether only tidepool refuses it.
struct Web {
    text: &'static str,
    is_refused_here: bool,
}

const fn same(text: &'static str) -> Web {
    Web { text, is_refused_here: false }
}

/// Makes a configuration that Prometheus accepts and tidepool refuses by name.
const fn refused_here(text: &'static str) -> Web {
    Web { text, is_refused_here: true }
}

/// `promtool check web-config` must give the same verdict.
#[test]
fn web_configurations_are_judged_as_by_promtool() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    let (certificate, key) = authority.issue("127.0.0.1");
    for (name, text) in
        [("a.crt", &certificate), ("a.key", &key), ("ca.crt", &authority.certificate)]
    {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    // The port is in use: with a valid file, the start fails one step later.
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = format!("--listen={}", taken.local_addr().expect("an address"));
    let path = directory.path().join("web.yml");
    for Web { text, is_refused_here } in [
        same(""),
        same("tls_server_config: {}"),
        same("tls_server_config: {cert_file: a.crt, key_file: a.key}"),
        same("tls_server_config: {cert_file: a.crt}"),
        same("tls_server_config: {key_file: a.key}"),
        same("tls_server_config: {cert_file: a.crt, key_file: no.key}"),
        same("tls_server_config: {cert_file: a.crt, key_file: ca.crt}"),
        same("tls_server_config: {cert_file: a.crt, key_file: a.key, client_ca_file: ca.crt}"),
        same(
            "tls_server_config: {cert_file: a.crt, key_file: a.key, client_ca_file: ca.crt, \
             client_auth_type: RequireAndVerifyClientCert}",
        ),
        same(
            "tls_server_config: {cert_file: a.crt, key_file: a.key, client_ca_file: ca.crt, \
             client_auth_type: VerifyClientCertIfGiven}",
        ),
        same("tls_server_config: {cert_file: a.crt, key_file: a.key, client_auth_type: Any}"),
        same("tls_server_config: {cert_file: a.crt, key_file: a.key, min_version: TLS13}"),
        same("tls_server_config: {cert_file: a.crt, key_file: a.key, min_version: TLS9}"),
        same(
            "tls_server_config: {cert_file: a.crt, key_file: a.key, cipher_suites: \
             [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384], curve_preferences: [X25519, CurveP256]}",
        ),
        same("tls_server_config: {cert_file: a.crt, key_file: a.key, cipher_suites: [A]}"),
        same("tls_server_config: {cert_file: a.crt, key_file: a.key, curve_preferences: [A]}"),
        same("tls_server_config: {cert_fil: a.crt}"),
        same("tls_server: {}"),
        same("http_server_config: {http2: false}"),
        same("http_server_config: {http2: 1}"),
        same("http_server_config: {headers: {X-Frame-Options: deny, X-XSS-Protection: '0'}}"),
        same("http_server_config: {headers: {X-Frame-Options: allow}}"),
        same("http_server_config: {headers: {Server: a}}"),
        same("basic_auth_users: {a: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}"),
        same("basic_auth_users: {a: plain}"),
        same("basic_auth_users: {}\nbasic_auth_users: {}"),
        same("basic_auth_users: [a]"),
        same("basic_auth_users: {"),
        refused_here("tls_server_config: {cert_file: a.crt, key_file: a.key, min_version: TLS10}"),
        refused_here(
            "tls_server_config: {cert_file: a.crt, key_file: a.key, \
             client_auth_type: RequireAnyClientCert}",
        ),
        refused_here(
            "tls_server_config: {cert_file: a.crt, key_file: a.key, \
             client_auth_type: RequireAndVerifyClientCert}",
        ),
        refused_here(
            "tls_server_config: {cert_file: a.crt, key_file: a.key, client_allowed_sans: [a]}",
        ),
        refused_here(
            "tls_server_config: {cert_file: a.crt, key_file: a.key, curve_preferences: [CurveP521]}",
        ),
        refused_here("rate_limit: {burst: 1, interval: 1s}"),
    ] {
        fs::write(&path, text).expect("a file");
        let file = path.to_str().expect("a path");
        let judged = promtool::run(Release::V3, ["check", "web-config", file], Stdio::null());
        let judged = judged.expect("promtool runs");
        let data_dir = format!("--data-dir={}", directory.path().join("data").display());
        let output = Command::new(binary())
            .args([&format!("--web.config.file={file}"), &listen, &data_dir])
            .output()
            .expect("tidepool runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let is_taken = said.contains("could not listen on");
        assert_eq!(is_taken, !said.contains("--web-config-file: "), "{text}: {said}");
        assert_eq!(is_taken, judged.success && !is_refused_here, "{text}: {said}\n{judged:?}");
        assert!(judged.success || !is_refused_here, "{text}: {judged:?}");
    }
}

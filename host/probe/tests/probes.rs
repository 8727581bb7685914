//! Probes of real servers on loopback addresses.

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidepool_probe::{Module, Report, run};
use tidepool_settings::yaml;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Expiry of the server's certificate: 2040-05-06, as `date -u +%s` prints it.
const EXPIRY: f64 = 2_219_875_200.0;

fn module(text: &str) -> Module {
    let node = yaml::load(text).expect("YAML");
    yaml::read("module", &node).expect("a module")
}

#[track_caller]
fn has(report: &Report, expected: &[(&str, f64)]) {
    for (name, value) in expected {
        assert_eq!(report.value(name, ""), Some(*value), "{name}: {report:?}");
    }
}

/// Returns a server's response to a request whose first line has this path.
fn answer(path: &str) -> &'static str {
    match path {
        "/" => {
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-Kind: plain\r\n\
             Last-Modified: Thu, 01 Jan 1970 00:01:40 GMT\r\n\r\nall ok\n"
        }
        "/gone" => "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
        "/old" => "HTTP/1.0 200 OK\r\n\r\nno length",
        "/moved" => "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
        "/loop" => "HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n",
        "/broken" => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        _ => "",
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
    }
    let text = String::from_utf8_lossy(&request);
    let path = text.split(' ').nth(1).unwrap_or_default();
    match answer(path) {
        // No response, so that the probe runs into its timeout.
        "" => std::future::pending().await,
        answer => {
            // A client that closed its connection needs no response.
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    }
}

/// Serves HTTP, by TLS if there is a certificate.
async fn server(tls: Option<TlsAcceptor>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                match tls {
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream).await;
                        }
                    }
                    None => serve(stream).await,
                }
            });
        }
    });
    address
}

/// Makes a self-signed certificate for `localhost`, in PEM, and a server with it.
async fn tls_server() -> (String, SocketAddr) {
    let key = KeyPair::generate().expect("a key");
    let mut parameters = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    parameters.not_after = date_time_ymd(2040, 5, 6);
    let certificate = parameters.self_signed(&key).expect("a certificate");
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a configuration");
    let address = server(Some(TlsAcceptor::from(Arc::new(config)))).await;
    (certificate.pem(), address)
}

/// Returns an address without a listener, valid as long as the returned socket lives.
fn closed_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let address = socket.local_addr().expect("an address");
    (socket, address)
}

async fn http(settings: &str, target: &str) -> Report {
    run(&module(&format!("{{prober: http, http: {{{settings}}}}}")), target, TIMEOUT).await
}

#[tokio::test]
async fn a_good_answer_is_told_with_its_phases() {
    let address = server(None).await;
    let report = http("", &address.to_string()).await;
    has(
        &report,
        &[
            ("probe_success", 1.0),
            ("probe_http_status_code", 200.0),
            ("probe_http_content_length", 7.0),
            ("probe_http_uncompressed_body_length", 7.0),
            ("probe_http_redirects", 0.0),
            ("probe_http_ssl", 0.0),
            ("probe_http_version", 1.1),
            ("probe_http_last_modified_timestamp_seconds", 100.0),
            ("probe_failed_due_to_regex", 0.0),
            ("probe_ip_protocol", 4.0),
            ("probe_timeout_seconds", 10.0),
        ],
    );
    let phase = |name| report.value("probe_http_duration_seconds", name).expect(name);
    let phases = ["resolve", "connect", "tls", "processing", "transfer"].map(phase);
    assert!(phases.iter().all(|seconds| (0.0..10.0).contains(seconds)), "{phases:?}");
    assert!(phase("connect") > 0.0 && phase("processing") > 0.0 && phase("tls") == 0.0);
    let whole = report.value("probe_duration_seconds", "").expect("a time");
    assert!(phases.iter().sum::<f64>() <= whole, "{phases:?} {whole}");
    assert_eq!(report.value("probe_ssl_earliest_cert_expiry", ""), None);
}

#[tokio::test]
async fn what_is_not_wanted_fails() {
    let address = server(None).await;
    let old = http("", &format!("http://{address}/old")).await;
    has(&old, &[("probe_success", 1.0), ("probe_http_version", 1.0)]);
    has(&old, &[("probe_http_content_length", -1.0), ("probe_http_uncompressed_body_length", 9.0)]);
    for (settings, path, success, regex) in [
        ("", "/gone", 0.0, 0.0),
        ("valid_status_codes: [410]", "/gone", 1.0, 0.0),
        ("valid_status_codes: [410]", "/", 0.0, 0.0),
        ("", "/broken", 0.0, 0.0),
        ("body_size_limit: 6B", "/", 0.0, 0.0),
        ("fail_if_not_ssl: true", "/", 0.0, 0.0),
        ("fail_if_ssl: true", "/", 1.0, 0.0),
        ("valid_http_versions: [HTTP/2.0]", "/", 0.0, 0.0),
        ("valid_http_versions: [HTTP/1.1]", "/", 1.0, 0.0),
        ("fail_if_body_matches_regexp: ['ok$', 'ok\\s']", "/", 0.0, 1.0),
        ("fail_if_body_matches_regexp: [error]", "/", 1.0, 0.0),
        ("fail_if_body_not_matches_regexp: [ok, missing]", "/", 0.0, 1.0),
        ("fail_if_body_not_matches_regexp: [ok]", "/", 1.0, 0.0),
        ("fail_if_header_matches: [{header: x-kind, regexp: pl}]", "/", 0.0, 1.0),
        ("fail_if_header_not_matches: [{header: x-kind, regexp: pl}]", "/", 1.0, 0.0),
        ("fail_if_header_matches: [{header: x-none, regexp: a}]", "/", 0.0, 1.0),
        (
            "fail_if_header_matches: [{header: x-none, regexp: a, allow_missing: true}]",
            "/",
            1.0,
            0.0,
        ),
    ] {
        let report = http(settings, &format!("http://{address}{path}")).await;
        let found = |name| report.value(name, "");
        let found = (found("probe_success"), found("probe_failed_due_to_regex"));
        assert_eq!(found, (Some(success), Some(regex)), "{settings} {path} {report:?}");
    }
}

#[tokio::test]
async fn redirects_are_followed_ten_times() {
    let address = server(None).await;
    let moved = format!("http://{address}/moved");
    let report = http("", &moved).await;
    has(&report, &[("probe_success", 1.0), ("probe_http_redirects", 1.0)]);
    let report = http("follow_redirects: false", &moved).await;
    has(&report, &[("probe_success", 0.0), ("probe_http_status_code", 302.0)]);
    let report = http("", &format!("http://{address}/loop")).await;
    has(&report, &[("probe_success", 0.0), ("probe_http_redirects", 11.0)]);
}

#[tokio::test]
async fn a_probe_ends_by_its_timeout() {
    let address = server(None).await;
    let short = Duration::from_millis(300);
    let report = run(&module("{prober: http}"), &format!("http://{address}/never"), short).await;
    has(&report, &[("probe_success", 0.0), ("probe_http_status_code", 0.0)]);
    has(&report, &[("probe_ip_protocol", 4.0), ("probe_timeout_seconds", 0.3)]);
    let connect = report.value("probe_http_duration_seconds", "connect");
    assert!(connect.is_some_and(|seconds| seconds > 0.0), "{report:?}");
    assert!(report.failure.is_some_and(|failure| failure.contains("0.3 s")));
}

#[tokio::test]
async fn a_closed_port_is_told() {
    let (_socket, address) = closed_port();
    let target = address.to_string();
    for prober in ["http", "tcp"] {
        let report = run(&module(&format!("{{prober: {prober}}}")), &target, TIMEOUT).await;
        has(&report, &[("probe_success", 0.0), ("probe_ip_protocol", 4.0)]);
    }
    let none = run(&module("{prober: tcp}"), "127.0.0.1", TIMEOUT).await;
    has(&none, &[("probe_success", 0.0)]);
    assert_eq!(none.value("probe_ip_protocol", ""), None);
    let six = "{prober: tcp, tcp: {preferred_ip_protocol: ip6, ip_protocol_fallback: false}}";
    let six = run(&module(six), &target, TIMEOUT).await;
    has(&six, &[("probe_success", 0.0), ("probe_ip_protocol", 0.0)]);
}

#[tokio::test]
async fn certificates_are_told_if_they_are_trusted() {
    let (pem, address) = tls_server().await;
    let ca = serde_text(&pem);
    let tls = format!("tls_config: {{ca: {ca}, server_name: localhost}}");
    let trusted = http(&tls, &format!("https://{address}/")).await;
    let tcp = format!("{{prober: tcp, tcp: {{tls: true, {tls}}}}}");
    let tcp = run(&module(&tcp), &address.to_string(), TIMEOUT).await;
    for report in [&trusted, &tcp] {
        has(
            report,
            &[
                ("probe_success", 1.0),
                ("probe_ssl_earliest_cert_expiry", EXPIRY),
                ("probe_ssl_last_chain_expiry_timestamp_seconds", EXPIRY),
            ],
        );
        assert_eq!(report.value("probe_tls_version_info", "TLS 1.3"), Some(1.0), "{report:?}");
    }
    has(&trusted, &[("probe_http_ssl", 1.0), ("probe_http_status_code", 200.0)]);
    let handshake = trusted.value("probe_http_duration_seconds", "tls");
    assert!(handshake.is_some_and(|seconds| seconds > 0.0), "{trusted:?}");

    // A certificate that is not verified has no verified chain.
    let any =
        http("tls_config: {insecure_skip_verify: true}", &format!("https://{address}/")).await;
    has(&any, &[("probe_success", 1.0), ("probe_ssl_earliest_cert_expiry", EXPIRY)]);
    has(&any, &[("probe_ssl_last_chain_expiry_timestamp_seconds", -62_135_596_800.0)]);

    let other = format!("tls_config: {{ca: {ca}, server_name: other.example}}");
    let other = http(&other, &format!("https://{address}/")).await;
    has(&other, &[("probe_success", 0.0), ("probe_http_status_code", 0.0)]);
    let ssl = format!("fail_if_ssl: true, {tls}");
    has(&http(&ssl, &format!("https://{address}/")).await, &[("probe_success", 0.0)]);
}

/// Quotes a text for YAML.
fn serde_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\n', "\\n"))
}

//! TLS: trust, client certificates, the negotiated protocol, and files that change.

use crate::server::{Authority, Server, answer};
use crate::{client, config, get, ok, sent};
use hyper::Version;
use tidepool_client::Client;

fn indented(pem: &str) -> String {
    pem.lines().map(|line| format!("    {line}\n")).collect()
}

#[tokio::test]
async fn servers_are_verified_as_configured() {
    let authority = Authority::new();
    let server =
        Server::with_tls(Some(authority.server("127.0.0.1", false)), |_| answer(200, &[], "ok"))
            .await;
    let named =
        Server::with_tls(Some(authority.server("node.example", false)), |_| answer(200, &[], "ok"))
            .await;
    let (url, other) =
        (format!("https://{}/", server.address), format!("https://{}/", named.address));
    let ca = format!("tls_config:\n  ca: |\n{}", indented(&authority.certificate));
    let trusting = client(&ca);
    assert_eq!(sent(&trusting, get(&url)).await, ok("ok"));
    assert_eq!(server.log.last().version, Version::HTTP_2);
    let by_name = client(&format!("{ca}  server_name: node.example\n"));
    assert_eq!(sent(&by_name, get(&other)).await, ok("ok"));
    let only_1 = client(&format!("{ca}enable_http2: false\n"));
    assert_eq!(sent(&only_1, get(&url)).await, ok("ok"));
    assert_eq!(server.log.last().version, Version::HTTP_11);
    for (wrong, url) in [(&client(""), &url), (&trusting, &other), (&by_name, &url)] {
        let error = sent(wrong, get(url)).await.map_err(|error| error.to_string());
        assert!(error.as_ref().is_err_and(|error| error.contains("certificate")), "{error:?}");
    }
    let careless = client("tls_config: {insecure_skip_verify: true}");
    assert_eq!(sent(&careless, get(&other)).await, ok("ok"));
    for version in ["TLS12", "TLS13"] {
        let range = format!("{ca}  min_version: {version}\n  max_version: {version}\n");
        assert_eq!(sent(&client(&range), get(&url)).await, ok("ok"), "{version}");
    }
}

#[tokio::test]
async fn a_client_shows_its_certificate() {
    let authority = Authority::new();
    let server =
        Server::with_tls(Some(authority.server("127.0.0.1", true)), |_| answer(200, &[], "ok"))
            .await;
    let url = format!("https://{}/", server.address);
    let (certificate, key) = authority.issue("edge");
    let ca = format!("tls_config:\n  ca: |\n{}", indented(&authority.certificate));
    assert!(sent(&client(&ca), get(&url)).await.is_err());
    let pair = format!("  cert: |\n{}  key: |\n{}", indented(&certificate), indented(&key));
    assert_eq!(sent(&client(&format!("{ca}{pair}")), get(&url)).await, ok("ok"));
}

/// Changed files are used by the next request; files that cannot be used change nothing.
#[tokio::test]
async fn changed_files_are_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ca.pem");
    let (first, second) = (Authority::new(), Authority::new());
    let start = async |authority: &Authority| {
        let tls = authority.server("127.0.0.1", false);
        let server = Server::with_tls(Some(tls), |_| answer(200, &[], "ok")).await;
        format!("https://{}/", server.address)
    };
    let (of_first, of_second) = (start(&first).await, start(&second).await);
    // A file of another time has another name first: no clock is coarse enough to miss that.
    let replace = |content: &str| {
        let new = folder.path().join("new");
        std::fs::write(&new, content).expect("a file");
        std::fs::rename(&new, &path).expect("it is renamed");
    };
    replace(&first.certificate);
    let http = config(&format!("tls_config: {{ca_file: {}}}", path.display()));
    let client = Client::open(&http).expect("a client");
    let before = http.files_checksum();
    assert_eq!(sent(&client, get(&of_first)).await, ok("ok"));
    assert!(sent(&client, get(&of_second)).await.is_err());
    replace(&second.certificate);
    assert_ne!(http.files_checksum(), before);
    assert_eq!(sent(&client, get(&of_second)).await, ok("ok"));
    replace("no certificate");
    assert_eq!(sent(&client, get(&of_second)).await, ok("ok"));
    assert!(sent(&client, get(&of_first)).await.is_err());
    replace(&first.certificate);
    assert_eq!(sent(&client, get(&of_first)).await, ok("ok"));
}

#[test]
fn what_is_wrong_with_files_is_told_when_they_are_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    std::fs::write(&text, [b'n', 0xff]).expect("a file");
    let text = text.display();
    let (certificate, _) = Authority::new().issue("edge");
    let (_, key) = Authority::new().issue("edge");
    let pair = format!("  cert: |\n{}  key: |\n{}", indented(&certificate), indented(&key));
    for (tls, said) in [
        (
            "  ca_file: /no/such/file".to_owned(),
            "tls_config.ca_file /no/such/file: No such".to_owned(),
        ),
        (
            format!("  ca_file: {text}"),
            format!("tls_config.ca_file {text}: it holds no certificate"),
        ),
        ("  ca: none".to_owned(), "tls_config.ca: it holds no certificate in PEM".to_owned()),
        (
            format!("  {{cert_file: {text}, key_file: {text}}}"),
            format!("tls_config.key_file {text}: it holds no private key in PEM"),
        ),
        (pair, "tls_config.key: ".to_owned()),
        (
            "  server_name: 'a b'".to_owned(),
            "tls_config.server_name \"a b\" is neither a host's name nor an address".to_owned(),
        ),
    ] {
        let opened = Client::open(&config(&format!("tls_config:\n{tls}\n")));
        let error = opened.map(|_| ()).map_err(|error| error.to_string());
        assert!(error.as_ref().is_err_and(|error| error.starts_with(&said)), "{said}: {error:?}");
    }
}

//! Values that the keys may have, and those that they may not have.

use super::*;
use tidepool_settings::yaml;

fn read(text: &str) -> Result<HttpClientConfig, String> {
    let read = yaml::load(text).and_then(|node| yaml::read("", &node));
    read.map_err(|error| error.to_string())
}

#[test]
fn all_keys_are_read() {
    let text = "
basic_auth: {username: me, password_file: password}
tls_config:
  {ca: CA, cert_file: a.pem, key_file: b.pem, server_name: other, insecure_skip_verify: true,
   min_version: TLS10, max_version: TLS13}
http_headers:
  X-Plain: {values: [a, b]}
  X-Secret: {secrets: [hunter2], files: [token]}
proxy_url: http://me:hunter2@proxy:3128
no_proxy: a, b
proxy_connect_header: {X-Proxy: [hunter2]}
follow_redirects: false
enable_http2: false
";
    let mut config = read(text).expect("a configuration");
    config.set_directory(Path::new("/etc/x"));
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    for part in [
        "me:/etc/x/password",
        "ca: Some(<secret>)",
        "Some((/etc/x/a.pem, /etc/x/b.pem))",
        "Some(\"other\")",
        "insecure_skip_verify: true",
        "min_version: Some(Tls10)",
        "\"/etc/x/token\"",
        "http://proxy:3128/",
        "no_proxy: \"a, b\"",
        "follow_redirects: Some(false)",
        "enable_http2: Some(false)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let names: Vec<&str> = config.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x-plain", "x-secret"]);
    let is_secret = |at: usize| config.headers[at].1.values.iter().all(HeaderValue::is_sensitive);
    assert!(!is_secret(0) && is_secret(1));
    assert_eq!(read(""), Ok(HttpClientConfig::default()));

    let text = "
oauth2:
  client_id: edge
  client_secret_file: secret
  scopes: [a, b]
  token_url: https://login.example/token
  endpoint_params: {audience: centre}
  tls_config: {ca_file: ca.pem}
  proxy_from_environment: true
";
    let mut config = read(text).expect("a configuration");
    config.set_directory(Path::new("/etc/x"));
    let Credentials::OAuth2(oauth2) = config.credentials else { panic!("{config:?}") };
    assert_eq!(oauth2.client_secret, Secret::File("/etc/x/secret".into()));
    assert_eq!(oauth2.tls.ca, Some(Secret::File("/etc/x/ca.pem".into())));
    assert_eq!(oauth2.endpoint_params, [("audience".to_owned(), "centre".to_owned())]);
    assert!(oauth2.proxy.from_environment);
    let bearer = read("bearer_token: t").map(|config| config.credentials);
    let credentials = Secret::Text("t".into());
    assert_eq!(bearer, Ok(Credentials::Authorization { kind: "Bearer".into(), credentials }));
}

/// The verdicts are those of upstream's `http_config_test.go` and its `testdata`.
#[test]
fn what_cannot_be_is_refused_with_its_place() {
    for (text, said) in [
        (
            "basic_auth: {username: a, password: hunter2, password_file: b}",
            "1:13: basic_auth: password and password_file: only one",
        ),
        (
            "basic_auth: {username: a, username_file: b}",
            "1:13: basic_auth: username and username_file: only one",
        ),
        ("basic_auth: {}\nauthorization: {credentials: a}", "1:1: basic_auth and authorization: "),
        (
            "basic_auth: {}\noauth2: {client_id: a, token_url: 'http://a/'}",
            "1:1: basic_auth, authorization, oauth2 and bearer_token: only one",
        ),
        ("bearer_token: hunter2\nbearer_token_file: a", "1:1: bearer_token and bearer_token_file"),
        (
            "bearer_token: hunter2\nauthorization: {credentials: a}",
            "1:1: basic_auth, authorization, oauth2 and bearer_token: only one",
        ),
        ("authorization: {type: Basic, credentials: a}", "1:16: authorization: use basic_auth"),
        (
            "authorization: {credentials: hunter2, credentials_file: a}",
            "1:16: authorization: credentials and credentials_file: only one",
        ),
        ("authorization: {credentials_ref: a}", "1:17: authorization.credentials_ref: there is no"),
        ("oauth2: {token_url: 'http://a/'}", "1:9: oauth2: client_id is missing"),
        ("oauth2: {client_id: a}", "1:9: oauth2: token_url is missing"),
        (
            "oauth2: {client_id: a, token_url: 'ftp://a/'}",
            "1:35: oauth2.token_url: ftp://a/ is no http or https URL",
        ),
        (
            "oauth2: {client_id: a, token_url: 'http://a/', client_secret: hunter2, \
             client_secret_file: b}",
            "1:9: oauth2: client_secret and client_secret_file: only one",
        ),
        (
            "oauth2: {client_id: a, token_url: 'http://a/', grant_type: \
             'urn:ietf:params:oauth:grant-type:jwt-bearer'}",
            "1:9: oauth2: grant_type: only client_credentials is supported",
        ),
        ("oauth2: {scope: a}", "1:10: oauth2.scope: there is no such key; there are client_id, "),
        ("tls_config: {cert_file: a}", "1:13: tls_config: cert_file and key_file belong together"),
        ("tls_config: {key: hunter2}", "1:13: tls_config: cert_file and key_file belong together"),
        ("tls_config: {ca: a, ca_file: b}", "1:13: tls_config: ca and ca_file: only one"),
        ("tls_config: {min_version: TLS14}", "1:27: tls_config.min_version: expected TLS12 or"),
        ("tls_config: {max_version: TLS11}", "1:13: tls_config: max_version: TLS 1.0 and 1.1"),
        (
            "tls_config: {min_version: TLS13, max_version: TLS12}",
            "1:13: tls_config: min_version is above max_version",
        ),
        ("tls_config: {insecure: true}", "1:14: tls_config.insecure: there is no such key"),
        ("http_headers: {User-Agent: {values: [a]}}", "1:16: http_headers.User-Agent: this header"),
        ("http_headers: {X-A: {secrets: [\"hunter2\\n\"]}}", "1:32: http_headers.X-A.secrets[0]: "),
        ("proxy_url: 'socks5://me:hunter2@a'", "1:12: proxy_url: socks5://a is no http or https"),
        ("proxy_url: proxy", "1:12: proxy_url: no URL such as http://127.0.0.1:3128: "),
        ("no_proxy: a", "1:1: no_proxy needs proxy_url"),
        ("proxy_connect_header: {X-A: [a]}", "1:1: proxy_connect_header needs proxy_url or"),
        (
            "proxy_url: 'http://a'\nproxy_from_environment: true",
            "1:1: proxy_from_environment and proxy_url: only one",
        ),
        (
            "no_proxy: a\nproxy_from_environment: true",
            "1:1: proxy_from_environment and no_proxy: only one",
        ),
        (
            "proxy: a",
            "1:1: proxy: there is no such key; there are basic_auth, authorization, oauth2, \
             bearer_token, bearer_token_file, tls_config, http_headers, follow_redirects, \
             enable_http2, proxy_url, no_proxy, ",
        ),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.starts_with(said) && !error.contains("hunter2"), "{text}: {error}");
    }
}

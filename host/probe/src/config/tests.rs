//! Accepted and refused settings of the section `probe_modules`.

use super::*;
use std::path::Path;
use tidepool_settings::yaml;

fn modules(text: &str) -> Result<ModuleSet, String> {
    let node = yaml::load(text).map_err(|error| error.to_string())?;
    read(Some(&node), Path::new("/etc/x")).map_err(|error| error.to_string())
}

#[test]
fn two_modules_need_no_section() {
    let modules = read(None, Path::new("")).expect("modules");
    let names: Vec<&str> = modules.keys().map(String::as_str).collect();
    assert_eq!(names, ["http_2xx", "tcp_connect"]);
    assert!(matches!(modules[MODULE_DEFAULT].prober, Prober::Http(_)));
    assert!(matches!(modules["tcp_connect"].prober, Prober::Tcp(_)));
}

#[test]
fn all_of_a_module_is_read() {
    let text = "
web:
  prober: http
  timeout: 3s
  http:
    valid_status_codes: [200, 418]
    valid_http_versions: [HTTP/1.1, HTTP/2.0]
    preferred_ip_protocol: ip4
    ip_protocol_fallback: false
    fail_if_ssl: false
    fail_if_not_ssl: true
    method: POST
    headers: {Accept-Language: en, authorization: hunter2}
    body: '{}'
    fail_if_body_matches_regexp: ['error']
    fail_if_body_not_matches_regexp: ['ok', 'done']
    fail_if_header_matches: [{header: X-A, regexp: 'a', allow_missing: true}]
    fail_if_header_not_matches: [{header: X-B, regexp: 'b'}]
    body_size_limit: 1MB
    follow_redirects: false
    tls_config: {ca_file: ca.pem}
    basic_auth: {username: me, password: hunter2}
tls:
  prober: tcp
  tcp:
    tls: true
    tls_config: {ca_file: ca.pem, server_name: a.example}
tcp_connect:
  prober: tcp
  timeout: 1s
";
    let modules = modules(text).expect("modules");
    assert_eq!(modules.len(), 4);
    let web = &modules["web"];
    assert_eq!(web.timeout, Some(Duration::from_secs(3)));
    let Prober::Http(http) = &web.prober else { panic!("{web:?}") };
    assert_eq!(http.valid_status_codes, [200, 418]);
    assert_eq!(http.ip, IpChoice { preferred: IpProtocol::Ip4, falls_back: false });
    assert!(http.fail_if_not_ssl && !http.fail_if_ssl && http.looks_at_body());
    assert_eq!((http.method.as_str(), http.body.as_ref()), ("POST", b"{}".as_slice()));
    assert_eq!((http.headers.len(), http.body_bytes_max), (2, 1 << 20));
    assert_eq!(http.fail_if_body_not_matches_regexp.len(), 2);
    assert!(http.fail_if_header_matches[0].allow_missing);
    assert_eq!(http.fail_if_header_not_matches[0].header, "x-b");
    assert_eq!(http.client.follow_redirects, Some(false));
    let shown = format!("{http:?}");
    assert!(shown.contains("/etc/x/ca.pem") && !shown.contains("hunter2"), "{shown}");
    let Prober::Tcp(tcp) = &modules["tls"].prober else { panic!("{modules:?}") };
    assert!(tcp.tls && tcp.ip.falls_back);
    assert_eq!(tcp.tls_config.server_name.as_deref(), Some("a.example"));
    assert_eq!(modules["tcp_connect"].timeout, Some(Duration::from_secs(1)));
}

#[test]
fn what_is_wrong_is_named() {
    for (text, expected) in [
        ("a: {}", "prober is missing"),
        ("a: {prober: icmp}", "\"icmp\" is not supported"),
        ("a: {prober: tcp, tcp: {query_response: []}}", "query_response"),
        ("a: {prober: http, http: {compression: gzip}}", "compression"),
        ("a: {prober: http, icmp: {}}", "icmp"),
        ("a: {prober: http, http: {method: 'G T'}}", "method"),
        ("a: {prober: http, http: {valid_http_versions: [HTTP/2]}}", "HTTP/2.0"),
        ("a: {prober: http, http: {preferred_ip_protocol: ip5}}", "ip4, ip6"),
        ("a: {prober: http, http: {fail_if_body_matches_regexp: ['(']}}", "regular expression"),
        ("a: {prober: http, http: {proxy_url: 'http://a:1'}}", "proxy"),
        ("a: {prober: tcp, tcp: {tls_config: {cert_file: x}}}", "key_file"),
        ("a: {prober: tcp, timeout: x}", "timeout"),
    ] {
        let error = modules(text).expect_err(text);
        assert!(error.contains(expected) && error.contains("probe_modules"), "{text}: {error}");
    }
}

#[test]
fn a_probe_ends_before_its_scrape() {
    let seconds = Duration::from_secs_f64;
    for (timeout, scrape, expected) in
        [(None, 10.0, 9.5), (Some(5.0), 10.0, 5.0), (Some(10.0), 10.0, 9.5), (None, 1.0, 0.75)]
    {
        let text = timeout.map_or("a: {prober: tcp}".to_owned(), |timeout: f64| {
            format!("a: {{prober: tcp, timeout: {timeout}s}}")
        });
        let modules = modules(&text).expect("modules");
        assert_eq!(modules["a"].timeout_within(seconds(scrape)), seconds(expected), "{text}");
    }
}

//! Values that a section may have, and those that it may not have.

use super::*;
use tidepool_client::config::Credentials;
use tidepool_settings::Secret;

fn read(text: &str) -> Result<Vec<DestinationConfig>, yaml::Error> {
    yaml::load(text).and_then(|node| DestinationConfig::read_all(&node))
}

#[test]
fn all_of_a_destination_is_read() {
    let yaml = r"
- url: https://centre.example:8443/api/v1/write?tenant=a
  name: centre
  remote_timeout: 10s
  headers: {X-Scope-OrgID: edge}
  protobuf_message: io.prometheus.write.v2.Request
  send_exemplars: true
  send_native_histograms: true
  basic_auth: {username: me, password_file: /run/secret}
  tls_config: {ca_file: ca.pem, cert_file: a.pem, key_file: b.pem, server_name: other}
  write_relabel_configs:
    - {source_labels: [a, b], separator: '-', regex: 'x.*', action: drop}
  queue_config:
    {capacity: 5, max_shards: 4, min_shards: 2, max_samples_per_send: 3, batch_send_deadline: 1s,
     min_backoff: 10ms, max_backoff: 1m, retry_on_http_429: true, sample_age_limit: 2h}
  metadata_config: {send: false, send_interval: 5m, max_samples_per_send: 7}
  backlog: {order: newest_first, samples_per_second: 9, max_bytes: 1GiB, newest_first_after: 3m}
- url: http://127.0.0.1:9090/api/v1/write
";
    let all = read(yaml).expect("two destinations");
    let [one, other] = all.as_slice() else { panic!("{all:?}") };
    let shown = format!("{one:?}");
    for part in [
        "name: \"centre\"",
        "remote_timeout: 10s",
        "x-scope-orgid",
        "V2",
        "me:/run/secret",
        "ca.pem",
        "server_name: Some(\"other\")",
        "separator: \"-\"",
        "capacity: 5",
        "max_backoff: 60s",
        "retry_on_http_429: Always",
        "sample_age_limit: 7200s",
        "send: false",
        "NewestFirst",
        "max_bytes: 1073741824",
        "newest_first_after: 180s",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(other.queue.max_shards, 50);
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert!(one.is_same(&one.clone()) && !one.is_same(other));
    let mut changed = one.clone();
    let [username, password] = ["me", "other"].map(|text| Secret::Text(text.into()));
    changed.http.credentials = Credentials::Basic { username, password };
    assert!(!one.is_same(&changed));
    // What is shown of it is the same, and what it does is not.
    for (from, to) in [("tenant=a", "tenant=b"), ("X-Scope-OrgID: edge", "X-Scope-OrgID: b")] {
        let changed = &read(&yaml.replace(from, to)).expect("two destinations")[0];
        let shown = |config: &DestinationConfig| format!("{config:?}");
        assert_eq!(shown(one), shown(changed));
        assert!(!one.is_same(changed), "{to}");
    }
    let config =
        ForwardConfig { destinations: vec![one.clone(), one.clone()], ..Default::default() };
    assert!(config.check().is_err(), "one name twice");
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    for (text, said) in [
        ("- name: a\n", "1:3: remote_write[0]: url is missing"),
        ("- url: ftp://a/\n", "1:8: remote_write[0].url: ftp://a/ is no URL such as"),
        ("- url: http://a:b@c/\n", "1:8: remote_write[0].url: credentials belong into basic_auth"),
        ("- url: http://a/\n  name: a/b\n", "2:9: remote_write[0].name: expected up to 64 letters"),
        (
            "- url: http://a/\n  authorization: {type: Basic}\n",
            "2:18: remote_write[0].authorization: use basic_auth for the type Basic",
        ),
        (
            "- url: http://a/\n  sigv4: {region: a}\n",
            "2:10: remote_write[0].sigv4: not supported: give the URL of a proxy",
        ),
        ("- url: http://a/\n  azuread:\n", "2:3: remote_write[0].azuread: not supported"),
        ("- url: http://a/\n  google_iam: {}\n", "2:15: remote_write[0].google_iam: not supported"),
        (
            "- url: http://a/\n  round_robin_dns: true\n",
            "2:20: remote_write[0].round_robin_dns: not supported: each connection",
        ),
        (
            "- url: http://a/\n  headers:\n    Host: b\n",
            "3:5: remote_write[0].headers.Host: this header cannot be set here",
        ),
        (
            "- url: http://a/\n  headers:\n    X-A: \"b\\nsecret\"\n",
            "3:10: remote_write[0].headers.X-A: ",
        ),
        (
            "- url: http://a/\n  queue_config:\n    max_shards: 1\n    min_shards: 2\n",
            "3:5: remote_write[0].queue_config: min_shards is larger",
        ),
        (
            "- url: http://a/\n  queue_config: {min_backoff: 2s, max_backoff: 1s}\n",
            "2:17: remote_write[0].queue_config: max_backoff must not be less than min_backoff",
        ),
        (
            "- url: http://a/\n  queue_config: {max_shards: many}\n",
            "2:30: remote_write[0].queue_config.max_shards: expected a whole number from 1 to 10000",
        ),
        (
            "- url: http://a/\n  queue_config: {max_shards: '5'}\n",
            "2:30: remote_write[0].queue_config.max_shards: expected a whole number from 1 to 10000",
        ),
        (
            "- url: http://a/\n  queue_config: {max_backoff: 5}\n",
            "2:31: remote_write[0].queue_config.max_backoff: \"5\" is not a duration",
        ),
        (
            "- url: http://a/\n  send_exemplars: yEs\n",
            "2:19: remote_write[0].send_exemplars: expected true or false",
        ),
        (
            "- url: http://a/\n  backlog: {order: any}\n",
            "2:20: remote_write[0].backlog.order: expected one of oldest_first, newest_first",
        ),
        (
            "- url: http://a/?token=secret\n  write_relabel_configs:\n    - {regex: 'a', action: \
             labeldrop}\n    - {source_labels: [a], regex: '(', action: drop}\n",
            "4:7: remote_write[0].write_relabel_configs[1]: the regular expression \"(\"",
        ),
        (
            "- url: http://a/\n  write_relabel_configs: [{action: hashmod, target_label: a}]\n",
            "2:27: remote_write[0].write_relabel_configs[0]: a relabel rule with the action HashMod \
             needs a modulus",
        ),
        (
            "- url: http://a/\n  write_relabel_configs: [{action: keep, source_label: [a]}]\n",
            "2:42: remote_write[0].write_relabel_configs[0].source_label: there is no such key; \
             there are source_labels, ",
        ),
        (
            "- url: htp://a/?token=secret\n",
            "1:8: remote_write[0].url: htp://a/?token=xxxxx is no URL",
        ),
        ("- url: a?token=secret\n", "1:8: remote_write[0].url: this is no URL"),
        ("- url: http://a:0/\n", "1:8: remote_write[0].url: http://a:0/ is no URL such as"),
        (
            "- url: http://a/\n  tls_config: {cert_file: a}\n",
            "2:15: remote_write[0].tls_config: cert_file and key_file belong together",
        ),
        (
            "- url: http://a/\n  basic_auth: secret\n",
            "2:15: remote_write[0].basic_auth: expected lines of the form",
        ),
        (
            "- url: http://a/\n  basic_auth: {password: [secret]}\n",
            "2:26: remote_write[0].basic_auth.password: expected one plain value",
        ),
        (
            "- url: http://a/\n  basic_auth: {password: secret, password_file: a}\n",
            "2:15: remote_write[0].basic_auth: password and password_file: only one",
        ),
        (
            "- url: http://a/\n  basic_auth: {password: secret}\n  authorization: {credentials: \
             secret}\n",
            "1:3: remote_write[0]: basic_auth and authorization: only one",
        ),
        (
            "- url: http://a/\n  tls_confg: {}\n",
            "2:3: remote_write[0].tls_confg: there is no such key; there are url, name, ",
        ),
        (
            "- url: http://a/\n  follow_redirects: true\n",
            "1:3: remote_write[0]: follow_redirects: remote write follows none",
        ),
        ("url: http://a/\n", "1:1: remote_write: expected a list"),
    ] {
        let error = read(text).expect_err(text).to_string();
        assert!(error.starts_with(said) && !error.contains("secret"), "{text}: {error}");
    }
}

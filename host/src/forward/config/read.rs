//! The section `remote_write` of a configuration file, read.

use super::rule::rule;
use super::{
    BacklogConfig, BacklogOrder, Credentials, DestinationConfig, QueueConfig, RetryOn429, Secret,
    TlsConfig,
};
use crate::config::section::Section;
use crate::config::{Wrong, bytes, duration, duration_or_zero};
use crate::wasm::RemoteWriteVersion;
use hyper::header::{HeaderName, HeaderValue};
use saphyr::{MarkedYaml, YamlData};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr as _;

/// Headers that requests have anyway.
const OWN_HEADERS: [&str; 8] = [
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "user-agent",
    "x-prometheus-remote-write-version",
];

impl DestinationConfig {
    /// The list of destinations of a configuration file.
    pub fn read_all(name: &str, node: &MarkedYaml<'_>) -> Result<Vec<DestinationConfig>, Wrong> {
        let YamlData::Sequence(items) = &node.data else {
            return Err((node.span.start.line(), format!("{name}: a list is wanted")));
        };
        items.iter().map(|item| DestinationConfig::read(Section::of(name, item)?)).collect()
    }

    fn read(mut section: Section<'_, '_>) -> Result<DestinationConfig, Wrong> {
        let url = section.get("url", DestinationConfig::of_url)?;
        let mut config = url.ok_or_else(|| section.wrong("url is missing"))?;
        if let Some(name) = section.get("name", name)? {
            config.name = name;
        }
        set(&mut config.remote_timeout, section.get("remote_timeout", duration)?);
        for (name, value) in section.pairs("headers")? {
            config.headers.push(header(&name, &value).map_err(|what| section.wrong(what))?);
        }
        for item in section.list("write_relabel_configs")?.unwrap_or_default() {
            config.rules.push(rule(Section::of("write_relabel_configs", item)?)?);
        }
        set(&mut config.version, section.get("protobuf_message", version)?);
        set(&mut config.send_exemplars, section.flag("send_exemplars")?);
        set(&mut config.send_native_histograms, section.flag("send_native_histograms")?);
        set(&mut config.credentials, credentials(&mut section)?);
        if let Some(tls) = section.section("tls_config")? {
            config.tls = tls_config(tls)?;
        }
        if let Some(queue) = section.section("queue_config")? {
            config.queue = queue_config(queue)?;
        }
        if let Some(mut metadata) = section.section("metadata_config")? {
            let to = &mut config.metadata;
            set(&mut to.send, metadata.flag("send")?);
            set(&mut to.send_interval, metadata.get("send_interval", duration)?);
            let count = metadata.number("max_samples_per_send", 1..=1_000_000)?;
            set(&mut to.max_samples_per_send, count.map(|count| count as u32));
            metadata.end()?;
        }
        if let Some(backlog) = section.section("backlog")? {
            config.backlog = backlog_config(backlog)?;
        }
        section.end()?;
        Ok(config)
    }
}

fn set<T>(to: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *to = value;
    }
}

/// A name that can be part of a file's.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("up to 64 letters, digits, `-`, `_` and `.` are wanted".into()),
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("headers: {name} is not to be set here"));
    }
    let wrong = |what: &dyn fmt::Display| format!("headers: {name}: {what}");
    let header = HeaderName::from_str(name).map_err(|error| wrong(&error))?;
    let mut value = HeaderValue::from_str(value).map_err(|error| wrong(&error))?;
    // It may be a key of the receiver's: it is shown nowhere.
    value.set_sensitive(true);
    Ok((header, value))
}

fn version(text: &str) -> Result<RemoteWriteVersion, String> {
    match text {
        "prometheus.WriteRequest" => Ok(RemoteWriteVersion::V1),
        "io.prometheus.write.v2.Request" => Ok(RemoteWriteVersion::V2),
        _ => Err("prometheus.WriteRequest or io.prometheus.write.v2.Request is wanted".into()),
    }
}

fn secret(
    section: &mut Section<'_, '_>,
    key: &str,
    file_key: &str,
) -> Result<Option<Secret>, Wrong> {
    match (section.text(key)?, section.text(file_key)?) {
        (Some(_), Some(_)) => Err(section.wrong(format!("{key} and {file_key}: one is enough"))),
        (Some(text), None) => Ok(Some(Secret::Text(text))),
        (None, file) => Ok(file.map(|file| Secret::File(file.into()))),
    }
}

fn credentials(section: &mut Section<'_, '_>) -> Result<Option<Credentials>, Wrong> {
    let basic = section.section("basic_auth")?;
    let authorization = section.section("authorization")?;
    match (basic, authorization) {
        (Some(_), Some(_)) => {
            Err(section.wrong("basic_auth and authorization: one of them is wanted"))
        }
        (Some(mut basic), None) => {
            let username = basic.text("username")?.unwrap_or_default();
            let password = secret(&mut basic, "password", "password_file")?;
            basic.end()?;
            let password = password.unwrap_or(Secret::Text(String::new()));
            Ok(Some(Credentials::Basic { username, password }))
        }
        (None, Some(mut authorization)) => {
            let kind = authorization.text("type")?.unwrap_or_else(|| "Bearer".into());
            let credentials = secret(&mut authorization, "credentials", "credentials_file")?;
            let missing = || authorization.wrong("credentials are missing");
            let credentials = credentials.ok_or_else(missing)?;
            if kind.eq_ignore_ascii_case("basic") {
                return Err(authorization.wrong("use basic_auth for the type Basic"));
            }
            authorization.end()?;
            Ok(Some(Credentials::Authorization { kind, credentials }))
        }
        (None, None) => Ok(None),
    }
}

fn tls_config(mut section: Section<'_, '_>) -> Result<TlsConfig, Wrong> {
    let ca_file = section.text("ca_file")?.map(PathBuf::from);
    let client = match (section.text("cert_file")?, section.text("key_file")?) {
        (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
        (None, None) => None,
        _ => return Err(section.wrong("cert_file and key_file belong together")),
    };
    let server_name = section.text("server_name")?;
    section.end()?;
    Ok(TlsConfig { ca_file, client, server_name })
}

fn queue_config(mut section: Section<'_, '_>) -> Result<QueueConfig, Wrong> {
    let mut queue = QueueConfig::default();
    for (key, to, most) in [
        ("capacity", &mut queue.capacity, 10_000_000),
        ("max_shards", &mut queue.max_shards, 10_000),
        ("min_shards", &mut queue.min_shards, 10_000),
        ("max_samples_per_send", &mut queue.max_samples_per_send, 1_000_000),
    ] {
        set(to, section.number(key, 1..=most)?.map(|number| number as u32));
    }
    for (key, to) in [
        ("batch_send_deadline", &mut queue.batch_send_deadline),
        ("min_backoff", &mut queue.min_backoff),
        ("max_backoff", &mut queue.max_backoff),
    ] {
        set(to, section.get(key, duration)?);
    }
    let retries = section.flag("retry_on_http_429")?;
    let retries = retries.map(|yes| if yes { RetryOn429::Always } else { RetryOn429::Never });
    set(&mut queue.retry_on_http_429, retries);
    set(&mut queue.sample_age_limit, section.get("sample_age_limit", duration_or_zero)?);
    if queue.min_shards > queue.max_shards {
        return Err(section.wrong("min_shards is larger than max_shards"));
    }
    section.end()?;
    Ok(queue)
}

fn backlog_config(mut section: Section<'_, '_>) -> Result<BacklogConfig, Wrong> {
    let mut backlog = BacklogConfig::default();
    let order = section.get("order", |text| match text {
        "oldest_first" => Ok(BacklogOrder::OldestFirst),
        "newest_first" => Ok(BacklogOrder::NewestFirst),
        _ => Err("oldest_first or newest_first is wanted"),
    })?;
    set(&mut backlog.order, order);
    set(&mut backlog.samples_per_second, section.number("samples_per_second", 0..=u64::MAX)?);
    set(&mut backlog.max_bytes, section.get("max_bytes", bytes)?);
    set(&mut backlog.newest_first_after, section.get("newest_first_after", duration)?);
    section.end()?;
    Ok(backlog)
}

#[cfg(test)]
mod tests {
    use super::super::ForwardConfig;
    use super::*;
    use saphyr::YamlLoader;
    use saphyr_parser::Parser;

    fn read(yaml: &str) -> Result<Vec<DestinationConfig>, Wrong> {
        let mut loader = YamlLoader::<MarkedYaml<'_>>::default();
        loader.early_parse(false);
        Parser::new_from_str(yaml).load(&mut loader, true).expect("YAML");
        DestinationConfig::read_all("remote_write", &loader.into_documents()[0])
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
        let password = Secret::Text("other".into());
        changed.credentials = Credentials::Basic { username: "me".into(), password };
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
    fn what_cannot_be_is_refused_with_its_line() {
        for (yaml, line, what) in [
            (
                "- name: a
",
                1,
                "url is missing",
            ),
            (
                "- url: ftp://a/
",
                1,
                "no URL such as",
            ),
            (
                "- url: http://a:b@c/
",
                1,
                "basic_auth",
            ),
            (
                "- url: http://a/
  name: a/b
",
                2,
                "letters",
            ),
            (
                "- url: http://a/
  authorization: {}
",
                2,
                "credentials are missing",
            ),
            (
                "- url: http://a/
  headers:
    Host: b
",
                1,
                "not to be set",
            ),
            (
                "- url: http://a/
  queue_config:
    max_shards: 1
    min_shards: 2
",
                3,
                "larger",
            ),
            (
                "- url: http://a/
  backlog: {order: any}
",
                2,
                "oldest_first",
            ),
            (
                "- url: http://a/?token=secret
  write_relabel_configs:
    - {regex: 'a', action: labeldrop}
    - {source_labels: [a], regex: '(', action: drop}
",
                4,
                "regular expression \"(\"",
            ),
            (
                "- url: http://a/
  write_relabel_configs: [{action: hashmod, target_label: a}]
",
                2,
                "modulus",
            ),
            (
                "- url: htp://a/?token=secret
",
                1,
                "htp://a/?token=xxxxx is no URL",
            ),
            (
                "- url: a?token=secret
",
                1,
                "this is no URL",
            ),
            (
                "- url: http://a:0/
",
                1,
                "no URL such as",
            ),
            (
                "- url: http://a/
  tls_config: {cert_file: a}
",
                2,
                "belong together",
            ),
            (
                "url: http://a/
",
                1,
                "a list is wanted",
            ),
        ] {
            let (at, said) = read(yaml).expect_err(yaml);
            assert!(said.contains(what) && !said.contains("secret"), "{yaml}: {said}");
            assert_eq!(at, line, "{yaml}: {said}");
        }
    }
}

//! The keys of the section as the file has them, and their conversion.

use super::{
    CommandConfig, GroupBy, Grouping, HeartbeatConfig, NotifySection, RECEIVERS_MAX,
    ReceiverConfig, ReceiverKind, SecretUrl, TemplateText, WebhookConfig,
};
use crate::matchers::Matchers;
use hyper::Method;
use hyper::header::HeaderName;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::HashSet;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_settings::duration::{duration_or_zero, read_duration_if_any};
use tidepool_settings::{Secret, yaml};

const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(60);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);

/// A notification is as old as its delivery takes, and others wait meanwhile.
const TIMEOUT_MAX: Duration = Duration::from_secs(10 * 60);

const NAME_BYTES_MAX: usize = 64;
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;

/// The label by which each alert is a group of its own.
const EACH_ALERT: &str = "...";

/// Headers of the connection, and those that other settings set.
const OWN_HEADERS: [&str; 9] = [
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "transfer-encoding",
];

pub(super) fn read(node: &yaml::Node) -> Result<NotifySection, yaml::Error> {
    let Section { receivers } = yaml::read("notify", node)?;
    let mut names = HashSet::new();
    for (number, yaml::At { place, value }) in receivers.iter().enumerate() {
        if number >= RECEIVERS_MAX {
            let what = format!("there are at most {RECEIVERS_MAX} receivers");
            return Err(yaml::Error::new(*place, "notify.receivers", what));
        }
        if !names.insert(value.name.as_str()) {
            let key = format!("notify.receivers[{number}].name");
            let what = "another receiver has this name; give each its own";
            return Err(yaml::Error::new(*place, key, what));
        }
    }
    Ok(NotifySection { receivers: receivers.into_iter().map(|at| at.value).collect() })
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    receivers: Vec<yaml::At<ReceiverConfig>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiverSection {
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(default)]
    matchers: Option<Vec<MatchersText>>,
    #[serde(default)]
    send_resolved: Option<bool>,
    #[serde(default, deserialize_with = "group_by")]
    group_by: Option<GroupBy>,
    #[serde(default, deserialize_with = "duration_or_zero_if_any")]
    group_wait: Option<Duration>,
    #[serde(default, deserialize_with = "read_duration_if_any")]
    group_interval: Option<Duration>,
    #[serde(default, deserialize_with = "read_duration_if_any")]
    repeat_interval: Option<Duration>,
    #[serde(default, deserialize_with = "yaml::checked::<_, WebhookWhole, _>")]
    webhook: Option<WebhookConfig>,
    #[serde(default, deserialize_with = "yaml::checked::<_, CommandSection, _>")]
    command: Option<CommandConfig>,
    #[serde(default, deserialize_with = "yaml::checked::<_, HeartbeatWhole, _>")]
    heartbeat: Option<HeartbeatConfig>,
}

type WebhookWhole = yaml::With<HttpClientConfig, WebhookSection>;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WebhookSection {
    #[serde(deserialize_with = "url")]
    url: Option<Secret>,
    url_file: Option<PathBuf>,
    #[serde(deserialize_with = "webhook_method")]
    method: Option<Method>,
    #[serde(deserialize_with = "timeout")]
    timeout: Option<Duration>,
    #[serde(deserialize_with = "yaml::number::<_, _, 0, 1_000_000>")]
    max_alerts: usize,
    #[serde(deserialize_with = "yaml::pairs")]
    headers: Vec<(OwnHeader, TemplateText)>,
    body: Option<TemplateText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandSection {
    #[serde(deserialize_with = "absolute")]
    path: PathBuf,
    #[serde(default, deserialize_with = "arguments")]
    arguments: Vec<String>,
    #[serde(default, deserialize_with = "timeout")]
    timeout: Option<Duration>,
}

type HeartbeatWhole = yaml::With<HttpClientConfig, HeartbeatSection>;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HeartbeatSection {
    #[serde(deserialize_with = "url")]
    url: Option<Secret>,
    url_file: Option<PathBuf>,
    #[serde(deserialize_with = "heartbeat_method")]
    method: Option<Method>,
    #[serde(deserialize_with = "read_duration_if_any")]
    interval: Option<Duration>,
    #[serde(deserialize_with = "timeout")]
    timeout: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct MatchersText(Matchers);

/// Name of a header that users may set.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct OwnHeader(HeaderName);

impl<'de> Deserialize<'de> for ReceiverConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReceiverConfig, D::Error> {
        let section = ReceiverSection::deserialize(deserializer)?;
        ReceiverConfig::try_from(section).map_err(D::Error::custom)
    }
}

impl TryFrom<ReceiverSection> for ReceiverConfig {
    type Error = &'static str;

    fn try_from(section: ReceiverSection) -> Result<ReceiverConfig, &'static str> {
        let chooses = section.matchers.is_some() || section.send_resolved.is_some();
        let groups = section.group_by.is_some()
            || section.group_wait.is_some()
            || section.group_interval.is_some()
            || section.repeat_interval.is_some();
        let kind = match (section.webhook, section.command, section.heartbeat) {
            (Some(webhook), None, None) => ReceiverKind::Webhook(webhook),
            (None, Some(command), None) => ReceiverKind::Command(command),
            (None, None, Some(_)) if chooses || groups => {
                return Err(
                    "a heartbeat is sent while all is well, whatever alerts there are: it \
                            has only name and heartbeat",
                );
            }
            (None, None, Some(heartbeat)) => ReceiverKind::Heartbeat(heartbeat),
            _ => return Err("give exactly one of webhook, command and heartbeat"),
        };
        let defaults = Grouping::default();
        let matchers = section.matchers.unwrap_or_default();
        Ok(ReceiverConfig {
            name: section.name,
            matchers: matchers.into_iter().map(|MatchersText(matchers)| matchers).collect(),
            send_resolved: section.send_resolved.unwrap_or(true),
            grouping: Grouping {
                by: section.group_by.unwrap_or(defaults.by),
                wait: section.group_wait.unwrap_or(defaults.wait),
                interval: section.group_interval.unwrap_or(defaults.interval),
                repeat: section.repeat_interval.unwrap_or(defaults.repeat),
            },
            kind,
        })
    }
}

impl TryFrom<WebhookWhole> for WebhookConfig {
    type Error = &'static str;

    fn try_from(whole: WebhookWhole) -> Result<WebhookConfig, &'static str> {
        let yaml::With { part: http, rest: section } = whole;
        let headers = section.headers.into_iter().map(|(OwnHeader(name), text)| (name, text));
        Ok(WebhookConfig {
            url: one_url(section.url, section.url_file)?,
            method: section.method.unwrap_or(Method::POST),
            timeout: section.timeout.unwrap_or(WEBHOOK_TIMEOUT),
            alerts_max: section.max_alerts,
            headers: headers.collect(),
            body: section.body,
            http: without_redirects(http),
        })
    }
}

impl TryFrom<CommandSection> for CommandConfig {
    type Error = &'static str;

    fn try_from(section: CommandSection) -> Result<CommandConfig, &'static str> {
        let CommandSection { path, arguments, timeout } = section;
        Ok(CommandConfig { path, arguments, timeout: timeout.unwrap_or(COMMAND_TIMEOUT) })
    }
}

impl TryFrom<HeartbeatWhole> for HeartbeatConfig {
    type Error = &'static str;

    fn try_from(whole: HeartbeatWhole) -> Result<HeartbeatConfig, &'static str> {
        let yaml::With { part: http, rest: section } = whole;
        Ok(HeartbeatConfig {
            url: one_url(section.url, section.url_file)?,
            method: section.method.unwrap_or(Method::GET),
            interval: section.interval.unwrap_or(HEARTBEAT_INTERVAL),
            timeout: section.timeout.unwrap_or(HEARTBEAT_TIMEOUT),
            http: without_redirects(http),
        })
    }
}

impl TryFrom<String> for MatchersText {
    type Error = crate::matchers::MatchersError;

    fn try_from(text: String) -> Result<MatchersText, Self::Error> {
        Matchers::parse(&text).map(MatchersText)
    }
}

impl TryFrom<String> for OwnHeader {
    type Error = &'static str;

    fn try_from(name: String) -> Result<OwnHeader, &'static str> {
        let name = HeaderName::from_str(&name).map_err(|_| "expected the name of a header")?;
        match OWN_HEADERS.contains(&name.as_str()) {
            true => Err("this header cannot be set here: the connection or authorization sets it"),
            false => Ok(OwnHeader(name)),
        }
    }
}

/// Follows redirects only if the configuration says so: a login page or the gate of a network would
/// otherwise answer in the receiver's place, and alerts would count as delivered.
fn without_redirects(mut http: HttpClientConfig) -> HttpClientConfig {
    http.follow_redirects.get_or_insert(false);
    http
}

fn one_url(text: Option<Secret>, file: Option<PathBuf>) -> Result<SecretUrl, &'static str> {
    const ONE: &str = "give either url or url_file";
    match (text, file) {
        (Some(secret), None) => SecretUrl::of(secret).map_err(|_| "url is no URL"),
        (None, Some(file)) => SecretUrl::of(Secret::File(file)).map_err(|_| ONE),
        _ => Err(ONE),
    }
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    yaml::parsed(deserializer, |text| {
        SecretUrl::parse(text).map(|_| Some(Secret::Text(text.to_owned())))
    })
}

/// Reads a name that can be part of a file's name.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    yaml::parsed(deserializer, |text| {
        let is_name = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_plain);
        match is_name && !matches!(text, "." | "..") {
            true => Ok(text.to_owned()),
            false => Err("expected up to 64 letters, digits, `-`, `_` and `.`"),
        }
    })
}

fn group_by<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<GroupBy>, D::Error> {
    let Some(labels) = Option::<Vec<String>>::deserialize(deserializer)? else { return Ok(None) };
    let mut known = HashSet::new();
    if !labels.iter().all(|label| !label.is_empty() && known.insert(label.as_str())) {
        return Err(D::Error::custom("expected names of labels, each once"));
    }
    match labels.iter().any(|label| label == EACH_ALERT) {
        false => Ok(Some(GroupBy::Labels(labels))),
        true if labels.len() == 1 => Ok(Some(GroupBy::EachAlert)),
        true => Err(D::Error::custom("'...' makes each alert a group, so that it stands alone")),
    }
}

fn duration_or_zero_if_any<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| duration_or_zero(&text)).transpose().map_err(D::Error::custom)
}

fn timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    match read_duration_if_any(deserializer)? {
        Some(timeout) if timeout > TIMEOUT_MAX => Err(D::Error::custom("expected at most 10m")),
        timeout => Ok(timeout),
    }
}

fn webhook_method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Method>, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "POST" => Ok(Some(Method::POST)),
        "PUT" => Ok(Some(Method::PUT)),
        _ => Err("expected POST or PUT"),
    })
}

fn heartbeat_method<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Method>, D::Error> {
    yaml::parsed(deserializer, |text| match text {
        "GET" => Ok(Some(Method::GET)),
        "HEAD" => Ok(Some(Method::HEAD)),
        "POST" => Ok(Some(Method::POST)),
        _ => Err("expected GET, HEAD or POST"),
    })
}

fn absolute<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    yaml::parsed(deserializer, |text| {
        let path = PathBuf::from(text);
        match path.is_absolute() && !text.contains('\0') {
            true => Ok(path),
            false => Err("expected an absolute path, since no shell looks for the program"),
        }
    })
}

fn arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let arguments = Vec::<String>::deserialize(deserializer)?;
    if arguments.iter().any(|argument| argument.contains('\0')) {
        return Err(D::Error::custom("an argument cannot have a NUL"));
    }
    match arguments.iter().map(String::len).sum::<usize>() > ARGUMENTS_BYTES_MAX {
        true => Err(D::Error::custom("the arguments have more than 65536 bytes")),
        false => Ok(arguments),
    }
}

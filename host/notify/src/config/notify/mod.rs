//! The section `notify`: who is told of alerts, and how.
//!
//! ```yaml
//! notify:
//!   receivers:
//!   - name: phone
//!     matchers: ['severity="page"']
//!     group_by: [alertname]
//!     webhook:
//!       url_file: ntfy-url
//!       headers: {X-Title: '{{ .CommonLabels.alertname }}'}
//!       body: '{{ .CommonAnnotations.summary }}'
//! ```
//!
//! Names and defaults are those of Alertmanager where it has them (prometheus/alertmanager 0.34,
//! `config`). Mistakes are found when the file is read, templates and matchers included.

mod section;
mod template_text;
mod url;

pub use template_text::TemplateText;
pub use url::SecretUrl;

use crate::matchers::Matchers;
use hyper::Method;
use hyper::header::HeaderName;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_rules::labels::LabelSet;
use tidepool_settings::yaml;

/// Each receiver has a task, and a file with its position.
pub const RECEIVERS_MAX: usize = 64;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotifySection {
    pub receivers: Vec<ReceiverConfig>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverConfig {
    /// Names a file, too.
    pub name: String,
    /// All of them must match.
    pub matchers: Vec<Matchers>,
    pub send_resolved: bool,
    pub grouping: Grouping,
    pub kind: ReceiverKind,
}

/// Which alerts share a notification, and when it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping {
    pub by: GroupBy,
    /// Wait before the first notification of a group.
    pub wait: Duration,
    /// Wait before a notification of alerts that joined a group.
    pub interval: Duration,
    /// Wait before a notification is repeated.
    pub repeat: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// Alerts with the same values of these labels; without labels all alerts are one group.
    Labels(Vec<String>),
    /// Each alert is a group of its own.
    EachAlert,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ReceiverKind {
    Webhook(WebhookConfig),
    Command(CommandConfig),
    Heartbeat(HeartbeatConfig),
}

#[derive(Clone, Debug, PartialEq)]
pub struct WebhookConfig {
    pub url: SecretUrl,
    /// POST or PUT.
    pub method: Method,
    /// Maximum duration of a request.
    pub timeout: Duration,
    /// Maximum number of alerts in a request; 0 means no maximum.
    pub alerts_max: usize,
    pub headers: Vec<(HeaderName, TemplateText)>,
    /// `None`: the JSON of Alertmanager's webhooks.
    pub body: Option<TemplateText>,
    pub http: HttpClientConfig,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandConfig {
    pub path: PathBuf,
    pub arguments: Vec<String>,
    /// Maximum duration of a run.
    pub timeout: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HeartbeatConfig {
    pub url: SecretUrl,
    /// GET, HEAD or POST.
    pub method: Method,
    pub interval: Duration,
    /// Maximum duration of a request.
    pub timeout: Duration,
    pub http: HttpClientConfig,
}

impl Default for Grouping {
    fn default() -> Grouping {
        Grouping {
            by: GroupBy::Labels(Vec::new()),
            wait: Duration::from_secs(30),
            interval: Duration::from_secs(5 * 60),
            repeat: Duration::from_secs(4 * 60 * 60),
        }
    }
}

impl NotifySection {
    /// Reads the value of the key `notify`.
    pub fn read(node: &yaml::Node) -> Result<NotifySection, yaml::Error> {
        section::read(node)
    }

    /// Resolves relative paths against the directory of the configuration file.
    pub fn set_directory(&mut self, directory: &Path) {
        for receiver in &mut self.receivers {
            let (url, http) = match &mut receiver.kind {
                ReceiverKind::Webhook(webhook) => (&mut webhook.url, &mut webhook.http),
                ReceiverKind::Heartbeat(heartbeat) => (&mut heartbeat.url, &mut heartbeat.http),
                ReceiverKind::Command(_) => continue,
            };
            url.set_directory(directory);
            http.set_directory(directory);
        }
    }
}

impl ReceiverConfig {
    pub fn matches(&self, labels: &LabelSet) -> bool {
        self.matchers.iter().all(|matchers| matchers.matches(labels))
    }

    /// Returns a text that changes with any setting except secrets, and shows no secret.
    pub fn fingerprint(&self) -> String {
        format!("{}:{:08x}", self.name, crc32c::crc32c(format!("{self:?}").as_bytes()))
    }
}

#[cfg(test)]
mod tests;

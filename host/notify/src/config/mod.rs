//! The sections of the configuration file by which alerts reach people, and what flags add.

pub mod alerting;
pub mod notify;

pub use alerting::AlertingSection;
pub use notify::{
    CommandConfig, GroupBy, Grouping, HeartbeatConfig, NotifySection, ReceiverConfig, ReceiverKind,
    SecretUrl, TemplateText, WebhookConfig,
};

use crate::journal::JournalBounds;

/// Settings of notification.
#[derive(Clone, Debug, Default)]
pub struct NotifyConfig {
    pub notify: NotifySection,
    pub alerting: AlertingSection,
    /// Added to alerts for Alertmanagers.
    pub external_labels: Vec<(String, String)>,
    /// URL under which users reach the server.
    pub external_url: String,
    pub journal: JournalBounds,
    pub silences_max: usize,
    /// Maximum number of alerts in the queue of an Alertmanager.
    pub queue_capacity: usize,
    /// Maximum number of alerts in a request to an Alertmanager.
    pub batch_size: usize,
    /// Whether a stop sends what is queued for Alertmanagers.
    pub drains_on_shutdown: bool,
}

//! Sends alerts to Alertmanagers, as Prometheus does, and what it misses of them later.
//!
//! ```text
//! notices of an evaluation ─▶ external labels, rules for all ─▶ Set: an item of `alertmanagers`
//!                                                                │  discovery, rules of the item
//!                                       a queue for each URL ◀───┘
//!                                         │ live
//! journal ─▶ Pump: ends of alerts that ─▶ Endpoint: a task ──▶ POST /api/v2/alerts
//!            were not accepted live         └─▶ Peer: figures, what was accepted
//! ```
//!
//! Begin with [`Alertmanagers`]. `alert` is what is sent, `discovered` makes URLs of targets,
//! `queue`, `client` and `endpoint` send; `ledger` decides which ends are missing, `pump` sends
//! them, `position` remembers that.
//!
//! Alerts that fire are sent again each minute, so that a batch that is not accepted is dropped, as
//! upstream does. Only their ends need the journal, after an outage.
//!
//! Invariants: [`Alertmanagers::send`] never waits; one request at a time is under way to each URL
//! of an item; an end is sent from the journal only if the same alert has not begun again.
//!
//! Source: `notifier/` of prometheus/prometheus.

mod alert;
mod client;
mod discovered;
mod endpoint;
pub mod flags;
mod journal;
mod ledger;
mod peer;
mod position;
mod pump;
mod queue;
mod set;
#[cfg(test)]
mod tests;

pub use flags::AlertmanagerFlags;
pub use journal::Events;
pub use peer::{AlertmanagerStatus, Failure};
pub use position::number_max;

use crate::config::alerting::AlertingSection;
use alert::{Alert, Relabeling};
use peer::{Peers, locked};
use pump::Pace;
use set::Set;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tidepool_client::ClientError;
use tidepool_disk::fs::Disk;
use tidepool_relabel::RuleError;
use tidepool_rules::alert::Notice;
use tidepool_rules::file::Labels;
use tidepool_scrape::discovery::{DiscoveryError, DiscoveryOptions};
use tidepool_telemetry::MetricsText;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use url::form_urlencoded;

pub struct AlertmanagersOptions {
    /// Runtime that tasks are spawned on.
    pub runtime: Handle,
    pub discovery: DiscoveryOptions,
    /// Without it, ends of alerts are sent live only.
    pub events: Option<Arc<dyn Events>>,
    pub disk: Arc<dyn Disk>,
    /// Directory of notifications, which positions are in.
    pub dir: PathBuf,
    /// Maximum number of alerts in a queue.
    pub queue_capacity: usize,
    /// Maximum number of alerts in a request.
    pub batch_size: usize,
    /// Whether a stop sends what is queued.
    pub drains_on_shutdown: bool,
}

/// Reasons why a configuration cannot be used. Items are counted from 0.
#[derive(Debug, thiserror::Error)]
pub enum AlertmanagerError {
    #[error("alerting.alert_relabel_configs: {0}")]
    AlertRule(#[source] RuleError),
    #[error("alerting.alertmanagers[{number}]: {source}")]
    Rule { number: usize, source: RuleError },
    #[error("alerting.alertmanagers[{number}]: {source}")]
    Client { number: usize, source: ClientError },
    #[error("alerting.alertmanagers[{number}]: {source}")]
    Discovery { number: usize, source: DiscoveryError },
}

/// URLs of Alertmanagers, as `/api/v1/alertmanagers` shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertmanagerUrls {
    pub active: Vec<String>,
    /// Found, but dropped by a relabel rule.
    pub dropped: Vec<String>,
}

/// All configured Alertmanagers; clones are the same.
#[derive(Clone)]
pub struct Alertmanagers(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    sets: Mutex<Sets>,
    /// Held while a configuration is applied, so that the next waits. Nothing else does.
    applying: Mutex<()>,
}

#[derive(Default)]
struct Sets {
    all: Vec<Arc<Set>>,
    has_stopped: bool,
}

/// What all items of the configuration share.
struct Shared {
    options: AlertmanagersOptions,
    pace: Pace,
    peers: Peers,
    /// External labels, and rules for the alerts to all Alertmanagers.
    relabeling: Mutex<Arc<Relabeling>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Shared {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = locked(&self.tasks);
        // Tasks that have ended would stay in the set otherwise.
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.options.runtime);
    }
}

impl Alertmanagers {
    /// Creates it without any Alertmanager.
    pub fn new(options: AlertmanagersOptions) -> Alertmanagers {
        Alertmanagers::with_pace(options, Pace::default())
    }

    fn with_pace(options: AlertmanagersOptions, pace: Pace) -> Alertmanagers {
        let shared = Shared {
            options,
            pace,
            peers: Peers::default(),
            relabeling: Mutex::default(),
            tasks: Mutex::default(),
        };
        let (sets, applying) = (Mutex::default(), Mutex::default());
        Alertmanagers(Arc::new(Inner { shared: Arc::new(shared), sets, applying }))
    }

    /// Blocking: reads files. Applies a configuration as a whole, or nothing of it. Items that are
    /// unchanged keep their Alertmanagers and queues; the queues of others are drained in the
    /// background.
    pub fn apply(
        &self,
        section: &AlertingSection,
        external_labels: &Labels,
    ) -> Result<(), AlertmanagerError> {
        let inner = &*self.0;
        let _applying = locked(&inner.applying);
        let relabeling = Relabeling::new(external_labels.clone(), &section.alert_relabel_configs)
            .map_err(AlertmanagerError::AlertRule)?;
        let _entered = inner.shared.options.runtime.enter();
        let mut old = locked(&inner.sets).all.clone();
        let (mut sets, mut new) = (Vec::new(), Vec::new());
        for (number, config) in section.alertmanagers.iter().enumerate() {
            // Each old item is used once: two equal ones have two queues.
            match old.iter().position(|set| set.is_of(config)) {
                Some(at) => sets.push(old.swap_remove(at)),
                None => {
                    let (set, discovery) = Set::open(&inner.shared, number, config)?;
                    sets.push(Arc::clone(&set));
                    new.push((set, discovery));
                }
            }
        }
        let mut current = locked(&inner.sets);
        if current.has_stopped {
            return Ok(());
        }
        *locked(&inner.shared.relabeling) = Arc::new(relabeling);
        new.into_iter().for_each(|(set, discovery)| set.start(discovery));
        current.all = sets;
        drop(current);
        old.iter().for_each(|set| set.stop());
        Ok(())
    }

    /// Queues alerts of one rule for all Alertmanagers. Never waits. `generator_url` is what
    /// [`generator_url`] returns for the rule.
    pub fn send(&self, notices: &[Notice], generator_url: &str) {
        let sets = locked(&self.0.sets).all.clone();
        if sets.is_empty() || notices.is_empty() {
            return;
        }
        let generator_url = Arc::from(generator_url);
        let relabeling = Arc::clone(&*locked(&self.0.shared.relabeling));
        let alerts = notices.iter().map(|notice| Alert::of_notice(notice, &generator_url));
        let alerts: Vec<Alert> = alerts.filter_map(|alert| relabeling.apply(alert)).collect();
        sets.iter().for_each(|set| set.send(&alerts));
    }

    /// Ends all sending. Queues are drained before if that is configured, which takes half a minute
    /// and the timeout of a request at most. For use after the last evaluation.
    pub async fn stop(&self) {
        let stopped = Sets { all: Vec::new(), has_stopped: true };
        let sets = std::mem::replace(&mut *locked(&self.0.sets), stopped);
        sets.all.iter().for_each(|set| set.stop());
        let mut tasks = std::mem::take(&mut *locked(&self.0.shared.tasks));
        while tasks.join_next().await.is_some() {}
    }

    pub fn urls(&self) -> AlertmanagerUrls {
        let mut all = AlertmanagerUrls::default();
        for set in &locked(&self.0.sets).all {
            let (active, dropped) = set.urls();
            all.active.extend(active);
            all.dropped.extend(dropped);
        }
        all
    }

    /// State of each Alertmanager that is in use, by URL.
    pub fn statuses(&self) -> Vec<AlertmanagerStatus> {
        self.0.shared.peers.all().iter().map(|peer| peer.status()).collect()
    }

    /// Writes the metrics.
    pub fn show(&self, text: &mut MetricsText) {
        let shared = &self.0.shared;
        shared.peers.show(text);
        text.gauge(
            "prometheus_notifications_queue_capacity",
            "The capacity of the alert notifications queue.",
            shared.options.queue_capacity,
        );
        text.gauge(
            "prometheus_notifications_alertmanagers_discovered",
            "The number of alertmanagers discovered and active.",
            self.urls().active.len(),
        );
    }
}

/// Returns the URL of a page that shows the expression of a rule as a table (upstream:
/// `TableLinkForExpression`).
pub fn generator_url(external_url: &str, expression: &str) -> String {
    let escaped: String = form_urlencoded::byte_serialize(expression.as_bytes()).collect();
    // Two characters that Go treats in another way than browsers.
    let escaped = escaped.replace('*', "%2A").replace("%7E", "~");
    format!("{}/graph?g0.expr={escaped}&g0.tab=1", external_url.trim_end_matches('/'))
}

//! Tests that send alerts to a server over a socket.

mod journal;
mod ledger;
mod live;
mod server;

use super::alert::{Alert, AlertKey};
use super::pump::Pace;
use super::{Alertmanagers, AlertmanagersOptions, Events};
use crate::config::alerting::AlertingSection;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidepool_disk::fs::RealDisk;
use tidepool_rules::alert::Notice;
use tidepool_rules::file::Labels;
use tidepool_rules::labels::LabelSet;
use tidepool_scrape::discovery::DiscoveryOptions;
use tidepool_settings::yaml;
use tidepool_telemetry::MetricsText;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// Longest wait for a cause; a test that waits that long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits of a pump that tests need not wait for.
const QUICK: Pace = Pace {
    grace: Duration::from_millis(20),
    retry_min: Duration::from_millis(5),
    retry_max: Duration::from_millis(20),
    write: Duration::from_millis(1),
    rewrite: Duration::from_millis(1),
};

/// A firing alert of this name.
pub fn alert(name: &str) -> Alert {
    Alert::of_notice(&notice(name), &"".into())
}

/// A notice of a firing alert of this name.
fn notice(name: &str) -> Notice {
    Notice {
        labels: LabelSet::new([("alertname", name)]),
        annotations: Arc::new(Labels::from([("summary".to_owned(), format!("of {name}"))])),
        starts_at_ms: 1_700_000_000_000,
        ends_at_ms: 1_700_000_240_000,
        is_resolved: false,
    }
}

fn notices(names: &[&str]) -> Vec<Notice> {
    names.iter().map(|name| notice(name)).collect()
}

fn key(name: &str) -> AlertKey {
    AlertKey::of(&notice(name).labels)
}

fn section(text: &str) -> AlertingSection {
    let read = yaml::load(text).and_then(|node| AlertingSection::read(&node));
    read.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// One item with an Alertmanager at each address, and more keys.
fn at(addresses: &[String], more: &str) -> AlertingSection {
    section(&format!("alertmanagers: [{{static_configs: [{{targets: {addresses:?}}}]{more}}}]"))
}

struct Setup<'a> {
    dir: &'a Path,
    events: Option<Arc<dyn Events>>,
    queue_capacity: usize,
    batch_size: usize,
    drains: bool,
}

impl Setup<'_> {
    fn of(dir: &Path) -> Setup<'_> {
        Setup { dir, events: None, queue_capacity: 100, batch_size: 10, drains: true }
    }

    fn without_any(self) -> Alertmanagers {
        let options = AlertmanagersOptions {
            runtime: Handle::current(),
            discovery: DiscoveryOptions::default(),
            events: self.events,
            disk: Arc::new(RealDisk),
            dir: self.dir.to_owned(),
            queue_capacity: self.queue_capacity,
            batch_size: self.batch_size,
            drains_on_shutdown: self.drains,
        };
        Alertmanagers::with_pace(options, QUICK)
    }

    fn start(self, section: &AlertingSection) -> Alertmanagers {
        let alertmanagers = self.without_any();
        apply(&alertmanagers, section);
        alertmanagers
    }
}

fn apply(alertmanagers: &Alertmanagers, section: &AlertingSection) {
    alertmanagers.apply(section, &Labels::new()).expect("a configuration");
}

/// Waits until a condition holds.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// The value of a metric with this name and, if there are several, this URL.
fn metric(alertmanagers: &Alertmanagers, name: &str, url: &str) -> Option<f64> {
    let text = shown(alertmanagers);
    let of =
        |line: &str| line.strip_prefix(&format!("{name}{{alertmanager=\"{url}\"}} "))?.parse().ok();
    text.lines().find_map(of)
}

fn shown(alertmanagers: &Alertmanagers) -> String {
    let mut text = MetricsText::default();
    alertmanagers.show(&mut text);
    text.finish()
}

/// Names of the alerts of a request.
fn names(body: &Value) -> Vec<&str> {
    let alerts = body.as_array().expect("a list");
    alerts.iter().map(|alert| alert["labels"]["alertname"].as_str().expect("a name")).collect()
}

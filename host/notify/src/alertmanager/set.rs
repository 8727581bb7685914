//! The Alertmanagers of one item of the configuration, as discovery finds them.
//!
//! Source: `notifier/alertmanagerset.go` of prometheus/prometheus.

use super::alert::{Alert, Relabeling};
use super::client::PostClient;
use super::discovered::Finder;
use super::endpoint::Endpoint;
use super::peer::locked;
use super::position::PositionFile;
use super::pump::Pump;
use super::{AlertmanagerError, Shared};
use crate::config::alerting::AlertmanagerConfig;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tidepool_rules::file::Labels;
use tidepool_scrape::discovery::{Discovery, Groups};
use tokio::sync::watch;

pub(super) struct Set {
    shared: Arc<Shared>,
    config: AlertmanagerConfig,
    finder: Finder,
    client: PostClient,
    relabeling: Arc<Relabeling>,
    members: Mutex<Members>,
    has_stopped: watch::Sender<bool>,
}

#[derive(Default)]
struct Members {
    endpoints: BTreeMap<String, Arc<Endpoint>>,
    /// URLs in the order of discovery.
    active: Vec<String>,
    dropped: Vec<String>,
    has_stopped: bool,
}

impl Set {
    /// Blocking. Needs the context of the runtime. Sends nothing, and starts only discovery.
    pub fn open(
        shared: &Arc<Shared>,
        number: usize,
        config: &AlertmanagerConfig,
    ) -> Result<(Arc<Set>, Discovery), AlertmanagerError> {
        let wrong = |source| AlertmanagerError::Rule { number, source };
        let relabeling = Relabeling::new(Labels::new(), &config.alert_relabel_configs);
        let set = Set {
            shared: Arc::clone(shared),
            config: config.clone(),
            finder: Finder::new(config).map_err(wrong)?,
            client: PostClient::open(config)
                .map_err(|source| AlertmanagerError::Client { number, source })?,
            relabeling: Arc::new(relabeling.map_err(wrong)?),
            members: Mutex::default(),
            has_stopped: watch::channel(false).0,
        };
        let discovery = Discovery::start(&config.discovery, &shared.options.discovery)
            .map_err(|source| AlertmanagerError::Discovery { number, source })?;
        Ok((Arc::new(set), discovery))
    }

    /// Starts to send to the Alertmanagers that are known, and follows discovery.
    pub fn start(self: &Arc<Set>, discovery: Discovery) {
        let mut lists = discovery.groups();
        self.sync(&lists.borrow_and_update());
        let (set, mut has_stopped) = (Arc::clone(self), self.has_stopped.subscribe());
        self.shared.spawn(async move {
            // Owned by the task: dropping it ends discovery.
            let _discovery = discovery;
            while !*has_stopped.borrow_and_update() {
                tokio::select! {
                    _ = has_stopped.changed() => {}
                    changed = lists.changed() => match changed {
                        Ok(()) => set.sync(&lists.borrow_and_update().clone()),
                        // All lists are static. What is held here is dropped at the stop.
                        Err(_) => drop(has_stopped.changed().await),
                    },
                }
            }
        });
    }

    pub fn is_of(&self, config: &AlertmanagerConfig) -> bool {
        self.config == *config
    }

    /// Queues alerts for all Alertmanagers.
    pub fn send(&self, alerts: &[Alert]) {
        let members = locked(&self.members);
        if members.endpoints.is_empty() {
            return;
        }
        let alerts = alerts.iter().cloned();
        let alerts: Vec<Alert> = alerts.filter_map(|alert| self.relabeling.apply(alert)).collect();
        if !alerts.is_empty() {
            members.endpoints.values().for_each(|endpoint| endpoint.push(alerts.clone()));
        }
    }

    /// URLs of Alertmanagers that alerts are sent to, and of those that a rule drops.
    pub fn urls(&self) -> (Vec<String>, Vec<String>) {
        let members = locked(&self.members);
        (members.active.clone(), members.dropped.clone())
    }

    /// Ends discovery and all sending; queues are drained by their tasks.
    pub fn stop(&self) {
        self.has_stopped.send_replace(true);
        let mut members = locked(&self.members);
        members.endpoints.values().for_each(|endpoint| endpoint.stop());
        *members = Members { has_stopped: true, ..Members::default() };
    }

    /// Starts what is new, and ends what is not there any more.
    fn sync(&self, lists: &Groups) {
        let found = self.finder.find(lists);
        let mut members = locked(&self.members);
        if members.has_stopped {
            return;
        }
        let mut old = std::mem::take(&mut members.endpoints);
        for url in &found.active {
            let endpoint = old.remove(url).unwrap_or_else(|| self.started(url));
            members.endpoints.insert(url.clone(), endpoint);
        }
        old.values().for_each(|endpoint| endpoint.stop());
        (members.active, members.dropped) = (found.active, found.dropped);
    }

    fn started(&self, url: &str) -> Arc<Endpoint> {
        let options = &self.shared.options;
        let peer = self.shared.peers.get(url, || {
            let events = Arc::clone(options.events.as_ref()?);
            let file = PositionFile::new(Arc::clone(&options.disk), &options.dir, url);
            Some(Pump::new(events, file, self.shared.pace))
        });
        let (client, relabeling) = (self.client.clone(), Arc::clone(&self.relabeling));
        let shared = Arc::clone(&self.shared);
        let endpoint = Arc::new(Endpoint::new(shared, peer, client, relabeling));
        self.shared.spawn(Arc::clone(&endpoint).run());
        endpoint
    }
}

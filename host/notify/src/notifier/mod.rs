//! The handle of notification: what evaluation tells, and what server and program ask for.
//!
//! - `mod`: start, reload and stop, and what evaluation calls.
//! - `running`: a task for each receiver.
//! - `health`: whether heartbeats may be sent.
//! - `status`: what API, page and metrics show.

mod health;
mod running;
mod status;

pub use status::{NotifierFigures, ReceiverStatus};

use crate::alertmanager::{
    AlertmanagerError, AlertmanagerUrls, Alertmanagers, AlertmanagersOptions, Events,
    generator_url, number_max,
};
use crate::config::NotifyConfig;
use crate::dispatch::{Links, Positions};
use crate::event::{Entry, Event, Origin};
use crate::history::{HistoryPage, HistoryRequest, page};
use crate::journal::{Item, Journal, JournalThread};
use crate::observe::{OpenAlerts, origin};
use crate::receivers::{Answered, DeliveryError};
use crate::silences::{Clock, Silences};
use health::Beats;
use running::{Node, Receivers};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tidepool_client::ClientError;
use tidepool_disk::fs::Disk;
use tidepool_lifecycle::shutdown::{Shutdown, ShutdownTrigger};
use tidepool_rules::alert::{Notice, Told};
use tidepool_rules::group::GroupSnapshot;
use tidepool_rules::labels::{ALERT_NAME, LabelSet};
use tidepool_scrape::discovery::DiscoveryOptions;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

/// Directory of positions in that of alerts.
const RECEIVERS_DIR: &str = "receivers";

const TIDY_EVERY: Duration = Duration::from_secs(3600);

/// What notification needs of the program.
pub struct NotifierParts {
    pub disk: Arc<dyn Disk>,
    /// Directory of alerts.
    pub dir: PathBuf,
    pub clock: Clock,
    /// Time of the newest sample in the store.
    pub newest_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    pub discovery: DiscoveryOptions,
    pub runtime: Handle,
}

#[derive(Debug, thiserror::Error)]
pub enum NotifierError {
    #[error(transparent)]
    Alertmanager(#[from] AlertmanagerError),
    #[error("notify.receivers: {name}: {source}")]
    Receiver { name: String, source: ClientError },
    #[error("notification could not start: {0}")]
    Panicked(String),
}

/// Why a receiver could not be tested.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverTestError {
    #[error("there is no receiver {0:?} in the section notify")]
    Unknown(String),
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
}

/// All of notification; clones share it.
#[derive(Clone)]
pub struct Notifier(Arc<Shared>);

struct Shared {
    clock: Clock,
    journal: Journal,
    open: Mutex<OpenAlerts>,
    silences: Silences,
    alertmanagers: Alertmanagers,
    receivers: Receivers,
    beats: Arc<Beats>,
    links: Arc<RuleLinks>,
    /// Ends the upkeep of silences and positions.
    upkeep: Mutex<Option<ShutdownTrigger>>,
}

/// Links to the expressions of rules, by group and alert name.
#[derive(Default)]
struct RuleLinks {
    external_url: Mutex<String>,
    expressions: Mutex<BTreeMap<Origin, BTreeMap<String, String>>>,
}

/// The thread of the journal, to be stopped last.
pub struct NotifierThread(JournalThread);

impl Notifier {
    /// Blocking: reads the journal, the silences, and files that the configuration names. Starts
    /// all tasks.
    pub fn start(
        config: &NotifyConfig,
        parts: NotifierParts,
    ) -> Result<(Notifier, NotifierThread), NotifierError> {
        let NotifierParts { disk, dir, clock, newest_ms, discovery, runtime } = parts;
        let positions = Positions::new(Arc::clone(&disk), dir.join(RECEIVERS_DIR));
        let known = positions.number_max().unwrap_or_else(|error| {
            tracing::warn!(%error, "could not read the positions of receivers");
            0
        });
        let number_min = known.max(number_max(&*disk, &dir)).saturating_add(1);
        let trusted = Arc::clone(&clock);
        let now = move || Some(trusted()).filter(|now| !now.is_doubted).map(|now| now.wall_ms);
        let bounds = config.journal;
        let (journal, thread) =
            Journal::open(Arc::clone(&disk), dir.clone(), bounds, number_min, Arc::new(now));
        let silences =
            Silences::open(Arc::clone(&disk), dir.clone(), config.silences_max, clock.clone());
        let links = Arc::<RuleLinks>::default();
        let alertmanagers = Alertmanagers::new(AlertmanagersOptions {
            runtime: runtime.clone(),
            discovery,
            events: Some(Arc::new(JournalEvents(journal.clone()))),
            disk,
            dir,
            queue_capacity: config.queue_capacity,
            batch_size: config.batch_size,
            drains_on_shutdown: config.drains_on_shutdown,
        });
        let (trigger, shutdown) = Shutdown::manual();
        runtime.spawn(silences.clone().keep(shutdown.clone()));
        let open = OpenAlerts::new(journal.open_alerts());
        let notifier = Notifier(Arc::new(Shared {
            receivers: Receivers::new(
                runtime.clone(),
                positions,
                journal.clone(),
                silences.clone(),
            ),
            beats: Arc::new(Beats::new(Arc::clone(&clock), newest_ms)),
            clock,
            journal,
            open: Mutex::new(open),
            silences,
            alertmanagers,
            links,
            upkeep: Mutex::new(Some(trigger)),
        }));
        notifier.apply(config)?;
        runtime.spawn(tidy(Arc::downgrade(&notifier.0), shutdown));
        Ok((notifier, NotifierThread(thread)))
    }

    /// Blocking. Applies a configuration; receivers that did not change go on.
    pub fn apply(&self, config: &NotifyConfig) -> Result<(), NotifierError> {
        let shared = &*self.0;
        *lock(&shared.links.external_url) = config.external_url.clone();
        shared.journal.set_bounds(config.journal);
        let external = config.external_labels.iter().cloned().collect();
        // What may fail comes first, so that a bad configuration changes nothing.
        let external_labels = config.external_labels.iter();
        let node = Node {
            external_url: config.external_url.clone(),
            external_labels: LabelSet::new(
                external_labels.map(|(name, value)| (&**name, &**value)),
            ),
        };
        let opened = shared.receivers.open(&config.notify.receivers, &node, &shared.beats)?;
        shared.alertmanagers.apply(&config.alerting, &external)?;
        let links = Links {
            external_url: node.external_url.clone(),
            external_labels: node.external_labels.clone(),
            generator_url: {
                let links = Arc::clone(&shared.links);
                Arc::new(move |event: &Event| links.of(event))
            },
        };
        shared.receivers.replace(opened, &node, &links);
        shared.receivers.tidy((shared.clock)());
        Ok(())
    }

    /// Returns the alerts of a group that receivers take for firing.
    pub fn told(&self, file: &str, group: &str) -> Vec<Told> {
        lock(&self.0.open).told(&origin(file, group))
    }

    /// Takes the state of a group after an evaluation. Never waits for a disk or a receiver.
    ///
    /// `is_unnamed`: the rules ship with the program, and the configuration does not name them.
    pub fn observe(&self, group: &GroupSnapshot, is_unnamed: bool) {
        self.0.beats.evaluated(group);
        self.0.links.note(group);
        let mut open = lock(&self.0.open);
        let events = open.observe(group, is_unnamed);
        // Still locked, so that the journal has the events of all groups in their order.
        self.0.journal.append(events);
    }

    /// Sends what is due to Alertmanagers, by rules of the group in their order.
    pub fn send(&self, group: &GroupSnapshot, notices: impl IntoIterator<Item = Vec<Notice>>) {
        for (rule, notices) in group.rules.iter().zip(notices) {
            if !notices.is_empty() {
                let url = generator_url(&lock(&self.0.links.external_url), &rule.query);
                self.0.alertmanagers.send(&notices, &url);
            }
        }
    }

    /// Ends the alerts of groups that the configuration has no longer.
    pub fn retain<'a>(&self, groups: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let groups: BTreeSet<Origin> =
            groups.into_iter().map(|(file, group)| origin(file, group)).collect();
        self.0.beats.retain(&groups);
        lock(&self.0.links.expressions).retain(|origin, _| groups.contains(origin));
        let now = (self.0.clock)();
        let mut open = lock(&self.0.open);
        let events = open.retain(&groups, now.wall_ms);
        self.0.journal.append(events);
    }

    pub fn silences(&self) -> &Silences {
        &self.0.silences
    }

    pub fn alertmanagers(&self) -> AlertmanagerUrls {
        self.0.alertmanagers.urls()
    }

    /// Reads a page of the journal. Blocks while files are read.
    pub fn history(&self, request: &HistoryRequest<'_>) -> HistoryPage {
        page(&self.0.journal, request)
    }

    /// Sends one made-up alert, or a heartbeat, to a receiver.
    pub async fn test(&self, receiver: &str) -> Result<Answered, ReceiverTestError> {
        self.0.receivers.test(receiver).await
    }

    /// Ends all deliveries; positions are on disk when it returns. For use after the last
    /// evaluation, and before [`NotifierThread::stop`].
    pub async fn stop(&self) {
        drop(lock(&self.0.upkeep).take());
        self.0.receivers.stop().await;
        self.0.alertmanagers.stop().await;
    }
}

/// Removes positions of receivers that are gone, from time to time.
async fn tidy(shared: Weak<Shared>, mut shutdown: Shutdown) {
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            () = tokio::time::sleep(TIDY_EVERY) => {}
        }
        let Some(shared) = shared.upgrade() else { return };
        let tidied = spawn_blocking(move || shared.receivers.tidy((shared.clock)()));
        if let Err(error) = tidied.await {
            tracing::error!(%error, "the upkeep of positions panicked");
        }
    }
}

impl NotifierThread {
    /// Blocking: writes what is not on disk yet.
    pub fn stop(self) {
        self.0.stop();
    }
}

impl RuleLinks {
    fn note(&self, group: &GroupSnapshot) {
        let mut all = lock(&self.expressions);
        let known = all.entry(origin(&group.file, &group.name)).or_default();
        let is_same = known.len() == group.rules.len()
            && group.rules.iter().all(|rule| known.get(&rule.name) == Some(&rule.query));
        if !is_same {
            let pair = |rule: &tidepool_rules::group::RuleSnapshot| {
                (rule.name.clone(), rule.query.clone())
            };
            *known = group.rules.iter().map(pair).collect();
        }
    }

    /// Link to the expression of the rule of an event; empty if there is no such rule any more.
    fn of(&self, event: &Event) -> String {
        let all = lock(&self.expressions);
        let rules = all.get(&event.origin);
        let expression = rules.and_then(|rules| rules.get(event.labels.get(ALERT_NAME)));
        let external_url = lock(&self.external_url);
        expression.map_or_else(String::new, |expression| generator_url(&external_url, expression))
    }
}

/// The journal as Alertmanagers read it.
struct JournalEvents(Journal);

impl Events for JournalEvents {
    fn newest(&self) -> watch::Receiver<u64> {
        self.0.newest()
    }

    fn oldest(&self) -> u64 {
        self.0.oldest()
    }

    fn scan(&self, from: u64, visit: &mut dyn FnMut(&Entry)) {
        self.0.scan(from, &mut |item| match item {
            Item::Open(entry) | Item::Event(entry) => visit(entry),
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Discovery of targets: lists in the configuration, files, HTTP servers, the DNS.
//!
//! ```text
//! file  ──┐ each looks now and then, in a task of its own
//! http  ──┼─▶ groups of each discoverer ─▶ Discovery: all groups of a job, as they are now
//! dns   ──┘
//! static ─────────────────────────────────────▲
//! ```
//!
//! Begin with [`Discovery`]. A group is upstream's `targetgroup`: a source, the labels of each
//! target, and labels that all targets have.
//!
//! A failure changes nothing: if a file does not parse, a server does not answer or a name cannot
//! be looked up, the known targets stay. The last list of a server and the last answer of the DNS
//! are saved in files, so that a node that starts without a network knows its targets.
//!
//! Files are read and compared, not watched: swapping a symbolic link of a parent directory, as
//! mounted configuration does, notifies no watcher of the file.

pub mod dns;
mod figures;
mod file;
mod http;
mod list;
mod read;
mod saved;

pub use figures::DiscoveryFigures;
pub use file::listed;
pub use list::{List, NoRoom};

use crate::config::DiscoveryConfig;
use crate::memory::MemoryBound;
use dns::DnsDiscovery;
use file::FileDiscovery;
use http::HttpDiscovery;
use list::Room;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidepool_client::ClientError;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Largest list of targets, in bytes. Lists count towards the memory limit of targets, which is
/// reached earlier on most nodes.
const LIST_BYTES_MAX: u64 = 32 << 20;

/// All lists of a job, by discoverer in the order of the configuration.
pub type Groups = Vec<Arc<List>>;

/// Settings that all discoverers share.
#[derive(Clone, Debug, Default)]
pub struct DiscoveryOptions {
    /// Directory for the saved lists and DNS answers; without it, nothing is saved.
    pub saved_dir: Option<PathBuf>,
    /// Bound on the memory of lists.
    pub memory: MemoryBound,
    /// Resolver for SRV records; if absent, the system's settings are used.
    pub resolver: Option<dns::Resolver>,
    pub figures: Arc<DiscoveryFigures>,
}

/// Discovery of one job. Dropping it ends its tasks.
#[derive(Debug)]
pub struct Discovery {
    groups: watch::Receiver<Groups>,
    has_answered: watch::Receiver<bool>,
    _tasks: JoinSet<()>,
}

/// A discoverer, which refreshes its lists at regular intervals.
enum Discoverer {
    File(FileDiscovery),
    Http(Box<HttpDiscovery>),
    Dns(DnsDiscovery),
}

/// Result of one refresh of a discoverer.
struct DiscoveryUpdate {
    /// Index of the discoverer in the configuration.
    number: usize,
    /// All lists of the discoverer, if any has changed.
    groups: Option<Groups>,
    has_answered: bool,
}

/// Reasons why targets cannot be discovered as configured.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The HTTP client is not valid.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The listed targets take too much memory.
    #[error("static_configs: {0}")]
    Static(#[from] NoRoom),
}

impl Discovery {
    /// Starts all discoverers of a job; needs a tokio runtime. Static and saved lists and answers
    /// are available when it returns. Reading them may take long, so this must not run on a network
    /// thread. Fails if the settings of requests are invalid or static lists exceed the memory.
    pub fn start(
        configs: &[DiscoveryConfig],
        options: &DiscoveryOptions,
    ) -> Result<Discovery, DiscoveryError> {
        let mut parts: Vec<Groups> = Vec::with_capacity(configs.len());
        let mut discoverers = Vec::new();
        for (number, config) in configs.iter().enumerate() {
            let discoverer = match config {
                DiscoveryConfig::Static(groups) => {
                    let mut room = Room::new(&options.memory);
                    room.take_groups(groups)?;
                    parts.push(vec![Arc::new(List::held(Arc::clone(groups), room))]);
                    continue;
                }
                DiscoveryConfig::File(config) => {
                    Discoverer::File(FileDiscovery::new(config, options))
                }
                DiscoveryConfig::Http(config) => {
                    Discoverer::Http(Box::new(HttpDiscovery::open(config, options)?))
                }
                DiscoveryConfig::Dns(config) => Discoverer::Dns(DnsDiscovery::new(config, options)),
            };
            parts.push(discoverer.known());
            discoverers.push((number, discoverer));
        }
        let (publish, groups) = watch::channel(parts.concat());
        let is_silent = |(_, discoverer): &(usize, Discoverer)| !discoverer.has_answered();
        let mut silent: BTreeSet<usize> =
            discoverers.iter().filter(|one| is_silent(one)).map(|(number, _)| *number).collect();
        let (all_answered, has_answered) = watch::channel(silent.is_empty());
        let mut tasks = JoinSet::new();
        if !discoverers.is_empty() {
            let (send, mut found) = mpsc::channel(discoverers.len());
            for (number, discoverer) in discoverers {
                tasks.spawn(discoverer.run(number, send.clone()));
            }
            tasks.spawn(async move {
                while let Some(DiscoveryUpdate { number, groups, has_answered }) =
                    found.recv().await
                {
                    if let (Some(part), Some(groups)) = (parts.get_mut(number), groups) {
                        *part = groups;
                        publish.send_replace(parts.concat());
                    }
                    // After the groups are published: a complete answer must include them.
                    if has_answered && silent.remove(&number) && silent.is_empty() {
                        all_answered.send_replace(true);
                    }
                }
            });
        }
        Ok(Discovery { groups, has_answered, _tasks: tasks })
    }

    /// Returns whether the groups are complete: each file was read, each server has answered and
    /// each name was looked up, in this or in an earlier run. Becomes true after the groups are
    /// published.
    pub fn has_answered(&self) -> watch::Receiver<bool> {
        self.has_answered.clone()
    }

    /// Returns a channel with the current groups, which also announces each change.
    pub fn groups(&self) -> watch::Receiver<Groups> {
        self.groups.clone()
    }
}

impl Discoverer {
    /// Returns the lists that are known before the first refresh.
    fn known(&self) -> Groups {
        match self {
            Discoverer::File(_) => Vec::new(),
            Discoverer::Http(http) => http.known(),
            Discoverer::Dns(dns) => dns.known(),
        }
    }

    /// Returns whether all configured lists are known.
    fn has_answered(&self) -> bool {
        match self {
            Discoverer::File(file) => file.has_answered(),
            Discoverer::Http(http) => http.has_answered(),
            Discoverer::Dns(dns) => dns.has_answered(),
        }
    }

    fn interval(&self) -> Duration {
        match self {
            Discoverer::File(file) => file.interval(),
            Discoverer::Http(http) => http.interval(),
            Discoverer::Dns(dns) => dns.interval(),
        }
    }

    /// Refreshes, and returns all lists if any has changed.
    async fn refresh(&mut self) -> Option<Groups> {
        match self {
            Discoverer::File(file) => file.refresh().await,
            Discoverer::Http(http) => http.refresh().await,
            Discoverer::Dns(dns) => dns.refresh().await,
        }
    }

    async fn run(mut self, number: usize, send: mpsc::Sender<DiscoveryUpdate>) {
        let mut ticks = interval(self.interval());
        // After a slow refresh, a whole interval passes before the next one.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let had_answered = self.has_answered();
            let groups = self.refresh().await;
            let has_answered = self.has_answered();
            let is_new = groups.is_some() || has_answered != had_answered;
            if is_new && send.send(DiscoveryUpdate { number, groups, has_answered }).await.is_err()
            {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;

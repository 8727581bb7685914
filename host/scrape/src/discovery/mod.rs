//! Discovery of targets: lists in the configuration, files, HTTP servers, the DNS.
//!
//! ```text
//! file  ──┐ each looks now and then, in a task of its own
//! http  ──┼─▶ groups of each discoverer ─▶ Discovery: all groups of a job, as they are now
//! dns   ──┘
//! static ─────────────────────────────────────▲
//! ```
//!
//! Begin with [`Discovery`]. A group is one of upstream's `targetgroup`: its source, the labels of
//! its targets, and labels of them all.
//!
//! A failure changes nothing: a file that does not parse, a server that does not answer and a name
//! that cannot be looked up leave the targets that there were. The last list of a server and the
//! last answer of the DNS are saved in files, so that a node that starts without its uplink knows
//! its targets.
//!
//! Files are read and compared, not watched: a swapped symbolic link of a directory above, as in
//! mounted configuration, notifies no watcher of the file.

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

/// Largest list of targets, in bytes. A list counts against the memory of targets, so most nodes
/// refuse shorter ones.
const LIST_BYTES_MAX: u64 = 32 << 20;

/// All lists of a job, by discoverer in the order of the configuration.
pub type Groups = Vec<Arc<List>>;

/// Settings that all discoverers share.
#[derive(Clone, Debug, Default)]
pub struct DiscoveryOptions {
    /// Directory for lists of servers and answers of the DNS; without it, nothing is saved.
    pub saved_dir: Option<PathBuf>,
    /// Bound on the memory of lists.
    pub memory: MemoryBound,
    /// Resolver of names; without it, the settings of the system hold.
    pub resolver: Option<dns::Resolver>,
    pub figures: Arc<DiscoveryFigures>,
}

/// The discovery of one job. It ends when this is dropped.
#[derive(Debug)]
pub struct Discovery {
    groups: watch::Receiver<Groups>,
    has_answered: watch::Receiver<bool>,
    _tasks: JoinSet<()>,
}

/// A discoverer, which looks at regular intervals.
enum Discoverer {
    File(FileDiscovery),
    Http(Box<HttpDiscovery>),
    Dns(DnsDiscovery),
}

/// Result of one look of a discoverer.
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
    /// Starts all discoverers of a job, inside of a runtime. Static lists, saved lists and saved
    /// answers are there at once. They may be long, so this must not run on a thread of the
    /// network. Fails if requests cannot be made as configured, or static lists find no memory.
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
                    // After the groups are published, so that an answer is never seen before them.
                    if has_answered && silent.remove(&number) && silent.is_empty() {
                        all_answered.send_replace(true);
                    }
                }
            });
        }
        Ok(Discovery { groups, has_answered, _tasks: tasks })
    }

    /// Returns whether the groups are complete: each list was read, each server has answered and
    /// each name was looked up, in this or in an earlier run. It becomes true after the groups are
    /// there.
    pub fn has_answered(&self) -> watch::Receiver<bool> {
        self.has_answered.clone()
    }

    /// Returns all groups as they are, and each change of them.
    pub fn groups(&self) -> watch::Receiver<Groups> {
        self.groups.clone()
    }
}

impl Discoverer {
    /// Returns the lists that are known before the first look.
    fn known(&self) -> Groups {
        match self {
            Discoverer::File(_) => Vec::new(),
            Discoverer::Http(http) => http.known(),
            Discoverer::Dns(dns) => dns.known(),
        }
    }

    /// Returns whether all lists are known that are configured.
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

    /// Looks, and returns all lists if any has changed.
    async fn refresh(&mut self) -> Option<Groups> {
        match self {
            Discoverer::File(file) => file.refresh().await,
            Discoverer::Http(http) => http.refresh().await,
            Discoverer::Dns(dns) => dns.refresh().await,
        }
    }

    async fn run(mut self, number: usize, send: mpsc::Sender<DiscoveryUpdate>) {
        let mut ticks = interval(self.interval());
        // A look that takes long is followed by a whole interval.
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

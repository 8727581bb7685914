//! Targets from the DNS: hosts with ports by SRV records, addresses by A and AAAA.
//!
//! Addresses are looked up by the system, so that `/etc/hosts` and other local sources are used.
//! The system has no call for SRV records: [`Resolver`] queries them over UDP and TCP with the
//! settings of `/etc/resolv.conf`. The crate hickory-resolver can do so, too, but adds some thirty
//! crates with a cache, DNS over TLS, zones and signatures, none of which is needed here.
//!
//! Source: `discovery/dns` of prometheus/prometheus. Upstream drops all targets of a name that does
//! not exist. For A and AAAA this module keeps them, because the system does not report whether the
//! name does not exist or no server could be reached.

mod message;
mod resolv_conf;
mod resolver;

pub use resolver::{DnsError, Resolver};

use super::list::{List, ListError, Room};
use super::saved::Saved;
use super::{DiscoveryFigures, DiscoveryOptions};
use crate::config::{DnsConfig, DnsType};
use crate::labels::Labels;
use crate::memory::MemoryBound;
use crate::target::{LabelMap, TargetGroup, names};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::net::lookup_host;

/// Label with the name that was looked up.
const NAME_LABEL: &str = "__meta_dns_name";

/// Label with the host of an SRV record.
const SRV_TARGET_LABEL: &str = "__meta_dns_srv_record_target";

/// Label with the port of an SRV record.
const SRV_PORT_LABEL: &str = "__meta_dns_srv_record_port";

/// Maximum memory per byte of a saved answer while it is read. An empty map needs the most: it has
/// two bytes in JSON.
const MAP_BYTES_PER_BYTE: usize = 16;

/// Discoverer that looks names up in the DNS.
pub(super) struct DnsDiscovery {
    config: DnsConfig,
    resolver: Option<Resolver>,
    figures: Arc<DiscoveryFigures>,
    /// Directory for the last answer of each name.
    saved_dir: Option<PathBuf>,
    /// List of the last answer, by name.
    lists: BTreeMap<String, Arc<List>>,
    memory: MemoryBound,
    /// Fault of the last lookup of each failing name.
    wrong: BTreeMap<String, ListError>,
}

impl DnsDiscovery {
    /// Creates a discoverer and loads the saved answers. Sends no query.
    pub fn new(config: &DnsConfig, options: &DiscoveryOptions) -> DnsDiscovery {
        let mut discovery = DnsDiscovery {
            config: config.clone(),
            resolver: options.resolver.clone(),
            figures: Arc::clone(&options.figures),
            saved_dir: options.saved_dir.clone(),
            lists: BTreeMap::new(),
            memory: options.memory.clone(),
            wrong: BTreeMap::new(),
        };
        for name in &config.names {
            match discovery.read_saved(name) {
                Ok(list) => discovery.lists.extend(list.map(|list| (name.clone(), Arc::new(list)))),
                // The next answer replaces the file.
                Err(error) => tracing::warn!(
                    name,
                    error = error.what,
                    "the kept answer of the DNS cannot be used; there are no targets until the \
                     next one"
                ),
            }
        }
        discovery
    }

    /// Returns the lists of the last answers, which may be from an earlier run.
    pub fn known(&self) -> Vec<Arc<List>> {
        self.lists.values().cloned().collect()
    }

    /// Returns whether each name has an answer, from this or an earlier run.
    pub fn has_answered(&self) -> bool {
        self.config.names.iter().all(|name| self.lists.contains_key(name))
    }

    fn saved(&self, name: &str) -> Option<Saved> {
        let kind = self.config.kind;
        Some(Saved::new(self.saved_dir.as_ref()?, &format!("dns {kind:?} {name}")))
    }

    fn read_saved(&self, name: &str) -> Result<Option<List>, ListError> {
        let Some(saved) = self.saved(name) else { return Ok(None) };
        let Some(raw) = saved.read(&self.memory)? else { return Ok(None) };
        let list = raw.into_list(|bytes, room| {
            // Saved answers are short; a file that exceeds the bound is not a saved answer.
            room.take(bytes.len() * MAP_BYTES_PER_BYTE).map_err(|error| error.to_string())?;
            let targets: Vec<LabelMap> =
                serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
            Ok(vec![group(name, &targets)])
        })?;
        Ok(Some(list))
    }

    /// Saves an answer for the next start.
    async fn save(&self, name: &str, targets: &[LabelMap]) {
        let Some(saved) = self.saved(name) else { return };
        let written = match serde_json::to_vec(targets) {
            Ok(list) => saved.write(list).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = written {
            tracing::warn!(
                name,
                %error,
                "the answer of the DNS could not be kept for the next start"
            );
        }
    }

    pub fn interval(&self) -> Duration {
        self.config.refresh_interval
    }

    /// Looks all names up, and returns all lists if any has changed.
    pub async fn refresh(&mut self) -> Option<Vec<Arc<List>>> {
        let mut changes = false;
        for name in self.config.names.clone() {
            self.figures.dns_lookups.fetch_add(1, Relaxed);
            match self.look_up(&name).await {
                Ok((targets, list)) => {
                    self.wrong.remove(&name);
                    if !self.lists.get(&name).is_some_and(|known| known.is_same(&list)) {
                        changes = true;
                        self.save(&name, &targets).await;
                        self.lists.insert(name, Arc::new(list));
                    }
                }
                Err(error) => {
                    self.figures.dns_lookup_failures.fetch_add(1, Relaxed);
                    // Logged once per fault, however long it lasts.
                    if !self.wrong.get(&name).is_some_and(|wrong| wrong.is_same(&error)) {
                        let error = &error.what;
                        tracing::warn!(name, error, "a name of targets could not be looked up");
                    }
                    self.wrong.insert(name, error);
                }
            }
        }
        changes.then(|| self.known())
    }

    /// Returns the targets of a name, and their list. A DNS answer has at most 64 KiB.
    async fn look_up(&self, name: &str) -> Result<(Vec<LabelMap>, List), ListError> {
        let targets = self.targets(name).await.map_err(ListError::wrong)?;
        let groups = vec![group(name, &targets)];
        let mut room = Room::new(&self.memory);
        room.take_groups(&groups)?;
        Ok((targets, List::held(Arc::new(groups), room)))
    }

    async fn targets(&self, name: &str) -> Result<Vec<LabelMap>, String> {
        let mut targets = match self.config.kind {
            DnsType::Srv => self.services(name).await?,
            DnsType::A(port) => addresses(name, port, true).await?,
            DnsType::Aaaa(port) => addresses(name, port, false).await?,
        };
        // Sorted, because servers rotate the order of records.
        targets.sort();
        targets.dedup();
        for labels in &mut targets {
            labels.insert(NAME_LABEL.to_owned(), name.to_owned());
        }
        Ok(targets)
    }

    async fn services(&self, name: &str) -> Result<Vec<LabelMap>, String> {
        let resolver = match &self.resolver {
            Some(resolver) => resolver.clone(),
            // Read for each lookup, because the network of a node may change.
            None => Resolver::of_system().map_err(|error| error.to_string())?,
        };
        let services = resolver.services(name).await.map_err(|error| error.to_string())?;
        let labels = services.into_iter().map(|service| {
            let host = service.target.trim_end_matches('.');
            LabelMap::from([
                (names::ADDRESS.to_owned(), format!("{host}:{}", service.port)),
                (SRV_PORT_LABEL.to_owned(), service.port.to_string()),
                (SRV_TARGET_LABEL.to_owned(), service.target),
            ])
        });
        Ok(labels.collect())
    }
}

fn group(name: &str, targets: &[LabelMap]) -> TargetGroup {
    let targets = targets.iter().map(Labels::of).collect();
    TargetGroup { source: name.to_owned(), targets, ..TargetGroup::default() }
}

async fn addresses(name: &str, port: u16, is_ipv4: bool) -> Result<Vec<LabelMap>, String> {
    let found = lookup_host((name, port)).await.map_err(|error| error.to_string())?;
    // One lookup returns the addresses of both kinds.
    let of_kind = found.filter(|address| address.is_ipv4() == is_ipv4);
    let labels = |address: std::net::SocketAddr| {
        LabelMap::from([(names::ADDRESS.into(), address.to_string())])
    };
    Ok(of_kind.map(labels).collect())
}

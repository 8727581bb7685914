//! The nodes, the centre and the generators, from start to end.

use crate::metrics::Page;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};
use tidepool_tests::checksum::Checksum;
use tidepool_tests::clock::now_ms;
use tidepool_tests::process::Server;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::series::{Dataset, Labels, Series, Shape, Texture};
use tidepool_tests::tidepool::Config;
use tidepool_tests::wait::until;

/// Timeout for the centre to have received all samples.
const TIMEOUT: Duration = Duration::from_secs(600);
const INTERVAL_MS: i64 = 15_000;
const ROWS_PER_REQUEST: usize = 2_000;
/// External label by which the centre distinguishes the nodes.
const LABEL: &str = "edge";

/// Queue settings, named as in Prometheus' `queue_config`.
#[derive(Clone, Copy, Debug)]
pub struct Queues {
    /// Maximum number of concurrent senders.
    pub max_shards: usize,
    /// Number of samples that a shard queues.
    pub capacity: usize,
    /// Maximum number of samples in a request.
    pub max_samples_per_send: usize,
}

/// Remote-write version and queue settings of one run.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub version: Version,
    pub queues: Queues,
}

/// Figures of one run, summed over all nodes unless stated otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub samples: f64,
    /// Time from the first write to a node until the centre had all samples.
    pub wall: Duration,
    pub requests: f64,
    /// Total size of request bodies to the centre.
    pub bytes: f64,
    pub centre_cpu: Duration,
    /// CPU time of the nodes, for ingestion and forwarding.
    pub nodes_cpu: Duration,
    /// Peak memory of the node that used most.
    pub node_memory_bytes: u64,
}

/// Data of the generators, one set for each node.
pub struct Fleet {
    data: Vec<Dataset>,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Queues { max_shards, capacity, max_samples_per_send } = self.queues;
        let version = self.version;
        write!(f, "{version}, max_shards {max_shards}, {capacity}/{max_samples_per_send}")
    }
}

impl Way {
    /// Returns the configuration of a node, in Prometheus' format.
    fn yaml(&self, centre: &Server) -> String {
        let Queues { max_shards, capacity, max_samples_per_send } = self.queues;
        let message = match self.version {
            Version::V1 => "prometheus.WriteRequest",
            Version::V2 => "io.prometheus.write.v2.Request",
        };
        format!(
            "remote_write:\n  - url: {}/api/v1/write\n    name: centre\n    \
             protobuf_message: {message}\n    queue_config:\n      max_shards: {max_shards}\n      \
             capacity: {capacity}\n      max_samples_per_send: {max_samples_per_send}\n      \
             batch_send_deadline: 1s\n",
            centre.url()
        )
    }
}

impl Fleet {
    /// Generates a data set for each node; all end now.
    pub fn new(nodes: usize, series: usize, scrapes: usize) -> Fleet {
        let start_ms = now_ms() - scrapes as i64 * INTERVAL_MS;
        let (interval_ms, texture) = (INTERVAL_MS, Texture::Regular);
        let shape = |seed| Shape { seed, series, scrapes, start_ms, interval_ms, texture };
        Fleet { data: (0..nodes as u64).map(|seed| Dataset::generate(shape(seed))).collect() }
    }

    /// Starts all servers, forwards all data, and compares the result in the centre.
    pub fn forward(&self, way: Way) -> Result<Figures, Box<dyn Error>> {
        let directory = tempfile::tempdir()?;
        let centre = directory.path().join("centre");
        std::fs::create_dir(&centre)?;
        let centre = Config::new(&centre).start()?;
        let nodes = (0..self.data.len())
            .map(|number| start_node(directory.path(), number, way, &centre))
            .collect::<Result<Vec<_>, _>>()?;
        let (before, begin) = (centre.usage()?, Instant::now());
        std::thread::scope(|scope| {
            let generators: Vec<_> = nodes
                .iter()
                .zip(&self.data)
                .map(|(node, data)| scope.spawn(|| generate(node, data)))
                .collect();
            generators.into_iter().try_for_each(|generator| {
                generator.join().map_err(|_| "a generator panicked".to_string())?
            })
        })?;
        let samples: u64 = self.data.iter().map(Dataset::sample_count).sum();
        until("everything at the centre", TIMEOUT, || {
            let delivered = nodes.iter().map(delivered).sum::<f64>();
            (delivered >= samples as f64).then_some(())
        })?;
        let wall = begin.elapsed();
        let centre_cpu = centre.usage()?.cpu - before.cpu;
        self.compare(&centre)?;
        let pages = nodes.iter().map(Page::of).collect::<Result<Vec<_>, _>>()?;
        let usages = nodes.iter().map(Server::usage).collect::<Result<Vec<_>, _>>()?;
        let sum = |name: &str| -> Result<f64, String> {
            let sums = pages.iter().map(|page| page.sum(name));
            sums.sum::<Option<f64>>().ok_or_else(|| format!("a node has no metric {name}"))
        };
        Ok(Figures {
            samples: samples as f64,
            wall,
            requests: sum("prometheus_remote_storage_sent_batch_duration_seconds_count")?,
            bytes: sum("prometheus_remote_storage_bytes_total")?,
            centre_cpu,
            nodes_cpu: usages.iter().map(|usage| usage.cpu).sum(),
            node_memory_bytes: usages.iter().map(|u| u.peak_memory_bytes).max().unwrap_or(0),
        })
    }

    /// Checks that the centre has the generators' samples with the nodes' labels added.
    fn compare(&self, centre: &Server) -> Result<(), Box<dyn Error>> {
        let found = Reader::new(&centre.url()).streamed(&[everything(i64::MIN, i64::MAX)])?;
        let found = Checksum::of(found.iter().flatten());
        let mut sent = Checksum::default();
        for (number, data) in self.data.iter().enumerate() {
            for series in &data.series {
                let labels = with_node(&series.labels, number);
                sent.add_row(Series { labels, samples: series.samples.clone() }.row());
            }
        }
        if found != sent {
            return Err(format!("the centre has {found:?}, not {sent:?}").into());
        }
        Ok(())
    }
}

fn node_name(number: usize) -> String {
    format!("node-{number}")
}

fn with_node(labels: &Labels, number: usize) -> Labels {
    let added = [(LABEL.to_string(), node_name(number))];
    Labels::from_pairs(labels.pairs().iter().cloned().chain(added))
}

fn start_node(
    directory: &Path,
    number: usize,
    way: Way,
    centre: &Server,
) -> Result<Server, Box<dyn Error>> {
    let name = node_name(number);
    let directory = directory.join(&name);
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("tidepool.yml");
    std::fs::write(&file, way.yaml(centre))?;
    let config = Config::new(&directory)
        .flag(&format!("--external-label={LABEL}={name}"))
        .flag(&format!("--config={}", file.display()));
    Ok(config.start()?)
}

/// Writes a node's data to it, scrape by scrape.
fn generate(node: &Server, data: &Dataset) -> Result<(), String> {
    let writer = Writer::new(&node.url());
    for rows in data.requests(ROWS_PER_REQUEST) {
        let answer = writer.send(Version::V2, &rows).map_err(|e| e.to_string())?;
        if !answer.is_success() {
            return Err(format!("a node refused samples: {} {}", answer.status, answer.text()));
        }
    }
    Ok(())
}

/// Returns the number of samples that a node has delivered.
fn delivered(node: &Server) -> f64 {
    let page = Page::of(node).ok();
    page.and_then(|page| page.sum("prometheus_remote_storage_samples_total")).unwrap_or(0.0)
}

//! Library shared by the whole-process tests and the benchmark (`tests/bench`) of tidepool.
//!
//! Nothing here knows tidepool's code: servers are processes, clients speak HTTP to them, and the
//! decoders are second opinions, written from the specifications and checked against Prometheus.
//!
//! - [`series`]: seeded, realistic data; [`checksum`]: whether what came back is what was sent;
//!   [`histogram`]: both for series of native histograms, with their chunk decoder.
//! - [`proto`]: the wire messages; [`http`]: requests over a real socket.
//! - [`remote_write`], [`remote_read`]: the two clients; [`xor_chunk`]: the float chunk decoder;
//!   [`otlp`]: metrics of OpenTelemetry; [`sender`]: what was acknowledged, and whether a store
//!   holds it.
//! - [`small_disk`]: a file system that runs full; [`disk_faults`]: one that fails; [`target`]: a
//!   page to scrape that is known; [`object_storage`]: an S3-compatible server; [`fault_proxy`]: a
//!   proxy whose connections fail; [`receiver`]: one that keeps what it is sent; [`authority`]:
//!   certificates.
//! - [`cli`]: `tidepool tsdb`; [`process`]: a server from start to end, [`cgroup`] its memory,
//!   [`fake_clock`] its time; [`tidepool`] and [`prometheus`] start the two that matter, [`node`]
//!   lets both work in one directory;
//!   [`promtool`] and [`data_dir`] look into data directories; [`built`] says where our own
//!   binaries are, and [`peers`] where the foreign ones; [`thanos`] starts those that read shipped
//!   blocks, [`alertmanager`] what is told of alerts, [`victoria_metrics`] what the benchmark
//!   compares with as well.
//! - Stores in a state that tests of more than one program begin with: [`busy`] (blocks and a log),
//!   [`deletions`], [`forwarding`], [`guarded`], [`head_snapshot`], [`shipped`], [`text_push`].
//! - [`latency`]: whether other work delays requests; [`made`]: data directories that upstream's
//!   packages make.
//! - [`promql`]: random expressions and data for them.
//! - [`soak`]: how often tests repeat themselves.
//! - [`hostile`]: writes beside reads that ask for as much as they may.
//! - [`wit_reference`]: the page that describes the component's contract.

pub mod admin;
pub mod alertmanager;
pub mod authority;
pub mod built;
pub mod busy;
pub mod cgroup;
pub mod checksum;
pub mod cli;
pub mod clock;
pub mod data_dir;
pub mod deletions;
pub mod disk_faults;
pub mod fake_clock;
pub mod fault_proxy;
pub mod forwarding;
pub mod guarded;
pub mod head_snapshot;
pub mod histogram;
pub mod hostile;
pub mod http;
pub mod latency;
pub mod made;
pub mod node;
pub mod node_exporter;
pub mod object_storage;
pub mod otlp;
pub mod peers;
pub mod plugins;
pub mod preload;
pub mod process;
pub mod prometheus;
pub mod promql;
pub mod promtool;
pub mod proto;
pub mod receiver;
pub mod remote_read;
pub mod remote_write;
pub mod sender;
pub mod series;
pub mod shipped;
pub mod small_disk;
pub mod soak;
pub mod started;
pub mod target;
pub mod text_push;
pub mod thanos;
pub mod tidepool;
pub mod upstream_race;
pub mod victoria_metrics;
pub mod vmagent;
pub mod wait;
pub mod wit_reference;
pub mod xor_chunk;

//! Promised data survives a power cut at any moment.
//!
//! The engine component works through the host's own file layer on a simulated disk ([`sim_disk`]),
//! driven call by call as `host/store/src` does ([`node`]), by seeded writes and maintenance
//! ([`run`]). [`model`] records requests and answers, and so knows the data that must be found.
//!
//! With more seeds: `TIDEPOOL_SOAK=yes cargo test --release -p tidepool-runtime --test power_cut`.

mod cuts;
mod damage;
mod disk_itself;
mod errors;
#[path = "../image/mod.rs"]
mod image;
mod links;
mod model;
mod node;
mod record_format;
mod run;
mod sim_disk;

use tidepool_disk::SyncPolicy;
use tidepool_runtime::Runtime;
use tidepool_tests::soak;

/// Result of a test, which returns errors instead of panicking.
pub type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Duration of a block: some seconds of samples are enough for a cut.
pub const BLOCK_MS: i64 = 10_000;

pub const WINDOW_MS: i64 = 25_000;

/// Age relative to the newest block at which blocks are dropped.
pub const RETENTION_MS: i64 = 300_000;

/// Time of the first sample: a multiple of all durations of blocks.
pub const START_MS: i64 = 1_800_000_000_000;

/// Number of seeds for each test of a soak.
const SOAK_SEEDS: usize = 200;

/// A policy that never asks for a sync: the tests decide when.
const INTERVAL: SyncPolicy = SyncPolicy::Interval(std::time::Duration::MAX);
/// A batch policy that never asks for a sync, and buffers little.
const BATCH: SyncPolicy =
    SyncPolicy::Batch { interval: std::time::Duration::MAX, bytes_max: 16 * 1024 };

/// Seeds of a test: `count` of them, or more in a soak.
fn seeds(count: u64) -> std::ops::Range<u64> {
    0..soak::count(count as usize, SOAK_SEEDS) as u64
}

fn runtime() -> TestResult<Runtime> {
    image::install();
    Runtime::shared().map_err(|error| format!("{error:#}").into())
}

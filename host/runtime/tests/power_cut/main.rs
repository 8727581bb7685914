//! What was promised is there, whatever moment the power goes.
//!
//! The engine component works through the host's own file layer on a simulated disk ([`sim_disk`]),
//! driven call by call as `host/store/src` does ([`node`]), by seeded writes and upkeep ([`run`]).
//! [`model`] knows what was asked and answered, and so what must be found.
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

/// Errors are returned, without a panic.
pub type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Span of a block: some seconds of samples make a cut.
pub const BLOCK_MS: i64 = 10_000;

/// How far out of order a sample may be.
pub const WINDOW_MS: i64 = 25_000;

/// Blocks that end so long before the newest go.
pub const RETENTION_MS: i64 = 300_000;

/// A multiple of all spans of blocks.
pub const START_MS: i64 = 1_800_000_000_000;

/// Seeds that each test of a soak takes.
const SOAK_SEEDS: usize = 200;

/// Never by itself: the test says when.
const INTERVAL: SyncPolicy = SyncPolicy::Interval(std::time::Duration::MAX);
/// The same, and little is gathered.
const BATCH: SyncPolicy =
    SyncPolicy::Batch { interval: std::time::Duration::MAX, bytes_max: 16 * 1024 };

/// Seeds of a test: so many, and more in a soak.
fn seeds(count: u64) -> std::ops::Range<u64> {
    0..soak::count(count as usize, SOAK_SEEDS) as u64
}

fn runtime() -> TestResult<Runtime> {
    image::install();
    Runtime::shared().map_err(|error| format!("{error:#}").into())
}

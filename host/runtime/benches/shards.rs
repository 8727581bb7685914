//! Compares one head instance with two: the same remote-write bodies into one, or split by series
//! between two that run side by side, each with a thread and a log of its own. This is the largest
//! possible gain of a host that shards by connection, since such heads share nothing.
//!
//! `cargo bench -p tidepool-runtime --bench shards`, on a machine with two free cores. CPU time is
//! that of the appending threads, memory that of their instances.

#[path = "../tests/image/mod.rs"]
mod image;

use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidepool_disk::wal::{Logs, SEGMENT_BYTES_DEFAULT};
use tidepool_disk::{BlockDirs, Compression, DataDir, SyncPolicy, WalOptions};
use tidepool_runtime::{
    Instance, InstanceLimits, InstanceLogs, InstanceStorage, Options, RemoteWriteVersion, Role,
    Runtime,
};
use tidepool_tests::remote_write::{Version, message_bytes};
use tidepool_tests::series::{Dataset, Row, Shape, Texture};

const SERIES: usize = 20_000;
const SCRAPES: usize = 120;
const ROWS_PER_REQUEST: usize = 2000;
const ROUNDS: usize = 5;

/// Costs of one way to split.
struct Cost {
    wall: Duration,
    cpu: Duration,
    memory_bytes: u64,
}

fn open(runtime: &Runtime) -> (Instance, TempDir) {
    let dir = TempDir::new().expect("a temporary directory");
    let data = DataDir::open(dir.path()).expect("a fresh data directory");
    let wal = WalOptions {
        sync: SyncPolicy::Off,
        segment_bytes_max: SEGMENT_BYTES_DEFAULT,
        compression: Compression::Snappy,
    };
    let logs = Logs::open(&data, wal).expect("fresh logs");
    let options = Options {
        future_limit_ms: 600_000,
        hash_seed: 1,
        ..Options::without_limits(Role::Head, 7_200_000)
    };
    let storage = InstanceStorage {
        logs: InstanceLogs::Owned(Arc::new(Mutex::new(logs))),
        blocks: BlockDirs::open(&data),
        head: None,
        memory: None,
    };
    let limits = InstanceLimits { memory_bytes_max: 1 << 31, deadline: None };
    let mut instance = runtime.instantiate(options, storage, limits).expect("a fresh instance");
    while !instance.replay(1).expect("a fresh log").done {}
    (instance, dir)
}

/// CPU time of this thread, which Linux reports in nanoseconds.
fn thread_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("a number of nanoseconds"))
}

/// Appends each part through an instance of its own, all of them concurrently.
fn append(
    runtime: &Runtime,
    version: RemoteWriteVersion,
    parts: &[Vec<Vec<u8>>],
    now_ms: i64,
) -> Cost {
    let start = Barrier::new(parts.len() + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter()
            .map(|bodies| {
                let start = &start;
                scope.spawn(move || {
                    let (mut instance, _dir) = open(runtime);
                    start.wait();
                    let before = thread_cpu();
                    for body in bodies {
                        let outcome = instance.append_remote_write(version, body, now_ms);
                        assert_eq!(outcome.expect("a sound body").refused, 0);
                    }
                    let cpu = thread_cpu() - before;
                    (cpu, instance.stats().expect("figures").memory_used_bytes)
                })
            })
            .collect();
        start.wait();
        let begun = Instant::now();
        let done: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("it appends")).collect();
        Cost {
            wall: begun.elapsed(),
            cpu: done.iter().map(|(cpu, _)| *cpu).sum(),
            memory_bytes: done.iter().map(|(_, memory_bytes)| memory_bytes).sum(),
        }
    })
}

/// Encodes every scrape of one part of the series as requests.
fn bodies(version: Version, scrapes: &[Vec<Row<'_>>], part: usize, parts: usize) -> Vec<Vec<u8>> {
    let of_part = |rows: &Vec<Row<'_>>| -> Vec<Vec<u8>> {
        let rows = &rows[rows.len() * part / parts..rows.len() * (part + 1) / parts];
        rows.chunks(ROWS_PER_REQUEST).map(|rows| message_bytes(version, rows)).collect()
    };
    scrapes.iter().flat_map(of_part).collect()
}

fn main() {
    let data = Dataset::generate(Shape {
        seed: 1,
        series: SERIES,
        scrapes: SCRAPES,
        start_ms: 1_800_000_000_000,
        interval_ms: 15_000,
        texture: Texture::Regular,
    });
    let now_ms = data.time_range_ms().map_or(0, |(_, end_ms)| end_ms);
    let million = data.sample_count() as f64 / 1e6;
    let scrapes: Vec<Vec<Row<'_>>> = data.scrapes().collect();
    image::install();
    let runtime = Runtime::shared().expect("the component");
    println!("{SERIES} series, {million:.1} million samples; the best of {ROUNDS} rounds\n");
    println!("| remote write | heads | million samples/s | CPU s per million | memory MB |");
    println!("| --- | --- | --- | --- | --- |");
    for (version, engine_version) in
        [(Version::V1, RemoteWriteVersion::V1), (Version::V2, RemoteWriteVersion::V2)]
    {
        let ways: Vec<Vec<Vec<Vec<u8>>>> = [1, 2]
            .map(|parts| (0..parts).map(|part| bodies(version, &scrapes, part, parts)).collect())
            .into();
        let mut costs: [Vec<Cost>; 2] = Default::default();
        // In turn, so that whatever else the machine does meets both.
        for _ in 0..ROUNDS {
            for (parts, costs) in ways.iter().zip(&mut costs) {
                costs.push(append(&runtime, engine_version, parts, now_ms));
            }
        }
        for (heads, costs) in costs.iter().enumerate() {
            let seconds = |of: fn(&Cost) -> Duration| {
                costs.iter().map(|cost| of(cost).as_secs_f64()).fold(f64::MAX, f64::min)
            };
            println!(
                "| {version} | {} | {:.2} | {:.3} | {:.1} |",
                heads + 1,
                million / seconds(|cost| cost.wall),
                seconds(|cost| cost.cpu) / million,
                costs[0].memory_bytes as f64 / 1e6,
            );
        }
    }
}

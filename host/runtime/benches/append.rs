//! The cost of WebAssembly: the same remote-write bodies into the same log on disk, once through
//! the component and once through the native engine. Each pass appends a fleet's scrapes to a
//! fresh store.
//!
//! `cargo bench -p tidepool-runtime --bench append`; divide by the samples per pass that it prints.

#[path = "../tests/image/mod.rs"]
mod image;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tidepool_disk::wal::{Logs, SEGMENT_BYTES_DEFAULT};
use tidepool_disk::{BlockDirs, Compression, DataDir, SyncPolicy, Wal, WalOptions};
use tidepool_engine::engine::{Engine, RemoteWriteVersion, Role, Storage};
use tidepool_engine::head::HeadOptions;
use tidepool_engine::memory::MemoryBudget;
use tidepool_engine::model::LabelLimits;
use tidepool_engine::storage::memory::MemoryBlocks;
use tidepool_engine::storage::{
    self, LogKind, StorageError, StorageResult, WalBatch, WalCheckpoint,
};
use tidepool_runtime::{Instance, InstanceLimits, InstanceLogs, InstanceStorage, Runtime};
use tidepool_tests::remote_write::{Version, message_bytes};
use tidepool_tests::series::{Dataset, Shape, Texture};

const BLOCK_DURATION_MS: i64 = 7_200_000;
const FUTURE_LIMIT_MS: i64 = 600_000;
/// Number of samples in a request, as Prometheus sends them.
const ROWS_PER_REQUEST: usize = 2000;

/// Connects the native engine to the host's log.
struct DiskWal(Wal);

fn failed(error: impl ToString) -> StorageError {
    StorageError::Io { reason: error.to_string() }
}

impl storage::Wal for DiskWal {
    fn append(&mut self, _: LogKind, records: &[Vec<u8>]) -> StorageResult<u32> {
        self.0.append(records).map_err(failed)
    }

    fn replay(&mut self, bytes_max: u32) -> StorageResult<Option<WalBatch>> {
        let batch = self.0.replay_batch(bytes_max).map_err(failed)?;
        Ok(batch.map(|batch| WalBatch {
            log: LogKind::InOrder,
            segment: batch.segment,
            records: batch.records.iter().collect(),
        }))
    }

    fn cut_segment(&mut self, _: LogKind) -> StorageResult<u32> {
        self.0.cut_segment().map_err(failed)
    }

    fn truncate_out_of_order(&mut self, _: u32) -> StorageResult<()> {
        Err(failed("nothing comes out of order here"))
    }

    fn checkpoint(&mut self, _: u32) -> StorageResult<Box<dyn WalCheckpoint>> {
        Err(failed("no block is cut here"))
    }
}

const WAL_OPTIONS: WalOptions = WalOptions {
    sync: SyncPolicy::Off,
    segment_bytes_max: SEGMENT_BYTES_DEFAULT,
    compression: Compression::Snappy,
};

fn open_data(dir: &TempDir) -> DataDir {
    DataDir::open(dir.path()).expect("a fresh data directory")
}

fn open_native() -> (Engine, TempDir) {
    let dir = TempDir::new().expect("a temporary directory");
    let wal = Wal::open(&open_data(&dir), WAL_OPTIONS).expect("a fresh log");
    let options = HeadOptions {
        block_duration_ms: BLOCK_DURATION_MS,
        future_limit_ms: FUTURE_LIMIT_MS,
        out_of_order_window_ms: 0,
        series_max: 0,
        exemplars_max: 1000,
        memory: MemoryBudget::UNBOUNDED,
        label_limits: LabelLimits::NONE,
        hash_seed: 1,
    };
    let blocks = Rc::new(MemoryBlocks::default());
    let storage = Storage { wal: Box::new(DiskWal(wal)), blocks, head: None };
    let mut engine = Engine::open(Role::Head, options, storage).expect("sound options");
    while !engine.replay(1).expect("a fresh log").done {}
    (engine, dir)
}

fn open_wasm(runtime: &Runtime) -> (Instance, TempDir) {
    let dir = TempDir::new().expect("a temporary directory");
    let data = open_data(&dir);
    let logs = Logs::open(&data, WAL_OPTIONS).expect("fresh logs");
    let options = tidepool_runtime::Options {
        future_limit_ms: FUTURE_LIMIT_MS,
        exemplars_max: 1000,
        hash_seed: 1,
        ..tidepool_runtime::Options::without_limits(tidepool_runtime::Role::Head, BLOCK_DURATION_MS)
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

fn append(criterion: &mut Criterion) {
    let shape = Shape {
        seed: 1,
        series: 10_000,
        scrapes: 40,
        start_ms: 1_800_000_000_000,
        interval_ms: 15_000,
        texture: Texture::Regular,
    };
    let data = Dataset::generate(shape);
    let now_ms = data.time_range_ms().map_or(0, |(_, end_ms)| end_ms);
    image::install();
    let runtime = Runtime::shared().expect("the component");
    let mut group = criterion.benchmark_group("append");
    group.sample_size(10).throughput(Throughput::Elements(data.sample_count()));
    println!("{} samples per pass", data.sample_count());
    for (version, name) in [(Version::V1, "1.0"), (Version::V2, "2.0")] {
        let bodies: Vec<Vec<u8>> = data
            .requests(ROWS_PER_REQUEST)
            .iter()
            .map(|rows| message_bytes(version, rows))
            .collect();
        let (native, component) = match version {
            Version::V1 => (RemoteWriteVersion::V1, tidepool_runtime::RemoteWriteVersion::V1),
            Version::V2 => (RemoteWriteVersion::V2, tidepool_runtime::RemoteWriteVersion::V2),
        };
        group.bench_function(format!("{name}/native"), |bencher| {
            let pass = |(engine, _dir): &mut (Engine, TempDir)| {
                for body in &bodies {
                    let outcome = engine.append_remote_write(native, body, now_ms);
                    assert_eq!(outcome.expect("a sound body").refused, 0);
                }
            };
            bencher.iter_batched_ref(open_native, pass, BatchSize::PerIteration);
        });
        group.bench_function(format!("{name}/wasm"), |bencher| {
            let pass = |(instance, _dir): &mut (Instance, TempDir)| {
                for body in &bodies {
                    let outcome = instance.append_remote_write(component, body, now_ms);
                    assert_eq!(outcome.expect("a sound body").refused, 0);
                }
            };
            bencher.iter_batched_ref(|| open_wasm(&runtime), pass, BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, append);
criterion_main!(benches);

//! The store: an async handle to the engine's instances and the data directory, with back-pressure.
//! It owns the threads of head and compactor, the disk's space, and storage's flags and metrics.
//!
//! ```text
//!  append ──▶ bounded queue ──▶ head thread: the head instance, one call at a time
//!                                   ▲ cursors, plan-cut, truncate
//!  read ────▶ read thread: an instance per read ───┤
//!             compactor thread: an instance per cut┘
//!                 ▲ delete, clean tombstones, snapshot
//! ```
//!
//! Invariants: a read or a cut that crashes or exceeds its limits ends alone. If the head instance
//! crashes, a new one replays the log; until then senders are asked to retry. If the head instance
//! is stuck in a call, the process ends. No network thread waits for an instance.
//!
//! Begin with [`Store`] and [`StoreConfig`], which [`flags`] build. Code with reads of another kind
//! uses [`reading`]. This crate does not know HTTP, queries, plugins or senders.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod blocks;
mod buffer;
mod changes;
mod clock;
mod columns;
mod compaction_settings;
mod compactor;
mod config;
mod error;
mod figures;
pub mod flags;
mod head;
mod ledger;
mod lookup;
mod memory;
mod metrics;
mod oldest;
mod pinned;
mod readers;
pub mod reading;
mod remote_read;
mod replay_status;
mod room;
mod shortage;
mod space;
mod starts;
mod status;
mod supervised;
mod tasks;
mod unreplayed;

use blocks::DamagedBlocks;
pub use blocks::ListedBlock;
pub use buffer::Body;
pub use columns::SeriesNumbers;
pub use compaction_settings::{CompactionSettings, CompactionSettingsError, max_block_duration};
pub use compactor::{BLOCK_AHEAD_MS_MAX, snapshot_name};
use config::Live;
pub use config::StoreConfig;
pub use error::{StopError, StoreError};
pub use figures::StoreCounters;
pub use head::ScrapeRows;
pub use lookup::LookupPart;
pub use memory::{
    COMPACTOR_BYTES_MIN, MEMORY_LIMIT_BYTES_MIN, MemorySplit, QUERY_BYTES_MIN, available_bytes,
    default_limit_bytes,
};
pub use pinned::{PinConfig, Waiting};
pub use reading::SMALL_BYTES_MAX;
pub use remote_read::ReadPart;
pub use replay_status::{ReplayState, ReplayStatus};
pub use room::{BodyBudget, BodyRoom};
pub use shortage::Shortage;
pub use space::{DiskShare, SpaceFigures};
pub use status::Cardinality;
pub use tidepool_protocol::prom::read::{ReadFormat, ReadQuery};

use clock::Clock;
use compactor::Compactor;
use head::{HeadHandle, HeadInstance, HeadThread, Job, Rows, Stored};
use ledger::Ledger;
use lookup::Strings;
use memory::ReadMemory;
use oldest::OldestTimes;
use readers::Readers;
use space::Space;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tasks::{Task, TaskSender, task_queue};
use tidepool_disk::{BlockDirs, DataDir, Quarantine, RecordFormat, WriteAccounts};
use tidepool_lifecycle::open_files;
use tidepool_protocol::prom::selection::SelectionCount;
use tidepool_runtime::{
    Instance, InstanceLimits, InstanceLogs, InstanceStorage, Label, Lookup, MemoryPool, Options,
    RemoteWriteVersion, Role, Runtime, WriteOutcome,
};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// A handle to the store; clones share it.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

/// State that the store's threads share.
struct Shared {
    config: StoreConfig,
    runtime: Runtime,
    data: DataDir,
    /// Format of floats in the log, which does not change while the process runs.
    record_format: RecordFormat,
    blocks: BlockDirs,
    space: Space,
    wear: Arc<WriteAccounts>,
    live: Mutex<Live>,
    quarantine: Quarantine,
    head: HeadHandle,
    tasks: TaskSender,
    clock: Clock,
    read_memory: ReadMemory,
    readers: Arc<Readers>,
    read_slots: Arc<Semaphore>,
    ledger: Arc<Ledger>,
    damaged_blocks: DamagedBlocks,
    counters: StoreCounters,
    oldest: OldestTimes,
    stopping: AtomicBool,
}

/// The store's threads. [`Store::close`] waits for them.
pub struct StoreThreads {
    /// Returns an error if the log may lack acknowledged records.
    head: std::thread::JoinHandle<Result<(), StopError>>,
    compactor: std::thread::JoinHandle<()>,
    /// Receives the error if the head cannot start.
    pub failed: oneshot::Receiver<StoreError>,
}

impl Store {
    /// Locks the data directory and starts the threads. The log is replayed in the background;
    /// until it is, [`Store::is_ready`] returns false and calls are refused.
    pub fn open(config: StoreConfig) -> Result<(Store, StoreThreads), StoreError> {
        config.memory.check()?;
        let runtime = Runtime::shared().map_err(|e| StoreError::Runtime(format!("{e:#}")))?;
        let data = DataDir::open(&config.data_dir)?;
        let open_files_max = config.open_block_files_max.unwrap_or_else(open_files::of_blocks);
        data.open_files().set_open_max(open_files_max);
        data.quarantine().set_clock(tidepool_lifecycle::clock::system_now_ms);
        data.quarantine().set_bytes_max(config.quarantine_bytes_max);
        let (record_format, reason) = data.settle_record_format(config.record_format)?;
        tracing::info!(records = %record_format, %reason, "format of floats in the WAL");
        if config.holds_log {
            data.holding().turn_on();
        }
        let (head, jobs) = HeadHandle::new();
        let (sender, tasks) = task_queue();
        let read_memory = ReadMemory::new(&config.memory);
        let shared = Arc::new(Shared {
            runtime,
            blocks: BlockDirs::open(&data),
            space: Space::new(&data, config.disk_reserve),
            wear: data.wear(),
            live: Mutex::new(Live::of(&config, &data)?),
            data: data.clone(),
            record_format,
            quarantine: data.quarantine().clone(),
            head,
            tasks: sender,
            clock: Clock::new(millis(config.future_limit)),
            ledger: Arc::default(),
            damaged_blocks: DamagedBlocks::default(),
            read_memory,
            readers: Arc::default(),
            read_slots: Arc::new(Semaphore::new(config.reads_max)),
            counters: StoreCounters::default(),
            oldest: OldestTimes::default(),
            stopping: AtomicBool::new(false),
            config,
        });
        let (fail, failed) = oneshot::channel();
        let head_thread = HeadThread::new(Arc::clone(&shared), data.clone());
        let head = spawn("head", move || head_thread.run(&jobs, fail))?;
        let compactor = Compactor {
            shared: Arc::clone(&shared),
            data,
            tasks,
            reported: Vec::new(),
            waiting: Waiting::default(),
            ahead: Vec::new(),
            has_saved_settings: false,
            halvings: 0,
        };
        let compactor = spawn("compactor", move || compactor.run())?;
        Ok((Store { shared }, StoreThreads { head, compactor, failed }))
    }

    /// Applies retention, reserve, and the limits of reads that begin after the reload.
    pub fn reload(&self, config: &StoreConfig) -> Result<(), StoreError> {
        let mut live = Live::of(config, &self.shared.data)?;
        // Kept, because the memory of reads was divided at the start.
        live.query_limits.memory_bytes_max = self.shared.live().query_limits.memory_bytes_max;
        *self.shared.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
        self.shared.space.set_reserve(config.disk_reserve);
        Ok(())
    }

    /// Returns whether the log is replayed and the head accepts calls.
    pub fn is_ready(&self) -> bool {
        self.shared.head.is_ready()
    }

    /// Stores a decompressed remote-write body. Its memory is counted in `room` until the head has
    /// it. Success means that the log has the rows, as durably as its sync policy promises.
    pub async fn append(
        &self,
        version: RemoteWriteVersion,
        body: impl Into<Body>,
        room: BodyRoom,
    ) -> Result<WriteOutcome, StoreError> {
        let rows = Rows::RemoteWrite { version, body: body.into() };
        Ok(self.append_rows(rows, room).await?.written)
    }

    async fn append_rows(&self, rows: Rows, room: BodyRoom) -> Result<Stored, StoreError> {
        // Checked now, and again when the job runs: jobs before it may fill the disk.
        self.shared.head.check_ready()?;
        self.shared.check_replayed()?;
        self.shared.space.check()?;
        let (reply, answer) = oneshot::channel();
        self.shared.head.send(Job::Append { rows, reply, room })?;
        answer.await.map_err(|_| StoreError::Stopped)?
    }

    /// Starts a read. Series get external labels in addition to their own. The answer arrives in
    /// parts; dropping the receiver ends the read.
    pub async fn read(
        &self,
        queries: Vec<ReadQuery>,
        format: ReadFormat,
        external_labels: Vec<Label>,
    ) -> Result<mpsc::Receiver<Result<ReadPart, StoreError>>, StoreError> {
        self.read_beside(&self.shared.read_slots, queries, format, external_labels).await
    }

    /// Like [`Store::read`], for callers with their own slots, which use no slot of other reads.
    pub async fn read_beside(
        &self,
        slots: &Arc<Semaphore>,
        queries: Vec<ReadQuery>,
        format: ReadFormat,
        external_labels: Vec<Label>,
    ) -> Result<mpsc::Receiver<Result<ReadPart, StoreError>>, StoreError> {
        // Checked before the read needs a slot and a thread.
        SelectionCount::check(queries.iter().map(|query| &query.matchers))?;
        let read = remote_read::Read { queries, format, external_labels };
        self.reading().answer_in(slots, move |reading, parts| read.run(reading, parts)).await
    }

    /// Looks up label names. The answer arrives in parts; dropping the receiver ends the lookup.
    pub async fn label_names(
        &self,
        lookup: Lookup,
    ) -> Result<mpsc::Receiver<Result<LookupPart<String>, StoreError>>, StoreError> {
        SelectionCount::check(&lookup.matcher_sets)?;
        let run = move |reading: &_, parts: &_| Strings::LabelNames.run(reading, &lookup, parts);
        self.reading().answer(run).await
    }

    /// Looks up the values of a label name. The answer arrives in parts.
    pub async fn label_values(
        &self,
        name: String,
        lookup: Lookup,
    ) -> Result<mpsc::Receiver<Result<LookupPart<String>, StoreError>>, StoreError> {
        SelectionCount::check(&lookup.matcher_sets)?;
        let values = Strings::LabelValues(name);
        let run = move |reading: &_, parts: &_| values.run(reading, &lookup, parts);
        self.reading().answer(run).await
    }

    /// Looks up series: returns their labels, ascending by name. The answer arrives in parts.
    pub async fn series(
        &self,
        lookup: Lookup,
    ) -> Result<mpsc::Receiver<Result<LookupPart<Vec<Label>>, StoreError>>, StoreError> {
        SelectionCount::check(&lookup.matcher_sets)?;
        let run = move |reading: &_, parts: &_| lookup::run_series(reading, &lookup, parts);
        self.reading().answer(run).await
    }

    /// Creates an instance that opens no store. It makes requests for one forwarding destination.
    pub fn forwarding_instance(&self, memory_bytes_max: usize) -> Result<Instance, StoreError> {
        let storage = InstanceStorage {
            logs: InstanceLogs::None,
            blocks: self.shared.blocks.clone(),
            head: None,
            memory: None,
        };
        let limits = InstanceLimits { memory_bytes_max, deadline: None };
        Ok(self.shared.runtime.instantiate_closed(storage, limits)?)
    }

    pub fn data(&self) -> &DataDir {
        &self.shared.data
    }

    /// Returns the memory that reads share. A read that keeps its answer uses a part of it.
    pub fn read_memory(&self) -> Arc<MemoryPool> {
        Arc::clone(&self.shared.read_memory.pool)
    }

    /// Returns how the memory of the process is divided among its parts.
    pub fn memory_split(&self) -> MemorySplit {
        self.shared.config.memory
    }

    /// Ends the head's instance like a fault would, for tests of the restart.
    #[doc(hidden)]
    pub async fn crash_head(&self) -> Result<(), StoreError> {
        self.shared.head.call(|head: &mut HeadInstance| head.instance.run_out_of_memory()).await
    }

    pub fn config(&self) -> &StoreConfig {
        &self.shared.config
    }

    /// Finishes queued jobs, syncs the log and ends the threads. Errors describe possible losses.
    pub fn close(self, threads: StoreThreads) -> Result<(), StopError> {
        self.shared.stopping.store(true, Relaxed);
        self.shared.read_slots.close();
        self.shared.readers.close();
        // Can fail only if the queue is full, and then the compactor need not be woken.
        let _ = self.shared.tasks.send(Task::Wake);
        // The compactor ends first, because its slices call the head.
        if threads.compactor.join().is_err() {
            tracing::error!(thread = "compactor", "a thread of the store panicked");
        }
        // An error means that the head thread has already ended.
        let _ = self.shared.head.send(Job::Stop);
        threads.head.join().unwrap_or_else(|_| {
            tracing::error!(thread = "head", "a thread of the store panicked");
            Ok(())
        })
    }
}

impl Shared {
    /// Drops idle instances of readers that were made before the last change of blocks.
    fn drop_outdated_readers(&self) {
        self.readers.drop_outdated(self.blocks.changes());
    }

    fn live(&self) -> Live {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&self, role: Role) -> Options {
        let live = self.live();
        let memory_bytes_max = match role {
            Role::Head => self.config.memory.head_bytes,
            Role::Compactor => self.config.memory.compactor_bytes,
            _ => 0,
        };
        Options {
            role,
            memory_bytes_max,
            block_duration_ms: millis(self.config.block_duration),
            future_limit_ms: millis(self.config.future_limit),
            out_of_order_window_ms: millis(self.config.out_of_order_window),
            series_max: self.config.series_max,
            exemplars_max: self.config.exemplars_max,
            label_limits: self.config.label_limits,
            block_duration_max_ms: self.config.block_duration_max.map_or(0, millis),
            retention_ms: millis(live.retention),
            retention_bytes: live.retention_bytes,
            hash_seed: random_seed(),
        }
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<std::thread::JoinHandle<T>, StoreError> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|error| StoreError::Runtime(format!("could not start a thread: {error}")))
}

pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a random number. The source is the seed of the standard library's hashers.
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u64)
}

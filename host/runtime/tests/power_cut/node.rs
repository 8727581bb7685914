//! A store on a simulated disk, as `host/store/src` runs it, but on one thread and call by call: a
//! head instance with the logs, and a new instance of the component for each compaction and read.

use crate::model::StoredSamples;
use crate::sim_disk::SimDisk;
use crate::{BLOCK_MS, RETENTION_MS, TestResult, WINDOW_MS};
use prost::Message as _;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tidepool_disk::fs::{Disk as _, DiskEntry};
use tidepool_disk::wal::Logs;
use tidepool_disk::{BlockDirs, Compression, DataDir, SnapshotWriter, SyncPolicy, WalOptions};
use tidepool_runtime::{
    BlockState, CallError, CompactProgress, Damage, Error, FrameFormat, HeadAccess,
    HeadCursorHandle, HeadDeletion, HeadLost, HeadOpened, HeadPage, Instance, InstanceLimits,
    InstanceLogs, InstanceStorage, Label, Lookup, Matcher, Options, RemoteWriteVersion, Role, Room,
    Runtime, Selection, Severity, TimeRange, WriteOutcome,
};
use tidepool_tests::proto::prometheus::QueryResult;

/// Path of the data directory on the simulated disk.
pub const DATA_DIR: &str = "/var/data";

/// Small, so that segments also end because of their length.
const SEGMENT_BYTES_MAX: u64 = 64 * 1024;

const REPLAY_BYTES: u32 = 16 * 1024;

const LIMITS: InstanceLimits = InstanceLimits { memory_bytes_max: 1 << 30, deadline: None };

/// A store with its logs, head and blocks.
pub struct Node {
    runtime: Runtime,
    data: DataDir,
    blocks: BlockDirs,
    logs: Arc<Mutex<Logs>>,
    head: Arc<DirectHead>,
    /// Blocks that are excluded from merging.
    left: Vec<String>,
    /// Damaged blocks that instances reported.
    pub bad: Vec<Damage>,
}

/// The head's instance, called directly by the other instances.
struct DirectHead {
    instance: Mutex<Instance>,
    cursors: Mutex<(u64, HashMap<u64, HeadCursorHandle>)>,
}

impl Node {
    /// Starts the store and replays the logs.
    pub fn open(runtime: &Runtime, disk: &SimDisk, sync: SyncPolicy) -> TestResult<Node> {
        let data = DataDir::open_on(Arc::new(disk.clone()), DATA_DIR)?;
        let blocks = BlockDirs::open(&data);
        let compression = Compression::Snappy;
        let options = WalOptions { segment_bytes_max: SEGMENT_BYTES_MAX, compression, sync };
        let logs = Arc::new(Mutex::new(Logs::open(&data, options)?));
        let storage = InstanceStorage {
            logs: InstanceLogs::Owned(Arc::clone(&logs)),
            blocks: blocks.clone(),
            head: None,
            memory: None,
        };
        let mut instance = runtime.instantiate(options_of(Role::Head), storage, LIMITS)?;
        while !instance.replay(REPLAY_BYTES)?.done {}
        data.retire_head_caches(&mut lock(&logs))?;
        let head = DirectHead { instance: Mutex::new(instance), cursors: Mutex::default() };
        let (runtime, head) = (runtime.clone(), Arc::new(head));
        Ok(Node { runtime, data, blocks, logs, head, left: Vec::new(), bad: Vec::new() })
    }

    /// Writes floats by columns from now on.
    pub fn log_by_columns(&mut self) -> TestResult {
        Ok(lock(&self.head.instance).log_by_columns()?)
    }

    pub fn append(
        &self,
        version: RemoteWriteVersion,
        body: &[u8],
        now_ms: i64,
    ) -> Result<WriteOutcome, CallError> {
        lock(&self.head.instance).append_remote_write(version, body, now_ms)
    }

    /// Ends a group of writes as the head thread does; on success they may be answered.
    pub fn finish_group(&self, is_waited_for: bool) -> TestResult {
        lock(&self.logs).sync_if_due(Instant::now(), is_waited_for)?;
        Ok(())
    }

    pub fn sync(&self) -> TestResult {
        Ok(lock(&self.logs).sync()?)
    }

    /// Returns whether a cut is due.
    pub fn wants_cut(&self) -> TestResult<bool> {
        Ok(lock(&self.head.instance).plan_cut()?.is_some())
    }

    /// Makes all cuts and merges that are due.
    pub fn compact(&mut self, now_ms: i64) -> TestResult {
        let mut instance = self.instance(Role::Compactor, self.blocks.clone())?;
        instance.exclude(&self.left)?;
        self.work(instance, now_ms, Instance::compact)
    }

    /// Rewrites blocks with deleted samples.
    pub fn clean_tombstones(&mut self, now_ms: i64) -> TestResult {
        let instance = self.instance(Role::Compactor, self.blocks.clone())?;
        self.work(instance, now_ms, Instance::clean_tombstones)
    }

    fn work(
        &mut self,
        mut instance: Instance,
        now_ms: i64,
        slice: impl Fn(&mut Instance, i64, Room) -> Result<CompactProgress, CallError>,
    ) -> TestResult {
        let room = Room {
            free_bytes: self.data.free_bytes()?,
            other_bytes: 0,
            memory_bytes: LIMITS.memory_bytes_max as u64,
        };
        loop {
            let progress = slice(&mut instance, now_ms, room)?;
            for left in progress.bad.iter().chain(&progress.unmerged) {
                self.left.push(left.where_.split('/').next().unwrap_or_default().to_owned());
            }
            self.bad.extend(progress.bad);
            if progress.done {
                return Ok(());
            }
        }
    }

    /// Deletes from the head and from blocks; on success the deletion is durable.
    pub fn delete(&self, matchers: &[Matcher], range: TimeRange) -> TestResult {
        let selectors = [matchers.to_vec()];
        lock(&self.head.instance).delete(&selectors, range)?;
        self.sync()?;
        let mut instance = self.instance(Role::Compactor, self.blocks.clone())?;
        let deletion = instance.delete(&selectors, range)?;
        match deletion.bad.first() {
            Some(bad) => Err(format!("nothing deleted from {}: {}", bad.where_, bad.reason).into()),
            None => Ok(()),
        }
    }

    /// Makes a snapshot that includes the head.
    pub fn snapshot(&self, name: &str, now_ms: i64) -> TestResult {
        let snapshot = SnapshotWriter::begin(&self.data, name, 0)?;
        for block in self.blocks.list()? {
            snapshot.add_block(&block)?;
        }
        let mut instance = self.instance(Role::Compactor, snapshot.blocks())?;
        while !instance.snapshot_head(now_ms)?.done {}
        drop(instance);
        snapshot.commit()?;
        Ok(())
    }

    /// Reads the selected series; values are compared by their bits.
    pub fn read(&self, matchers: Vec<Matcher>) -> TestResult<StoredSamples> {
        let mut instance = self.instance(Role::Query, self.blocks.clone())?;
        let cursor = instance.select(&Selection {
            matchers,
            range: TimeRange { start_ms: i64::MIN, end_ms: i64::MAX },
            format: FrameFormat::Samples,
            query_index: 0,
            frame_bytes_max: 0,
            samples_max: 0,
            external_labels: Vec::new(),
        })?;
        let mut answer = Vec::new();
        loop {
            let frames = instance.next_frames(cursor, 1 << 20)?;
            if frames.is_empty() {
                break;
            }
            answer.extend(frames);
        }
        instance.close_cursor(cursor)?;
        let mut found = StoredSamples::new();
        for series in QueryResult::decode(&*answer)?.timeseries {
            let pair = |label: &tidepool_tests::proto::prometheus::Label| {
                format!("{}={:?}", label.name, label.value)
            };
            let labels = series.labels.iter().map(pair).collect::<Vec<_>>().join(",");
            let samples = found.entry(labels.clone()).or_default();
            for sample in series.samples {
                if samples.insert(sample.timestamp, sample.value.to_bits()).is_some() {
                    return Err(format!("{labels} at {} came twice", sample.timestamp).into());
                }
            }
        }
        Ok(found)
    }

    /// Verifies every block, including those of snapshots.
    pub fn verify_blocks(&self, disk: &SimDisk) -> TestResult {
        self.verify(&self.blocks)?;
        let snapshots = Path::new(DATA_DIR).join("snapshots");
        // On a copy: opening a directory leaves a lock in it.
        let disk = Arc::new(disk.fork());
        let listed = disk.list(&snapshots).unwrap_or_default();
        // One that could not be finished, nor removed, is no snapshot.
        let is_whole = |entry: &&DiskEntry| entry.name().is_some_and(|n| !n.ends_with(".tmp"));
        for snapshot in listed.iter().filter(is_whole) {
            let data = DataDir::open_on(Arc::clone(&disk) as _, snapshots.join(&snapshot.name))?;
            self.verify(&BlockDirs::open(&data))?;
        }
        Ok(())
    }

    fn verify(&self, blocks: &BlockDirs) -> TestResult {
        if let Some(block) = blocks.incomplete()?.first() {
            return Err(format!("half a block: {block}").into());
        }
        if blocks.list()?.is_empty() {
            return Ok(());
        }
        let storage = InstanceStorage {
            logs: InstanceLogs::None,
            blocks: blocks.clone(),
            head: None,
            memory: None,
        };
        let mut instance = self.runtime.instantiate_closed(storage, LIMITS)?;
        for block in instance.blocks()? {
            let id = match block {
                BlockState::Sound(info) => info.id,
                BlockState::Damaged(damage) => {
                    return Err(format!("{} is damaged: {}", damage.where_, damage.reason).into());
                }
            };
            let check = instance.verify(&id)?;
            loop {
                let step = instance.verify_next(check)?;
                for found in step.findings {
                    if found.severity == Severity::Error {
                        let (file, offset) = (found.file, found.offset);
                        return Err(format!("{id}/{file} at {offset}: {}", found.reason).into());
                    }
                }
                if step.done {
                    break;
                }
            }
            instance.close_verification(check)?;
        }
        Ok(())
    }

    fn instance(&self, role: Role, blocks: BlockDirs) -> TestResult<Instance> {
        let head = Some(Arc::clone(&self.head) as Arc<dyn HeadAccess>);
        let storage = InstanceStorage { logs: InstanceLogs::None, blocks, head, memory: None };
        Ok(self.runtime.instantiate(options_of(role), storage, LIMITS)?)
    }
}

fn options_of(role: Role) -> Options {
    Options {
        future_limit_ms: i64::MAX / 4,
        out_of_order_window_ms: WINDOW_MS,
        retention_ms: RETENTION_MS,
        hash_seed: 7,
        ..Options::without_limits(role, BLOCK_MS)
    }
}

impl DirectHead {
    /// Calls the instance with a cursor.
    fn with_cursor<T>(
        &self,
        cursor: u64,
        call: impl FnOnce(&mut Instance, HeadCursorHandle) -> Result<T, CallError>,
    ) -> Result<T, Error> {
        let cursors = lock(&self.cursors);
        let handle = cursors.1.get(&cursor).ok_or(HeadLost::Restarted)?;
        Ok(call(&mut lock(&self.instance), *handle)?)
    }
}

impl HeadAccess for DirectHead {
    fn open(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
        external_labels: Vec<Label>,
    ) -> Result<HeadOpened<u64>, Error> {
        let opened = lock(&self.instance).read_head(&matcher_sets, range, &external_labels);
        Ok(opened?.map(|handle| {
            let mut cursors = lock(&self.cursors);
            cursors.0 += 1;
            let number = cursors.0;
            cursors.1.insert(number, handle);
            number
        }))
    }

    fn next(&self, cursor: u64, bytes_max: u32) -> Result<HeadPage, Error> {
        self.with_cursor(cursor, |head, handle| head.next_of_head(handle, bytes_max))
    }

    fn labels(&self, cursor: u64, bytes_max: u32, only_in_range: bool) -> Result<HeadPage, Error> {
        self.with_cursor(cursor, |head, handle| {
            head.labels_of_head(handle, bytes_max, only_in_range)
        })
    }

    fn keep(&self, cursor: u64, positions: Vec<u32>) -> Result<(), Error> {
        self.with_cursor(cursor, |head, handle| head.keep_of_head(handle, &positions))
    }

    fn rewind(&self, cursor: u64) -> Result<(), Error> {
        self.with_cursor(cursor, Instance::rewind_head)
    }

    fn delete(&self, cursor: u64) -> Result<HeadDeletion, Error> {
        self.with_cursor(cursor, Instance::delete_from_head)
    }

    fn close(&self, number: u64) {
        if let Some(handle) = lock(&self.cursors).1.remove(&number) {
            // An instance that trapped is found out by the next call.
            let _ = lock(&self.instance).close_head_cursor(handle);
        }
    }

    fn plan_cut(&self) -> Result<Option<TimeRange>, Error> {
        Ok(lock(&self.instance).plan_cut()?)
    }

    fn truncate(&self, before_ms: i64) -> Result<bool, Error> {
        Ok(lock(&self.instance).truncate(before_ms)?)
    }

    fn deletion_mark(&self) -> Result<u64, Error> {
        Ok(lock(&self.instance).deletion_mark()?)
    }

    fn label_names(&self, _: Lookup) -> Result<HeadOpened<u64>, Error> {
        Err(no_lookups())
    }

    fn label_values(&self, _: String, _: Lookup) -> Result<HeadOpened<u64>, Error> {
        Err(no_lookups())
    }

    fn next_strings(&self, _: u64, _: u32) -> Result<Vec<String>, Error> {
        Err(no_lookups())
    }

    fn scan_exemplars(&self, _: TimeRange) -> Result<u64, Error> {
        Err(no_lookups())
    }

    fn next_exemplars(&self, _: u64, _: u32) -> Result<Option<Vec<u8>>, Error> {
        Err(no_lookups())
    }
}

fn no_lookups() -> Error {
    Error::Invalid("nothing is looked up here".into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

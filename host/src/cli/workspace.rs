//! A data directory, and engine instances on it, for commands.

use super::progress::warn_line;
use super::{CliError, Progress};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tidepool_disk::wal::{LogReader, Logs};
use tidepool_disk::{BlockDirs, DataDir, WalOptions};
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::{
    BlockState, Instance, InstanceLimits, InstanceLogs, InstanceStorage, Options, Role, Runtime,
};

/// Default duration of a block in milliseconds, as in upstream.
pub const BLOCK_DURATION_MS: i64 = 7_200_000;

/// Size in bytes of the part of a log that one call replays.
const REPLAY_BYTES: u32 = 1024 * 1024;

/// A data directory on which a command works. A server may be running on it.
pub struct Workspace {
    pub data: DataDir,
    pub blocks: BlockDirs,
    runtime: Runtime,
    memory_bytes_max: usize,
}

impl Workspace {
    pub fn look(path: &Path, memory_bytes_max: u64) -> Result<Workspace, CliError> {
        Workspace::new(DataDir::open_read_only(path)?, memory_bytes_max)
    }

    /// Opens an existing directory for changes, and locks it.
    pub fn own(path: &Path, memory_bytes_max: u64) -> Result<Workspace, CliError> {
        // Opening for changes would create a missing directory.
        DataDir::open_read_only(path)?;
        Workspace::create(path, memory_bytes_max)
    }

    /// Opens a directory for changes, and creates it if it is missing.
    pub fn create(path: &Path, memory_bytes_max: u64) -> Result<Workspace, CliError> {
        Workspace::new(DataDir::open(path)?, memory_bytes_max)
    }

    fn new(data: DataDir, memory_bytes_max: u64) -> Result<Workspace, CliError> {
        let runtime = Runtime::shared().map_err(|error| CliError::Runtime(format!("{error:#}")))?;
        data.quarantine().set_clock(system_now_ms);
        let blocks = BlockDirs::open(&data);
        let memory_bytes_max = usize::try_from(memory_bytes_max).unwrap_or(usize::MAX);
        Ok(Workspace { data, blocks, runtime, memory_bytes_max })
    }

    pub fn memory_bytes_max(&self) -> usize {
        self.memory_bytes_max
    }

    /// Starts an instance that inspects single blocks. No store is opened in it.
    pub fn inspector(&self) -> Result<Instance, CliError> {
        self.inspector_of(self.blocks.clone())
    }

    /// Starts an instance as `inspector` does, but for other blocks.
    pub fn inspector_of(&self, blocks: BlockDirs) -> Result<Instance, CliError> {
        let storage =
            InstanceStorage { logs: InstanceLogs::None, blocks, head: None, memory: None };
        Ok(self.runtime.instantiate_closed(storage, self.limits())?)
    }

    /// Starts an instance with all blocks and the logs, which it may change.
    pub fn owner(&self, options: Options) -> Result<Instance, CliError> {
        // Keeps segments that destinations of forwarding have not read yet, for the next server.
        self.data.hold_for_readers()?;
        let logs = Logs::open(&self.data, WalOptions::default())?;
        let logs = InstanceLogs::Owned(Arc::new(Mutex::new(logs)));
        let mut instance = self.runtime.instantiate(options, self.storage(logs), self.limits())?;
        replay(&mut instance)?;
        Ok(instance)
    }

    /// Starts an instance that reads all blocks and the current content of the logs.
    pub fn reader(&self) -> Result<Instance, CliError> {
        self.reader_beside(self.blocks.clone())
    }

    /// Starts a reading instance with other blocks, to which it may add blocks.
    pub fn reader_beside(&self, blocks: BlockDirs) -> Result<Instance, CliError> {
        let logs = InstanceLogs::ReadOnly(Box::new(LogReader::open(&self.data)?));
        let storage = InstanceStorage { logs, blocks, head: None, memory: None };
        let mut instance = self.runtime.instantiate(options(Role::All), storage, self.limits())?;
        replay(&mut instance)?;
        Ok(instance)
    }

    fn storage(&self, logs: InstanceLogs) -> InstanceStorage {
        InstanceStorage { logs, blocks: self.blocks.clone(), head: None, memory: None }
    }

    fn limits(&self) -> InstanceLimits {
        InstanceLimits { memory_bytes_max: self.memory_bytes_max, deadline: None }
    }
}

/// Replays the logs to their end, with a progress bar.
fn replay(instance: &mut Instance) -> Result<(), CliError> {
    let progress = Progress::spinner("reading the log");
    loop {
        let step = instance.replay(REPLAY_BYTES)?;
        if step.done {
            return Ok(());
        }
        progress
            .say(format!("reading the log, segment {}, {} samples", step.segment, step.samples));
    }
}

/// Prints the damaged blocks, which reads leave out; returns whether there are any.
pub fn report_damaged(blocks: &[BlockState]) -> bool {
    let mut any = false;
    for block in blocks {
        if let BlockState::Damaged(damage) = block {
            any = true;
            let (place, reason) = (&damage.where_, &damage.reason);
            warn_line(&format!("{place} is left out: {reason}; `tidepool tsdb verify` says more"));
        }
    }
    any
}

/// Returns options without limits, because the stored samples were accepted under limits.
pub fn options(role: Role) -> Options {
    Options {
        hash_seed: tidepool_store::random_seed(),
        ..Options::without_limits(role, BLOCK_DURATION_MS)
    }
}

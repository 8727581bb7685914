//! A data directory and engine instances over it, for commands.

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

/// Span of a block, as upstream has it.
pub const BLOCK_DURATION_MS: i64 = 7_200_000;

/// Bytes of log that are replayed in one call.
const REPLAY_BYTES: u32 = 1024 * 1024;

/// A data directory that a command works on, possibly beside a server.
pub struct Workspace {
    pub data: DataDir,
    pub blocks: BlockDirs,
    runtime: Runtime,
    memory_bytes_max: usize,
}

impl Workspace {
    /// For reading only.
    pub fn look(path: &Path, memory_bytes_max: u64) -> Result<Workspace, CliError> {
        Workspace::new(DataDir::open_read_only(path)?, memory_bytes_max)
    }

    /// For changes: takes the lock. The directory must exist.
    pub fn own(path: &Path, memory_bytes_max: u64) -> Result<Workspace, CliError> {
        DataDir::open_read_only(path)?;
        Workspace::create(path, memory_bytes_max)
    }

    /// To be changed, and made if it is missing.
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

    /// Bytes of memory that an instance may take.
    pub fn memory_bytes_max(&self) -> usize {
        self.memory_bytes_max
    }

    /// An instance that is asked for blocks only; it is not opened as a store.
    pub fn inspector(&self) -> Result<Instance, CliError> {
        self.inspector_of(self.blocks.clone())
    }

    /// An instance over other blocks; it is not opened as a store.
    pub fn inspector_of(&self, blocks: BlockDirs) -> Result<Instance, CliError> {
        let storage =
            InstanceStorage { logs: InstanceLogs::None, blocks, head: None, memory: None };
        Ok(self.runtime.instantiate_closed(storage, self.limits())?)
    }

    /// An instance with all blocks and the logs, which it may change.
    pub fn owner(&self, options: Options) -> Result<Instance, CliError> {
        // The node's destinations have yet to read what is dropped from the log.
        self.data.hold_for_readers()?;
        let logs = Logs::open(&self.data, WalOptions::default())?;
        let logs = InstanceLogs::Owned(Arc::new(Mutex::new(logs)));
        let mut instance = self.runtime.instantiate(options, self.storage(logs), self.limits())?;
        replay(&mut instance)?;
        Ok(instance)
    }

    /// An instance with all blocks, and with what the logs hold at this moment.
    pub fn reader(&self) -> Result<Instance, CliError> {
        self.reader_beside(self.blocks.clone())
    }

    /// The same, but with other blocks: links to these, to which it may add.
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

/// Reads the log to its end.
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

/// Tells of blocks that reads leave out; returns whether there are any.
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

/// Nothing is limited: what was stored has passed all limits.
pub fn options(role: Role) -> Options {
    Options {
        hash_seed: tidepool_store::random_seed(),
        ..Options::without_limits(role, BLOCK_DURATION_MS)
    }
}

//! State between calls: data directory, blocks and logs, opened by the first call that needs it.

use crate::bindings::tidepool::tsdb::types::StorageError;
use crate::messages;
use std::cell::RefCell;
use std::time::Duration;
use tidepool_disk::wal::{LogKind, Logs, ReplayBatch, SYNC_INTERVAL_DEFAULT};
use tidepool_disk::{BlockDirs, DataDir, DiskError, SyncPolicy, WalOptions};

pub struct State {
    pub data: DataDir,
    pub blocks: BlockDirs,
    logs: LogState,
}

enum LogState {
    /// The logs are not open yet.
    Closed,
    /// The logs are open. Once they are replayed, `is_read` is set, and they may be written.
    Open { logs: Box<Logs>, is_read: bool },
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
    static SYNC: RefCell<Duration> = const { RefCell::new(SYNC_INTERVAL_DEFAULT) };
}

/// Sets the maximum time that a record waits for its sync, for logs that are opened later.
pub fn set_sync_interval(interval: Duration) {
    SYNC.replace(interval);
}

/// Calls a function with the state. The first call opens the directory.
pub fn with<T>(call: impl FnOnce(&mut State) -> Result<T, DiskError>) -> Result<T, StorageError> {
    STATE.with_borrow_mut(|state| {
        let state = match state {
            Some(state) => state,
            // After an error there is still no state, so the next call retries.
            none => none.insert(State::open()?),
        };
        call(state).map_err(storage_error)
    })
}

/// Same as [`with`], but returns `None` if the directory is not open.
pub fn with_opened<T>(
    call: impl FnOnce(&mut State) -> Result<T, DiskError>,
) -> Option<Result<T, StorageError>> {
    let is_open = STATE.with_borrow(Option::is_some);
    is_open.then(|| with(call))
}

impl State {
    fn open() -> Result<State, StorageError> {
        messages::to_stderr();
        let given = wasip2::filesystem::preopens::get_directories();
        let Some((_, path)) = given.first() else {
            return Err(StorageError::Io(
                "no directory was given: the store needs one to keep its data in, as by \
                 `wasmtime run --dir DIR`"
                    .into(),
            ));
        };
        let data = DataDir::open(path).map_err(storage_error)?;
        let blocks = BlockDirs::open(&data);
        Ok(State { data, blocks, logs: LogState::Closed })
    }

    /// Returns the next records for a replay; `None` at the end of the logs.
    pub fn replay(&mut self, bytes_max: u32) -> Result<Option<(LogKind, ReplayBatch)>, DiskError> {
        // A reopened store replays from the start, so records in memory are written first.
        if matches!(self.logs, LogState::Open { is_read: true, .. }) {
            self.sync()?;
            self.logs = LogState::Closed;
        }
        let batch = self.opened_logs()?.replay_batch(bytes_max)?;
        if let LogState::Open { is_read, .. } = &mut self.logs {
            *is_read = batch.is_none();
        }
        Ok(batch)
    }

    /// Returns the logs, and opens them first if they are closed.
    pub fn opened_logs(&mut self) -> Result<&mut Logs, DiskError> {
        if let LogState::Closed = self.logs {
            let sync = SyncPolicy::Interval(SYNC.with_borrow(|interval| *interval));
            let logs = Logs::open(&self.data, WalOptions { sync, ..WalOptions::default() })?;
            self.logs = LogState::Open { logs: Box::new(logs), is_read: false };
        }
        match &mut self.logs {
            LogState::Open { logs, .. } => Ok(logs),
            // Unreachable, but the lints of this crate forbid a panic.
            LogState::Closed => Err(DiskError::WalNotReplayed),
        }
    }

    pub fn sync(&mut self) -> Result<(), DiskError> {
        match &mut self.logs {
            LogState::Open { logs, .. } => logs.sync(),
            LogState::Closed => Ok(()),
        }
    }
}

/// Converts an error to the contract's type, in which a full disk and a missing file are distinct.
pub fn storage_error(error: DiskError) -> StorageError {
    let text = error.to_string();
    match () {
        () if error.is_no_space() => StorageError::NoSpace(text),
        () if error.is_not_found() => StorageError::NotFound(text),
        () => StorageError::Io(text),
    }
}

//! `wal`: the in-order and the out-of-order log of the data directory.

use crate::Component;
use crate::bindings::exports::tidepool::tsdb::wal::{
    Batch, Checkpoint, Guest, GuestCheckpoint, Log,
};
use crate::bindings::tidepool::tsdb::types::StorageError;
use crate::state::{self, storage_error};
use std::cell::RefCell;
use std::time::Instant;
use tidepool_disk::wal::{CheckpointWriter, LogKind, Records};

/// A checkpoint being written, or the error of creating it, which a WIT constructor cannot return.
pub struct OpenCheckpoint(RefCell<Result<CheckpointWriter, StorageError>>);

impl Guest for Component {
    type Checkpoint = OpenCheckpoint;

    fn append(log: Log, records: Vec<Vec<u8>>) -> Result<u32, StorageError> {
        state::with(|state| {
            let logs = state.opened_logs()?;
            let segment = logs.get(log.into())?.append(&records)?;
            // Nothing runs between calls, so each append does the syncs that are due.
            logs.sync_if_due(Instant::now(), false)?;
            Ok(segment)
        })
    }

    fn replay(bytes_max: u32) -> Result<Option<Batch>, StorageError> {
        let next = state::with(|state| state.replay(bytes_max))?;
        Ok(next.map(|(log, next)| {
            let Records { bytes, lengths } = next.records;
            Batch { log: log.into(), segment: next.segment, bytes, lengths }
        }))
    }

    fn cut_segment(log: Log) -> Result<u32, StorageError> {
        state::with(|state| state.opened_logs()?.get(log.into())?.cut_segment())
    }

    fn truncate_out_of_order(last_segment: u32) -> Result<(), StorageError> {
        state::with(|state| state.opened_logs()?.get(LogKind::OutOfOrder)?.truncate(last_segment))
    }
}

impl GuestCheckpoint for OpenCheckpoint {
    fn new(last_segment: u32) -> OpenCheckpoint {
        let begun = state::with(|state| {
            state.opened_logs()?.get(LogKind::InOrder)?.checkpoint(last_segment)
        });
        // An error is returned by the first call of `append` or `commit`.
        OpenCheckpoint(RefCell::new(begun))
    }

    fn append(&self, records: Vec<Vec<u8>>) -> Result<(), StorageError> {
        match &mut *self.0.borrow_mut() {
            Ok(writer) => writer.append(&records).map_err(storage_error),
            Err(error) => Err(error.clone()),
        }
    }

    fn commit(this: Checkpoint) -> Result<(), StorageError> {
        let OpenCheckpoint(begun) = this.into_inner();
        begun.into_inner()?.commit().map_err(storage_error)
    }
}

impl From<Log> for LogKind {
    fn from(log: Log) -> LogKind {
        match log {
            Log::InOrder => LogKind::InOrder,
            Log::OutOfOrder => LogKind::OutOfOrder,
        }
    }
}

impl From<LogKind> for Log {
    fn from(log: LogKind) -> Log {
        match log {
            LogKind::InOrder => Log::InOrder,
            LogKind::OutOfOrder => Log::OutOfOrder,
        }
    }
}

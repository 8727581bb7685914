//! The import `wal`: the two logs of the data directory.

use super::storage_error;
use crate::StorageError;
use crate::bindings::tidepool::tsdb::wal::{Batch, Host, HostCheckpoint, Log};
use crate::state::{InstanceLogs, InstanceState};
use tidepool_disk::DiskError;
use tidepool_disk::wal::{CheckpointWriter, DamagedPlace, LogKind, LogReader, Logs, Records};
use wasmtime::Result;
use wasmtime::component::Resource;

/// A checkpoint being written, or the error of opening it, which a constructor cannot return.
pub struct Checkpoint(Result<CheckpointWriter, StorageError>);

impl InstanceState {
    /// Whether there is a log that keeps nothing, of one segment.
    fn drops_records(&self) -> bool {
        matches!(self.storage.logs, InstanceLogs::Dropped)
    }

    /// Runs `call` on the logs. Only the instance that owns the head has logs; a call by another
    /// role is a bug, and traps.
    fn with_logs<T>(
        &self,
        call: impl FnOnce(&mut Logs) -> Result<T, DiskError>,
    ) -> Result<Result<T, StorageError>> {
        let logs = match &self.storage.logs {
            InstanceLogs::Owned(logs) => logs,
            InstanceLogs::ReadOnly(_) | InstanceLogs::Unread => {
                return Ok(Err(StorageError::ReadOnly("the write-ahead log".into())));
            }
            InstanceLogs::None | InstanceLogs::Dropped => {
                wasmtime::bail!("this instance's role has no log")
            }
        };
        // A panic inside of the logs leaves them in an unknown state, so the instance ends.
        let mut logs =
            logs.lock().map_err(|_| wasmtime::format_err!("the logs' lock is poisoned"))?;
        Ok(call(&mut logs).map_err(storage_error))
    }
}

fn kind(log: Log) -> LogKind {
    match log {
        Log::InOrder => LogKind::InOrder,
        Log::OutOfOrder => LogKind::OutOfOrder,
    }
}

fn wit_kind(log: LogKind) -> Log {
    match log {
        LogKind::InOrder => Log::InOrder,
        LogKind::OutOfOrder => Log::OutOfOrder,
    }
}

fn batch(log: LogKind, segment: u32, records: Records) -> Batch {
    let Records { bytes, lengths } = records;
    Batch { log: wit_kind(log), segment, bytes, lengths }
}

/// Returns the next records, skipping damaged ones.
fn look(reader: &mut LogReader, bytes_max: u32) -> Option<Batch> {
    loop {
        let piece = reader.next(bytes_max)?;
        // Reported here, because no repair reports damage in a log that is opened for reading only.
        for DamagedPlace { offset, bytes, cause } in &piece.damaged {
            tracing::warn!(
                path = %piece.path.display(), offset, bytes, %cause,
                "WAL segment is damaged; skipped unreadable records. Run `tidepool tsdb verify` \
                 for details"
            );
        }
        if !piece.records.is_empty() {
            let records = piece.records.iter().map(|(_, record)| record).collect();
            return Some(batch(piece.log, piece.segment, records));
        }
    }
}

impl Host for InstanceState {
    fn append(&mut self, log: Log, records: Vec<Vec<u8>>) -> Result<Result<u32, StorageError>> {
        if self.drops_records() {
            return Ok(Ok(0));
        }
        self.with_logs(|logs| logs.append(kind(log), &records))
    }

    fn replay(&mut self, bytes_max: u32) -> Result<Result<Option<Batch>, StorageError>> {
        if let InstanceLogs::ReadOnly(reader) = &mut self.storage.logs {
            return Ok(Ok(look(reader, bytes_max)));
        }
        // The engine continues as if the logs were empty.
        if matches!(self.storage.logs, InstanceLogs::Unread | InstanceLogs::Dropped) {
            return Ok(Ok(None));
        }
        self.with_logs(|logs| {
            let next = logs.replay_batch(bytes_max)?;
            Ok(next.map(|(log, next)| batch(log, next.segment, next.records)))
        })
    }

    fn cut_segment(&mut self, log: Log) -> Result<Result<u32, StorageError>> {
        if self.drops_records() {
            return Ok(Ok(0));
        }
        self.with_logs(|logs| logs.cut_segment(kind(log)))
    }

    fn truncate_out_of_order(&mut self, last_segment: u32) -> Result<Result<(), StorageError>> {
        self.with_logs(|logs| logs.truncate_out_of_order(last_segment))
    }
}

impl HostCheckpoint for InstanceState {
    fn new(&mut self, last_segment: u32) -> Result<Resource<Checkpoint>> {
        let mut begun = None;
        let refused = self.with_logs(|logs| {
            // Kept for the first call that can return an error, which a constructor cannot.
            let checkpoint = logs.get(LogKind::InOrder)?.checkpoint(last_segment);
            begun = Some(checkpoint.map_err(storage_error));
            Ok(())
        })?;
        match (begun, refused) {
            (Some(begun), Ok(())) => Ok(self.table.push(Checkpoint(begun))?),
            _ => wasmtime::bail!("the log did not answer"),
        }
    }

    fn append(
        &mut self,
        checkpoint: Resource<Checkpoint>,
        records: Vec<Vec<u8>>,
    ) -> Result<Result<(), StorageError>> {
        Ok(match &mut self.table.get_mut(&checkpoint)?.0 {
            Ok(writer) => writer.append(&records).map_err(storage_error),
            Err(error) => Err(error.clone()),
        })
    }

    fn commit(&mut self, checkpoint: Resource<Checkpoint>) -> Result<Result<(), StorageError>> {
        // Removed before the commit: the call consumes the resource, whether it succeeds or not.
        let begun = self.table.delete(checkpoint)?.0;
        Ok(begun.and_then(|writer| writer.commit().map_err(storage_error)))
    }

    fn drop(&mut self, checkpoint: Resource<Checkpoint>) -> Result<()> {
        self.table.delete(checkpoint)?;
        Ok(())
    }
}

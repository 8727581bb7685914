//! `wal`: the log of the data directory.

use super::storage_error;
use crate::disk::wal::CheckpointWriter;
use crate::disk::{DiskError, Wal};
use crate::wasm::StorageError;
use crate::wasm::bindings::tidepool::tsdb::wal::{Batch, Host, HostCheckpoint};
use crate::wasm::state::InstanceState;
use wasmtime::Result;
use wasmtime::component::Resource;

/// A checkpoint being written, or why it could not be begun: a constructor cannot say.
pub struct Checkpoint(Result<CheckpointWriter, DiskError>);

impl InstanceState {
    /// The log. Only the instance that owns the head has one; another one that asks is a bug.
    fn with_wal<T>(
        &self,
        call: impl FnOnce(&mut Wal) -> Result<T, DiskError>,
    ) -> Result<Result<T, StorageError>> {
        let Some(wal) = &self.storage.wal else {
            wasmtime::bail!("this instance's role has no log");
        };
        let mut wal =
            wal.lock().map_err(|_| wasmtime::format_err!("the log's lock is poisoned"))?;
        Ok(call(&mut wal).map_err(storage_error))
    }
}

impl Host for InstanceState {
    fn append(&mut self, records: Vec<Vec<u8>>) -> Result<Result<u32, StorageError>> {
        self.with_wal(|wal| wal.append(&records))
    }

    fn replay(&mut self, bytes_max: u32) -> Result<Result<Option<Batch>, StorageError>> {
        self.with_wal(|wal| {
            let batch = wal.replay_batch(bytes_max)?;
            Ok(batch.map(|batch| Batch { segment: batch.segment, records: batch.records }))
        })
    }

    fn cut_segment(&mut self) -> Result<Result<u32, StorageError>> {
        self.with_wal(Wal::cut_segment)
    }
}

impl HostCheckpoint for InstanceState {
    fn new(&mut self, last_segment: u32) -> Result<Resource<Checkpoint>> {
        let mut begun = None;
        let refused = self.with_wal(|wal| {
            begun = Some(wal.checkpoint(last_segment));
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
            Err(error) => Err(StorageError::Io(error.to_string())),
        })
    }

    fn commit(&mut self, checkpoint: Resource<Checkpoint>) -> Result<Result<(), StorageError>> {
        let written = self.table.delete(checkpoint)?.0.and_then(CheckpointWriter::commit);
        Ok(written.map_err(storage_error))
    }

    fn drop(&mut self, checkpoint: Resource<Checkpoint>) -> Result<()> {
        self.table.delete(checkpoint)?;
        Ok(())
    }
}

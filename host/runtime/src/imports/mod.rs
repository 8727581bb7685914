//! The component's imports, one file per interface, answered from the disk crate and the store.

mod blocks;
mod head_source;
mod wal;

pub use head_source::{HeadCursor, HeadExemplars, HeadStrings};
pub use wal::Checkpoint;

use super::StorageError;
use super::state::InstanceState;
use tidepool_disk::DiskError;

impl super::bindings::tidepool::tsdb::types::Host for InstanceState {}

/// Converts an error of the disk crate to the contract's error.
fn storage_error(error: DiskError) -> StorageError {
    let text = error.to_string();
    match () {
        () if error.is_no_space() => StorageError::NoSpace(text),
        () if error.is_not_found() => StorageError::NotFound(text),
        () if matches!(error, DiskError::ReadOnly { .. }) => StorageError::ReadOnly(text),
        () => StorageError::Io(text),
    }
}

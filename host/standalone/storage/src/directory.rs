//! `directory`: sync and size of the data directory, for the embedder and for `front`.

use crate::Component;
use crate::bindings::exports::tidepool::standalone::directory::Guest;
use crate::bindings::tidepool::tsdb::types::StorageError;
use crate::state;
use std::time::Duration;

impl Guest for Component {
    fn sync_every(interval_ms: u32) {
        state::set_sync_interval(Duration::from_millis(interval_ms.into()));
    }

    fn sync() -> Result<(), StorageError> {
        // Does nothing unless a call has opened the directory, because then nothing was appended.
        state::with_opened(|state| state.sync()).unwrap_or(Ok(()))
    }

    fn other_bytes() -> Result<u64, StorageError> {
        state::with(|state| {
            Ok(state.data.size_bytes()?.saturating_sub(state.blocks.size_bytes_total()?))
        })
    }
}

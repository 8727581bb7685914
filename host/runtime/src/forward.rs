//! Calls of the exported interface `forward`, each named as in `wit/forward.wit`.

use super::bindings::exports::tidepool::tsdb::forward::{Guest, GuestDestination};
use super::instance::why_ended;
use super::state::InstanceState;
use super::{
    CallError, Error, Fed, Instance, Log, MetadataRequest, Place, RemoteWriteVersion, Request,
    ShardPosition, StoreWindow,
};
use tidepool_disk::wal::{LogKind, Records};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

pub use super::bindings::exports::tidepool::tsdb::forward::Settings as ForwardSettings;

/// An instance that makes requests for one forwarding destination.
pub struct Destination {
    instance: Instance,
    handle: ResourceAny,
}

impl Destination {
    /// Creates a destination that has read nothing.
    pub fn new(
        mut instance: Instance,
        settings: &ForwardSettings,
    ) -> Result<Destination, CallError> {
        // The constructor cannot fail: with invalid settings every later call is refused.
        let guest = instance.bindings.tidepool_tsdb_forward().destination();
        let made = guest.call_constructor(&mut instance.store, settings);
        let handle = made.map_err(|trap| why_ended(instance.store.data(), trap))?;
        Ok(Destination { instance, handle })
    }

    fn call<T>(
        &mut self,
        call: impl FnOnce(
            GuestDestination<'_>,
            &mut Store<InstanceState>,
            ResourceAny,
        ) -> wasmtime::Result<Result<T, Error>>,
    ) -> Result<T, CallError> {
        let guest: &Guest = self.instance.bindings.tidepool_tsdb_forward();
        let answer = call(guest.destination(), &mut self.instance.store, self.handle);
        let answer = answer.map_err(|trap| why_ended(self.instance.store.data(), trap))?;
        // Not converted by `From`, which separates a lost head: a destination reads no head.
        answer.map_err(CallError::Refused)
    }

    pub fn resume(&mut self, positions: &[ShardPosition], gaps: &[u8]) -> Result<(), CallError> {
        self.call(|guest, store, handle| guest.call_resume(store, handle, positions, gaps))
    }

    pub fn note_series(&mut self, segment: u32, records: &Records) -> Result<(), CallError> {
        let Records { bytes, lengths } = records;
        self.call(|g, store, handle| g.call_note_series(store, handle, segment, bytes, lengths))
    }

    pub fn drop_series(&mut self, before_segment: u32) -> Result<(), CallError> {
        self.call(|guest, store, handle| guest.call_drop_series(store, handle, before_segment))
    }

    pub fn feed(
        &mut self,
        log: LogKind,
        segment: u32,
        first: u32,
        bytes: &[u8],
        lengths: &[u32],
        capacity: u32,
    ) -> Result<Fed, CallError> {
        let log = wit_log(log);
        self.call(|guest, store, handle| {
            guest.call_feed(store, handle, log, segment, first, bytes, lengths, capacity)
        })
    }

    pub fn end_segment(&mut self, log: LogKind, segment: u32) -> Result<(), CallError> {
        let log = wit_log(log);
        self.call(|guest, store, handle| guest.call_end_segment(store, handle, log, segment))
    }

    pub fn detach(&mut self) -> Result<u64, CallError> {
        self.call(|guest, store, handle| guest.call_detach(store, handle))
    }

    pub fn attach(&mut self) -> Result<(), CallError> {
        self.call(|guest, store, handle| guest.call_attach(store, handle))
    }

    pub fn store_window(&mut self) -> Result<Option<StoreWindow>, CallError> {
        self.call(|guest, store, handle| guest.call_store_window(store, handle))
    }

    pub fn begin_store_window(&mut self, out_of_order_end: Place) -> Result<(), CallError> {
        self.call(|guest, store, handle| {
            guest.call_begin_store_window(store, handle, out_of_order_end)
        })
    }

    pub fn feed_store(&mut self, frames: &[u8], capacity: u32) -> Result<Fed, CallError> {
        self.call(|guest, store, handle| guest.call_feed_store(store, handle, frames, capacity))
    }

    pub fn end_store_window(&mut self) -> Result<(), CallError> {
        self.call(|guest, store, handle| guest.call_end_store_window(store, handle))
    }

    pub fn gap_rows(&mut self) -> Result<u64, CallError> {
        self.call(|guest, store, handle| guest.call_gap_rows(store, handle))
    }

    pub fn has_store_rows(&mut self) -> Result<bool, CallError> {
        self.call(|guest, store, handle| guest.call_has_store_rows(store, handle))
    }

    pub fn gaps(&mut self) -> Result<Vec<u8>, CallError> {
        self.call(|guest, store, handle| guest.call_gaps(store, handle))
    }

    pub fn take(
        &mut self,
        shard: u32,
        version: RemoteWriteVersion,
        rows_max: u32,
        not_before_ms: i64,
    ) -> Result<Option<Request>, CallError> {
        self.call(|guest, store, handle| {
            guest.call_take(store, handle, shard, version, rows_max, not_before_ms)
        })
    }

    pub fn done(&mut self, shard: u32) -> Result<(), CallError> {
        self.call(|guest, store, handle| guest.call_done(store, handle, shard))
    }

    pub fn pending(&mut self) -> Result<Vec<u32>, CallError> {
        self.call(|guest, store, handle| guest.call_pending(store, handle))
    }

    pub fn positions(&mut self) -> Result<Vec<ShardPosition>, CallError> {
        self.call(|guest, store, handle| guest.call_positions(store, handle))
    }

    pub fn reshard(&mut self, shards: u32) -> Result<bool, CallError> {
        self.call(|guest, store, handle| guest.call_reshard(store, handle, shards))
    }

    pub fn metadata(
        &mut self,
        after: &str,
        families_max: u32,
    ) -> Result<Option<MetadataRequest>, CallError> {
        self.call(|guest, store, handle| guest.call_metadata(store, handle, after, families_max))
    }

    pub fn series_count(&mut self) -> Result<u64, CallError> {
        self.call(|guest, store, handle| guest.call_series_count(store, handle))
    }
}

fn wit_log(log: LogKind) -> Log {
    match log {
        LogKind::InOrder => Log::InOrder,
        LogKind::OutOfOrder => Log::OutOfOrder,
    }
}

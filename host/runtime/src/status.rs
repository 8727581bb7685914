//! Calls that read exemplars, metadata of families, and cardinality.

use super::bindings::exports::tidepool::tsdb::store::CardinalityList;
use super::{CallError, FamilyMetadata, Instance, Matcher, Ranked, SeriesExemplars, TimeRange};
use wasmtime::component::ResourceAny;

/// A cursor of exemplars of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct ExemplarsHandle(ResourceAny);

/// A scan of exemplars of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct ScanHandle(ResourceAny);

/// A walk over the index of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct WalkHandle(ResourceAny);

impl Instance {
    pub fn exemplars(
        &mut self,
        matcher_sets: &[Vec<Matcher>],
        range: TimeRange,
    ) -> Result<ExemplarsHandle, CallError> {
        let opened = self.call(|guest, store| guest.call_exemplars(store, matcher_sets, range));
        opened.map(ExemplarsHandle)
    }

    pub fn next_exemplars(
        &mut self,
        cursor: ExemplarsHandle,
        bytes_max: u32,
    ) -> Result<Vec<SeriesExemplars>, CallError> {
        self.call(|guest, store| guest.exemplar_cursor().call_next(store, cursor.0, bytes_max))
    }

    pub fn close_exemplars(&mut self, cursor: ExemplarsHandle) -> Result<(), CallError> {
        self.drop_resource(cursor.0)
    }

    pub fn scan_exemplars(&mut self, range: TimeRange) -> Result<ScanHandle, CallError> {
        self.call(|guest, store| guest.call_scan_exemplars(store, range)).map(ScanHandle)
    }

    pub fn next_of_scan(
        &mut self,
        scan: ScanHandle,
        bytes_max: u32,
    ) -> Result<Option<Vec<u8>>, CallError> {
        self.call(|guest, store| guest.exemplar_scan().call_next(store, scan.0, bytes_max))
    }

    pub fn close_scan(&mut self, scan: ScanHandle) -> Result<(), CallError> {
        self.drop_resource(scan.0)
    }

    pub fn metadata(
        &mut self,
        first: &str,
        bytes_max: u32,
    ) -> Result<Vec<FamilyMetadata>, CallError> {
        self.call(|guest, store| guest.call_metadata(store, first, bytes_max))
    }

    pub fn cardinality(&mut self, items_max: u32) -> Result<WalkHandle, CallError> {
        self.call(|guest, store| guest.call_cardinality(store, items_max)).map(WalkHandle)
    }

    pub fn walk(&mut self, walk: WalkHandle) -> Result<Option<u64>, CallError> {
        self.call(|guest, store| guest.cardinality_walk().call_walk(store, walk.0))
    }

    pub fn next_of_walk(
        &mut self,
        walk: WalkHandle,
        list: CardinalityList,
        bytes_max: u32,
    ) -> Result<Vec<Ranked>, CallError> {
        self.call(|guest, store| guest.cardinality_walk().call_next(store, walk.0, list, bytes_max))
    }

    pub fn close_walk(&mut self, walk: WalkHandle) -> Result<(), CallError> {
        self.drop_resource(walk.0)
    }
}

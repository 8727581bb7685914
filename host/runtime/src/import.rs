//! Calls of the exported interface `backfill`, each named as in `wit/backfill.wit`.

use super::bindings::exports::tidepool::tsdb::backfill::Guest;
use super::instance::why_ended;
use super::state::InstanceState;
use super::{AppendStep, CallError, Error, Instance, Label, PassStep, Rows};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

/// An importer of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct ImporterHandle(ResourceAny);

impl Instance {
    fn backfill<T>(
        &mut self,
        call: impl FnOnce(&Guest, &mut Store<InstanceState>) -> wasmtime::Result<Result<T, Error>>,
    ) -> Result<T, CallError> {
        let guest = self.bindings.tidepool_tsdb_backfill();
        let answer = call(guest, &mut self.store);
        let answer = answer.map_err(|trap| why_ended(self.store.data(), trap))?;
        // Not converted by `From`, which separates a lost head: an import reads no head.
        answer.map_err(CallError::Refused)
    }

    pub fn import(
        &mut self,
        block_duration_ms: i64,
        bytes_max: u64,
        hash_seed: u64,
    ) -> Result<ImporterHandle, CallError> {
        // The constructor cannot fail: with an invalid duration every later call is refused.
        let importer = self.bindings.tidepool_tsdb_backfill().importer();
        let begun =
            importer.call_constructor(&mut self.store, block_duration_ms, bytes_max, hash_seed);
        begun.map(ImporterHandle).map_err(|trap| why_ended(self.store.data(), trap))
    }

    pub fn import_series(
        &mut self,
        importer: ImporterHandle,
        labels: &[Label],
    ) -> Result<u32, CallError> {
        self.backfill(|guest, store| guest.importer().call_series(store, importer.0, labels))
    }

    pub fn import_rows(
        &mut self,
        importer: ImporterHandle,
        rows: &Rows,
        now_ms: i64,
    ) -> Result<AppendStep, CallError> {
        self.backfill(|guest, store| guest.importer().call_append(store, importer.0, rows, now_ms))
    }

    pub fn finish_import_pass(
        &mut self,
        importer: ImporterHandle,
        now_ms: i64,
    ) -> Result<PassStep, CallError> {
        self.backfill(|guest, store| guest.importer().call_finish_pass(store, importer.0, now_ms))
    }
}

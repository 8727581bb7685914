//! Calls of the exported interface `inspect`, each named as in `wit/inspect.wit`.

use super::bindings::exports::tidepool::tsdb::inspect::Guest;
use super::instance::why_ended;
use super::state::InstanceState;
use super::{
    AnalysisOptions, AnalysisStep, BlockState, CallError, CheckStep, Error, Instance, Log,
    LogCounts, RecordFinding,
};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

/// An analysis of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct AnalysisHandle(ResourceAny);

/// A block verification of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct VerificationHandle(ResourceAny);

/// A log verification of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct LogVerificationHandle(ResourceAny);

impl Instance {
    /// Runs a call that the component cannot refuse.
    fn inspect<T>(
        &mut self,
        call: impl FnOnce(&Guest, &mut Store<InstanceState>) -> wasmtime::Result<T>,
    ) -> Result<T, CallError> {
        let guest = self.bindings.tidepool_tsdb_inspect();
        call(guest, &mut self.store).map_err(|trap| why_ended(self.store.data(), trap))
    }

    /// Runs a call that the component may refuse.
    fn try_inspect<T>(
        &mut self,
        call: impl FnOnce(&Guest, &mut Store<InstanceState>) -> wasmtime::Result<Result<T, Error>>,
    ) -> Result<T, CallError> {
        // Not converted by `From`, which separates a lost head: inspection reads no head.
        self.inspect(call)?.map_err(CallError::Refused)
    }

    pub fn blocks(&mut self) -> Result<Vec<BlockState>, CallError> {
        self.try_inspect(|guest, store| guest.call_blocks(store))
    }

    pub fn analyze(
        &mut self,
        block: &str,
        options: &AnalysisOptions,
    ) -> Result<AnalysisHandle, CallError> {
        self.try_inspect(|guest, store| guest.call_analyze(store, block, options))
            .map(AnalysisHandle)
    }

    pub fn analyze_next(&mut self, analysis: AnalysisHandle) -> Result<AnalysisStep, CallError> {
        self.try_inspect(|guest, store| guest.analysis().call_next(store, analysis.0))
    }

    pub fn verify(&mut self, block: &str) -> Result<VerificationHandle, CallError> {
        self.inspect(|guest, store| guest.verification().call_constructor(store, block))
            .map(VerificationHandle)
    }

    pub fn verify_next(&mut self, check: VerificationHandle) -> Result<CheckStep, CallError> {
        self.try_inspect(|guest, store| guest.verification().call_next(store, check.0))
    }

    pub fn close_verification(&mut self, check: VerificationHandle) -> Result<(), CallError> {
        self.drop_resource(check.0)
    }

    pub fn verify_logs(&mut self, blocks_end_ms: i64) -> Result<LogVerificationHandle, CallError> {
        self.inspect(|guest, store| guest.log_verification().call_constructor(store, blocks_end_ms))
            .map(LogVerificationHandle)
    }

    pub fn verify_records(
        &mut self,
        check: LogVerificationHandle,
        log: Log,
        records: &[Vec<u8>],
    ) -> Result<Vec<RecordFinding>, CallError> {
        self.inspect(|guest, store| {
            guest.log_verification().call_check(store, check.0, log, records)
        })
    }

    pub fn log_counts(&mut self, check: LogVerificationHandle) -> Result<LogCounts, CallError> {
        self.inspect(|guest, store| guest.log_verification().call_counts(store, check.0))
    }
}

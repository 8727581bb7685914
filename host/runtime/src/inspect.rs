//! The calls of the exported interface `inspect`.

use super::bindings::exports::tidepool::tsdb::inspect::Guest;
use super::instance::why_ended;
use super::state::InstanceState;
use super::{
    AnalysisOptions, AnalysisStep, BlockState, CallError, CheckStep, Error, Instance, Log,
    LogCounts, RecordFinding,
};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

/// An analysis of one instance; of no use to any other.
#[derive(Clone, Copy)]
pub struct AnalysisHandle(ResourceAny);

/// A check of a block of one instance; of no use to any other.
#[derive(Clone, Copy)]
pub struct VerificationHandle(ResourceAny);

/// A check of a log of one instance; of no use to any other.
#[derive(Clone, Copy)]
pub struct LogVerificationHandle(ResourceAny);

impl Instance {
    /// Runs a call that cannot be refused.
    fn inspect<T>(
        &mut self,
        call: impl FnOnce(&Guest, &mut Store<InstanceState>) -> wasmtime::Result<T>,
    ) -> Result<T, CallError> {
        let guest = self.bindings.tidepool_tsdb_inspect();
        call(guest, &mut self.store).map_err(|trap| why_ended(self.store.data(), trap))
    }

    /// Runs a call that may be refused.
    fn try_inspect<T>(
        &mut self,
        call: impl FnOnce(&Guest, &mut Store<InstanceState>) -> wasmtime::Result<Result<T, Error>>,
    ) -> Result<T, CallError> {
        self.inspect(call)?.map_err(CallError::Refused)
    }

    /// `inspect.blocks`
    pub fn blocks(&mut self) -> Result<Vec<BlockState>, CallError> {
        self.try_inspect(|guest, store| guest.call_blocks(store))
    }

    /// `inspect.analyze`
    pub fn analyze(
        &mut self,
        block: &str,
        options: &AnalysisOptions,
    ) -> Result<AnalysisHandle, CallError> {
        self.try_inspect(|guest, store| guest.call_analyze(store, block, options))
            .map(AnalysisHandle)
    }

    /// `inspect.analysis.next`
    pub fn analyze_next(&mut self, analysis: AnalysisHandle) -> Result<AnalysisStep, CallError> {
        self.try_inspect(|guest, store| guest.analysis().call_next(store, analysis.0))
    }

    /// Begins an `inspect.verification`.
    pub fn verify(&mut self, block: &str) -> Result<VerificationHandle, CallError> {
        self.inspect(|guest, store| guest.verification().call_constructor(store, block))
            .map(VerificationHandle)
    }

    /// `inspect.verification.next`
    pub fn verify_next(&mut self, check: VerificationHandle) -> Result<CheckStep, CallError> {
        self.try_inspect(|guest, store| guest.verification().call_next(store, check.0))
    }

    /// Ends a check.
    pub fn close_verification(&mut self, check: VerificationHandle) -> Result<(), CallError> {
        self.drop_resource(check.0)
    }

    /// Begins an `inspect.log-verification`.
    pub fn verify_logs(&mut self, blocks_end_ms: i64) -> Result<LogVerificationHandle, CallError> {
        self.inspect(|guest, store| guest.log_verification().call_constructor(store, blocks_end_ms))
            .map(LogVerificationHandle)
    }

    /// `inspect.log-verification.check`
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

    /// `inspect.log-verification.counts`
    pub fn log_counts(&mut self, check: LogVerificationHandle) -> Result<LogCounts, CallError> {
        self.inspect(|guest, store| guest.log_verification().call_counts(store, check.0))
    }
}

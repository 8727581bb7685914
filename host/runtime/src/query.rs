//! Calls of the exported interface `query`, which evaluates PromQL.

use super::bindings::exports::tidepool::tsdb::query::{self, Guest};
use super::instance::why_ended;
use super::state::InstanceState;
use super::{CallError, FirstPage, Instance, Matcher};
pub use query::{
    Annotation, BucketSpan, CounterReset, Estimate, NativeHistogram, ParseError, QueryError,
    QueryOptions, QueryStats, ResultFormat, ResultSeries, ValueType,
};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

/// An evaluation of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct EvaluationHandle(ResourceAny);

/// Times at which an expression is evaluated, in milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryTimes {
    Instant(i64),
    /// At the start, then at every step up to and including the end.
    Range {
        start_ms: i64,
        end_ms: i64,
        step_ms: i64,
    },
}

/// The engine's answer or the query's error. `CallError` is an error of instance or store.
type Answer<T> = Result<Result<T, QueryError>, CallError>;

impl Instance {
    pub fn evaluate(
        &mut self,
        expression: &str,
        times: QueryTimes,
        options: QueryOptions,
    ) -> Answer<EvaluationHandle> {
        // The engine selects series within this call, so the first page can come with the cursor.
        self.expect_first(Some(FirstPage::Series));
        let begun = self.query(|guest, store| match times {
            QueryTimes::Instant(time_ms) => guest.call_instant(store, expression, time_ms, options),
            QueryTimes::Range { start_ms, end_ms, step_ms } => {
                guest.call_range(store, expression, start_ms, end_ms, step_ms, options)
            }
        });
        Ok(begun?.map(EvaluationHandle))
    }

    pub fn close_evaluation(&mut self, evaluation: EvaluationHandle) -> Result<(), CallError> {
        self.drop_resource(evaluation.0)
    }

    pub fn prepare_evaluation(&mut self, evaluation: EvaluationHandle) -> Answer<Estimate> {
        self.query(|guest, store| guest.evaluation().call_prepare(store, evaluation.0))
    }

    pub fn next_of_query(
        &mut self,
        evaluation: EvaluationHandle,
        format: ResultFormat,
        bytes_max: u32,
    ) -> Answer<Vec<u8>> {
        self.query(|guest, store| {
            guest.evaluation().call_next_bytes(store, evaluation.0, format, bytes_max)
        })
    }

    /// The next series of an answer; none at its end. For answers that are not read by
    /// [`Instance::next_of_query`].
    pub fn next_series(
        &mut self,
        evaluation: EvaluationHandle,
        bytes_max: u32,
    ) -> Answer<Vec<ResultSeries>> {
        self.query(|guest, store| guest.evaluation().call_next(store, evaluation.0, bytes_max))
    }

    pub fn type_of_query(
        &mut self,
        evaluation: EvaluationHandle,
    ) -> Result<(ValueType, String), CallError> {
        let guest = self.bindings.tidepool_tsdb_query().evaluation();
        let kind = guest.call_value_type(&mut self.store, evaluation.0);
        let text =
            kind.and_then(|kind| Ok((kind, guest.call_text(&mut self.store, evaluation.0)?)));
        text.map_err(|trap| why_ended(self.store.data(), trap))
    }

    pub fn samples_per_step(
        &mut self,
        evaluation: EvaluationHandle,
    ) -> Result<Vec<u64>, CallError> {
        let guest = self.bindings.tidepool_tsdb_query();
        let samples = guest.evaluation().call_samples_per_step(&mut self.store, evaluation.0);
        samples.map_err(|trap| why_ended(self.store.data(), trap))
    }

    pub fn is_stepwise(&mut self, evaluation: EvaluationHandle) -> Result<bool, CallError> {
        let guest = self.bindings.tidepool_tsdb_query().evaluation();
        let is_stepwise = guest.call_is_stepwise(&mut self.store, evaluation.0);
        is_stepwise.map_err(|trap| why_ended(self.store.data(), trap))
    }

    pub fn is_sorted(&mut self, evaluation: EvaluationHandle) -> Result<bool, CallError> {
        let guest = self.bindings.tidepool_tsdb_query().evaluation();
        let is_sorted = guest.call_is_sorted(&mut self.store, evaluation.0);
        is_sorted.map_err(|trap| why_ended(self.store.data(), trap))
    }

    pub fn annotations(
        &mut self,
        evaluation: EvaluationHandle,
        texts_max: u32,
    ) -> Result<Vec<Annotation>, CallError> {
        let guest = self.bindings.tidepool_tsdb_query();
        let noted = guest.evaluation().call_annotations(&mut self.store, evaluation.0, texts_max);
        noted.map_err(|trap| why_ended(self.store.data(), trap))
    }

    pub fn remarks(&mut self, evaluation: EvaluationHandle) -> Result<Vec<u8>, CallError> {
        let guest = self.bindings.tidepool_tsdb_query();
        let remarks = guest.evaluation().call_remarks(&mut self.store, evaluation.0);
        remarks.map_err(|trap| why_ended(self.store.data(), trap))
    }

    pub fn add_remarks(&mut self, evaluation: EvaluationHandle, remarks: &[u8]) -> Answer<()> {
        self.query(|guest, store| guest.evaluation().call_add_remarks(store, evaluation.0, remarks))
    }

    pub fn query_stats(&mut self, evaluation: EvaluationHandle) -> Result<QueryStats, CallError> {
        let guest = self.bindings.tidepool_tsdb_query();
        let stats = guest.evaluation().call_stats(&mut self.store, evaluation.0);
        stats.map_err(|trap| why_ended(self.store.data(), trap))
    }

    pub fn format_query(
        &mut self,
        expression: &str,
        options: QueryOptions,
    ) -> Result<Result<String, ParseError>, CallError> {
        let guest = self.bindings.tidepool_tsdb_query();
        let formatted = guest.call_format(&mut self.store, expression, options);
        formatted.map_err(|trap| why_ended(self.store.data(), trap))
    }

    pub fn parse_query(
        &mut self,
        expression: &str,
        options: QueryOptions,
    ) -> Result<Result<String, ParseError>, CallError> {
        let guest = self.bindings.tidepool_tsdb_query();
        let tree = guest.call_parse(&mut self.store, expression, options);
        tree.map_err(|trap| why_ended(self.store.data(), trap))
    }

    pub fn selectors(
        &mut self,
        expression: &str,
        options: QueryOptions,
    ) -> Result<Result<Vec<Vec<Matcher>>, ParseError>, CallError> {
        let guest = self.bindings.tidepool_tsdb_query();
        let found = guest.call_selectors(&mut self.store, expression, options);
        found.map_err(|trap| why_ended(self.store.data(), trap))
    }

    fn query<T>(
        &mut self,
        call: impl FnOnce(&Guest, &mut Store<InstanceState>) -> wasmtime::Result<Result<T, QueryError>>,
    ) -> Answer<T> {
        self.check_deadline()?;
        let guest = self.bindings.tidepool_tsdb_query();
        match call(guest, &mut self.store) {
            // An error of the store is not caused by the expression, so it ends the call.
            Ok(Err(QueryError::Store(error))) => Err(error.into()),
            Ok(answer) => Ok(answer),
            Err(trap) => Err(why_ended(self.store.data(), trap)),
        }
    }
}

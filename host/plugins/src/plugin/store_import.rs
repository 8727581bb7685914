//! The imported interfaces `store` and `query`: a job's access to the store.

use super::batch::{Batch, Interest, View, write};
use super::bindings::job::tidepool::plugin::query;
use super::bindings::job::tidepool::plugin::store::{
    Annotation, Appended, Host, HostCursor, MatchOp, Matcher, StoreError as Refused,
};
use super::state::{CURSORS_MAX, PluginState};
use bytes::Bytes;
use std::time::Instant;
use tidepool_protocol::prom::fields::whole_fields;
use tidepool_query::{Expression, Queries, QueryPart};
use tidepool_runtime::{
    self, Error, QueryTimes, RemoteWriteVersion, ResultFormat, TimeRange, ValueType,
};
use tidepool_store::{BodyRoom, ReadFormat, ReadPart, ReadQuery, StoreError};
use tokio::sync::mpsc::Receiver;
use wasmtime::component::Resource;

/// An open answer, which a job reads part by part.
pub struct JobCursor {
    parts: Parts,
    /// The beginning of a series whose rest has not arrived yet.
    pending: Vec<u8>,
    /// Annotations of a query, which are complete at the end of the answer.
    annotations: Vec<Annotation>,
}

/// Source of an answer. The bytes of both variants are series of a `prometheus.QueryResult`.
enum Parts {
    Read(Receiver<Result<ReadPart, StoreError>>),
    Query(Receiver<Result<QueryPart, StoreError>>),
}

impl Host for PluginState {
    async fn select(
        &mut self,
        matchers: Vec<Matcher>,
        start_ms: i64,
        end_ms: i64,
    ) -> wasmtime::Result<Result<Resource<JobCursor>, Refused>> {
        let Some(queries) = self.queries()? else { return Ok(Err(no_store())) };
        if let Err(full) = self.check_cursors() {
            return Ok(Err(full));
        }
        let matchers = matchers.into_iter().map(matcher).collect();
        let query = ReadQuery { matchers, range: TimeRange { start_ms, end_ms } };
        // The job has its own permits, so that its reads do not use up `--read-concurrency`.
        let slots = &self.around.cursors;
        let store = queries.store();
        match store.read_beside(slots, vec![query], ReadFormat::TIME_SERIES, Vec::new()).await {
            Err(error) => Ok(Err(refused(&error))),
            Ok(parts) => Ok(Ok(self.open_cursor(Parts::Read(parts))?)),
        }
    }

    async fn append(&mut self, batch: Batch) -> wasmtime::Result<Result<Appended, Refused>> {
        let Some(queries) = self.queries()? else { return Ok(Err(no_store())) };
        // Checked first, so that invalid columns are an error even if there are no rows.
        let body = match write(&batch) {
            Ok(body) => body,
            Err(invalid) => return Ok(Err(Refused::Invalid(invalid.to_string()))),
        };
        if batch.rows() == 0 {
            return Ok(Ok(Appended { written: 0, refused: 0, reasons: Vec::new() }));
        }
        // A trial run records a copy, and appends to its temporary store.
        if let Some(record) = &self.around.record
            && record.appended(&body).is_err()
        {
            return Ok(Err(Refused::LimitExceeded("a trial run keeps no more output".to_owned())));
        }
        // Appended without transforms and observers, with which appends could form a loop.
        let appended = queries.store().append(RemoteWriteVersion::V2, body, BodyRoom::none()).await;
        Ok(match appended {
            Err(error) => Err(refused(&error)),
            Ok(outcome) => Ok(Appended {
                written: outcome.samples_written + outcome.histograms_written,
                refused: outcome.refused,
                reasons: outcome.refusals.into_iter().map(|refusal| refusal.detail).collect(),
            }),
        })
    }
}

impl query::Host for PluginState {
    async fn instant(
        &mut self,
        expression: String,
        time_ms: i64,
    ) -> wasmtime::Result<Result<Resource<JobCursor>, Refused>> {
        self.query(expression, QueryTimes::Instant(time_ms)).await
    }

    async fn range(
        &mut self,
        expression: String,
        start_ms: i64,
        end_ms: i64,
        step_ms: i64,
    ) -> wasmtime::Result<Result<Resource<JobCursor>, Refused>> {
        self.query(expression, QueryTimes::Range { start_ms, end_ms, step_ms }).await
    }
}

impl PluginState {
    async fn query(
        &mut self,
        text: String,
        times: QueryTimes,
    ) -> wasmtime::Result<Result<Resource<JobCursor>, Refused>> {
        let Some(queries) = self.queries()? else { return Ok(Err(no_store())) };
        if let Err(full) = self.check_cursors() {
            return Ok(Err(full));
        }
        let expression = Expression {
            text,
            times,
            format: ResultFormat::Protobuf,
            lookback: None,
            series_max: 0,
            // The query ends at the deadline of the call, after which its answer is not read.
            timeout: Some(self.deadline.saturating_duration_since(Instant::now())),
            per_step: false,
            is_fresh: false,
        };
        // Waits for the first part, so that this call returns an error of the query.
        let begun = match queries.query(expression).await {
            Ok(mut parts) => parts.recv().await.map(|first| first.map(|first| (first, parts))),
            Err(error) => Some(Err(error)),
        };
        self.check_time()?;
        match begun {
            None => Ok(Err(cut_short())),
            Some(Err(error)) => Ok(Err(refused(&error))),
            Some(Ok((QueryPart::Begin { kind: ValueType::String, .. }, _))) => {
                // A batch has no column for strings.
                Ok(Err(Refused::Invalid("the result of the expression is a string".into())))
            }
            Some(Ok((_, parts))) => Ok(Ok(self.open_cursor(Parts::Query(parts))?)),
        }
    }

    /// Returns the queries of the store. Traps if the deadline of the call has passed.
    fn queries(&self) -> wasmtime::Result<Option<Queries>> {
        self.check_time()?;
        Ok(self.around.queries.clone())
    }

    /// Traps if the deadline of the call has passed.
    fn check_time(&self) -> wasmtime::Result<()> {
        match Instant::now() < self.deadline {
            true => Ok(()),
            // Host calls run no WebAssembly, so an epoch cannot end them.
            false => Err(wasmtime::Trap::Interrupt.into()),
        }
    }

    fn check_cursors(&self) -> Result<(), Refused> {
        match self.open_cursors.len() < CURSORS_MAX {
            true => Ok(()),
            false => Err(Refused::LimitExceeded(format!(
                "{CURSORS_MAX} cursors are open, which is the limit; drop one first"
            ))),
        }
    }

    fn open_cursor(&mut self, parts: Parts) -> wasmtime::Result<Resource<JobCursor>> {
        let cursor =
            self.table.push(JobCursor { parts, pending: Vec::new(), annotations: Vec::new() })?;
        // Inserted after the push, which fails at the limit of resources.
        self.open_cursors.insert(cursor.rep());
        Ok(cursor)
    }
}

impl Parts {
    /// Returns the next bytes; `None` at the end, after which the annotations are complete.
    async fn next(&mut self, annotations: &mut Vec<Annotation>) -> Result<Option<Bytes>, Refused> {
        match self {
            Parts::Read(parts) => match parts.recv().await.ok_or_else(cut_short)? {
                Ok(ReadPart::Bytes(bytes)) => Ok(Some(bytes)),
                Ok(ReadPart::End) => Ok(None),
                Err(error) => Err(refused(&error)),
            },
            Parts::Query(parts) => match parts.recv().await.ok_or_else(cut_short)? {
                Ok(QueryPart::Bytes(bytes)) => Ok(Some(bytes)),
                Ok(QueryPart::Begin { .. }) => Ok(Some(Bytes::new())),
                Ok(QueryPart::End(end)) => {
                    annotations.extend(end.annotations.into_iter().map(annotation));
                    Ok(None)
                }
                Err(error) => Err(refused(&error)),
            },
        }
    }
}

impl HostCursor for PluginState {
    async fn next(
        &mut self,
        cursor: Resource<JobCursor>,
    ) -> wasmtime::Result<Result<Option<Batch>, Refused>> {
        let bytes_max = self.columns_bytes_max;
        if !self.open_cursors.contains(&cursor.rep()) {
            return Ok(Err(Refused::Unavailable(
                "the cursor was closed at the end of the call that opened it".into(),
            )));
        }
        let next = self.table.get_mut(&cursor)?.next(bytes_max).await;
        // The deadline may have passed during the read.
        self.check_time()?;
        Ok(next)
    }

    async fn annotations(
        &mut self,
        cursor: Resource<JobCursor>,
    ) -> wasmtime::Result<Vec<Annotation>> {
        match self.open_cursors.contains(&cursor.rep()) {
            true => Ok(self.table.get(&cursor)?.annotations.clone()),
            false => Ok(Vec::new()),
        }
    }

    async fn drop(&mut self, cursor: Resource<JobCursor>) -> wasmtime::Result<()> {
        // If the cursor was left open by its call, it was removed when the call ended.
        if self.open_cursors.remove(&cursor.rep()) {
            self.table.delete(cursor)?;
        }
        Ok(())
    }
}

impl JobCursor {
    async fn next(&mut self, bytes_max: usize) -> Result<Option<Batch>, Refused> {
        loop {
            let next = self.parts.next(&mut self.annotations).await?;
            let Some(bytes) = next else { return Ok(None) };
            self.pending.extend_from_slice(&bytes);
            // Parts are cut by size and may split a series, but a batch needs complete series.
            let whole = whole_fields(&self.pending);
            // Limited, because a series may be larger than the instance's memory.
            if whole == 0 && self.pending.len() > bytes_max {
                let what = format!("a series takes more than {bytes_max} bytes (limits.memory)");
                return Err(Refused::LimitExceeded(what));
            }
            if whole > 0 {
                // Series of an answer are encoded like those of a 1.0 request, as field 1.
                // Histograms have the same fields in 1.0 and 2.0.
                let series = self.pending.get(..whole).unwrap_or_default();
                let view = View::of(RemoteWriteVersion::V1, series, Interest::all(), bytes_max);
                let view = view.map_err(|error| Refused::LimitExceeded(error.to_string()))?;
                self.pending.drain(..whole);
                return Ok(Some(view.batch));
            }
        }
    }
}

fn annotation(annotation: tidepool_runtime::Annotation) -> Annotation {
    let tidepool_runtime::Annotation { is_warning, text } = annotation;
    Annotation { is_warning, text }
}

fn no_store() -> Refused {
    Refused::Unavailable("there is no store here".into())
}

fn cut_short() -> Refused {
    Refused::Unavailable("the answer was cut short".into())
}

fn refused(error: &StoreError) -> Refused {
    match error {
        StoreError::Expression(why) => Refused::Invalid(why.clone()),
        StoreError::Evaluation(why) => Refused::Evaluation(why.clone()),
        StoreError::Refused(Error::Invalid(why)) => Refused::Invalid(why.clone()),
        StoreError::Refused(Error::LimitExceeded(_)) | StoreError::TooMuchSelected(_) => {
            Refused::LimitExceeded(error.to_string())
        }
        _ => Refused::Unavailable(error.to_string()),
    }
}

fn matcher(matcher: Matcher) -> tidepool_runtime::Matcher {
    let op = match matcher.op {
        MatchOp::Equal => tidepool_runtime::MatchOp::Equal,
        MatchOp::NotEqual => tidepool_runtime::MatchOp::NotEqual,
        MatchOp::Regex => tidepool_runtime::MatchOp::Regex,
        MatchOp::NotRegex => tidepool_runtime::MatchOp::NotRegex,
    };
    tidepool_runtime::Matcher { name: matcher.name, op, value: matcher.value }
}

//! The imported interface `store`, answered from the store.

use super::batch::{Batch, Interest, View, write};
use super::bindings::job::tidepool::plugin::store::{
    Appended, Host, HostCursor, MatchOp, Matcher, StoreError as Refused,
};
use super::state::{CURSORS_MAX, PluginState};
use crate::prom::fields::whole_fields;
use crate::store::{BodyRoom, ReadFormat, ReadPart, ReadQuery, StoreError};
use crate::wasm::{self, Error, RemoteWriteVersion, TimeRange};
use tokio::sync::mpsc::Receiver;
use wasmtime::component::Resource;

/// An answer on its way to a job.
pub struct JobCursor {
    parts: Receiver<Result<ReadPart, StoreError>>,
    /// A series of which the end has not come.
    pending: Vec<u8>,
}

impl Host for PluginState {
    async fn select(
        &mut self,
        matchers: Vec<Matcher>,
        start_ms: i64,
        end_ms: i64,
    ) -> wasmtime::Result<Result<Resource<JobCursor>, Refused>> {
        let Some(store) = self.around.store.clone() else { return Ok(Err(no_store())) };
        if self.open_cursors.len() >= CURSORS_MAX {
            let what =
                format!("{CURSORS_MAX} cursors are open, which is the limit; drop one first");
            return Ok(Err(Refused::LimitExceeded(what)));
        }
        let matchers = matchers.into_iter().map(matcher).collect();
        let query = ReadQuery { matchers, range: TimeRange { start_ms, end_ms } };
        let slots = &self.around.cursors;
        match store.read_beside(slots, vec![query], ReadFormat::TimeSeries, Vec::new()).await {
            Err(error) => Ok(Err(refused(&error))),
            Ok(parts) => {
                let cursor = self.table.push(JobCursor { parts, pending: Vec::new() })?;
                self.open_cursors.insert(cursor.rep());
                Ok(Ok(cursor))
            }
        }
    }

    async fn append(&mut self, batch: Batch) -> wasmtime::Result<Result<Appended, Refused>> {
        let Some(store) = self.around.store.clone() else { return Ok(Err(no_store())) };
        let body = match write(&batch) {
            Ok(body) => body,
            Err(invalid) => return Ok(Err(Refused::Invalid(invalid.to_string()))),
        };
        if batch.rows() == 0 {
            return Ok(Ok(Appended { written: 0, refused: 0, reasons: Vec::new() }));
        }
        if let Some(record) = &self.around.record
            && record.appended(&body).is_err()
        {
            return Ok(Err(Refused::LimitExceeded("a trial run keeps no more output".to_owned())));
        }
        let appended = store.append(RemoteWriteVersion::V2, body, BodyRoom::none()).await;
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
        let cursor = self.table.get_mut(&cursor)?;
        Ok(cursor.next(bytes_max).await)
    }

    async fn drop(&mut self, cursor: Resource<JobCursor>) -> wasmtime::Result<()> {
        // One that its call has left open is gone already.
        if self.open_cursors.remove(&cursor.rep()) {
            self.table.delete(cursor)?;
        }
        Ok(())
    }
}

impl JobCursor {
    async fn next(&mut self, bytes_max: usize) -> Result<Option<Batch>, Refused> {
        loop {
            match self.parts.recv().await {
                None => return Err(Refused::Unavailable("the answer was cut short".into())),
                Some(Err(error)) => return Err(refused(&error)),
                Some(Ok(ReadPart::End)) => return Ok(None),
                Some(Ok(ReadPart::Bytes(bytes))) => self.pending.extend_from_slice(&bytes),
            }
            let whole = whole_fields(&self.pending);
            if whole == 0 && self.pending.len() > bytes_max {
                let what = format!("a series takes more than {bytes_max} bytes (limits.memory)");
                return Err(Refused::LimitExceeded(what));
            }
            if whole > 0 {
                // The series of an answer are those of a 1.0 request: field 1 of both.
                let series = self.pending.get(..whole).unwrap_or_default();
                let view = View::of(RemoteWriteVersion::V1, series, Interest::SAMPLES, bytes_max);
                let view = view.map_err(|error| Refused::LimitExceeded(error.to_string()))?;
                self.pending.drain(..whole);
                return Ok(Some(view.batch));
            }
        }
    }
}

fn no_store() -> Refused {
    Refused::Unavailable("there is no store here".into())
}

fn refused(error: &StoreError) -> Refused {
    match error {
        StoreError::Refused(Error::Invalid(why)) => Refused::Invalid(why.clone()),
        StoreError::Refused(Error::LimitExceeded(_)) | StoreError::TooMuchSelected(_) => {
            Refused::LimitExceeded(error.to_string())
        }
        _ => Refused::Unavailable(error.to_string()),
    }
}

fn matcher(matcher: Matcher) -> wasm::Matcher {
    let op = match matcher.op {
        MatchOp::Equal => wasm::MatchOp::Equal,
        MatchOp::NotEqual => wasm::MatchOp::NotEqual,
        MatchOp::Regex => wasm::MatchOp::Regex,
        MatchOp::NotRegex => wasm::MatchOp::NotRegex,
    };
    wasm::Matcher { name: matcher.name, op, value: matcher.value }
}

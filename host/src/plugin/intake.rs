//! What lies between a request and the store: transforms before it, observers after it.

use super::manager::Plugins;
use super::observers::Stored;
use super::transforms::{Request, nothing_written};
use crate::prom::write::REFUSALS_MAX;
use crate::store::{Body, BodyRoom, StoreError};
use crate::wasm::{RemoteWriteVersion, WriteOutcome};

impl Plugins {
    /// As `Store::append`, of what the transforms make of a request. The outcome counts what was
    /// sent.
    pub async fn append(
        &self,
        version: RemoteWriteVersion,
        body: Body,
        room: BodyRoom,
    ) -> Result<WriteOutcome, StoreError> {
        let mut transformed = self.transform(version, body).await?;
        let mut stored = nothing_written();
        for Request { version, body } in std::mem::take(&mut transformed.requests) {
            let seen = self.has_observers().then(|| Stored { version, body: body.to_vec().into() });
            // What was made of the request takes no room of its own: few are made at a time.
            let outcome = self.store().append(version, body, BodyRoom::beside(&room)).await?;
            if let Some(batch) = seen {
                self.observe(&batch);
            }
            add(&mut stored, outcome);
        }
        drop(room);
        Ok(transformed.outcome(stored))
    }
}

fn add(sum: &mut WriteOutcome, outcome: WriteOutcome) {
    sum.samples_written += outcome.samples_written;
    sum.histograms_written += outcome.histograms_written;
    sum.exemplars_written += outcome.exemplars_written;
    sum.refused += outcome.refused;
    let left = REFUSALS_MAX.saturating_sub(sum.refusals.len());
    sum.refusals.extend(outcome.refusals.into_iter().take(left));
}

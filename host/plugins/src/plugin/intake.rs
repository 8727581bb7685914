//! Writes that pass the plugins: transforms before the store, observers after it.

use super::manager::Plugins;
use super::observers::Stored;
use super::transforms::Request;
use tidepool_lifecycle::boxed::BoxFuture;
use tidepool_protocol::prom::write::{REFUSALS_MAX, clears, may_clear};
use tidepool_runtime::{RemoteWriteVersion, WriteOutcome, nothing_written};
use tidepool_store::{Body, BodyRoom, StoreError};

impl Plugins {
    /// Applies the transforms to a request and appends it. The outcome counts the rows as sent.
    pub fn append(
        &self,
        version: RemoteWriteVersion,
        body: Body,
        room: BodyRoom,
    ) -> BoxFuture<'_, Result<WriteOutcome, StoreError>> {
        Box::pin(self.append_transformed(version, body, room))
    }

    async fn append_transformed(
        &self,
        version: RemoteWriteVersion,
        body: Body,
        room: BodyRoom,
    ) -> Result<WriteOutcome, StoreError> {
        let mut transformed = self.transform(version, body).await?;
        let mut stored = nothing_written();
        for Request { version, body } in std::mem::take(&mut transformed.requests) {
            // Copied because the append consumes the body, and only if there are observers.
            let seen = self.has_observers().then(|| Stored { version, body: body.to_vec().into() });
            // Not reserved, because few requests are transformed at a time.
            let outcome = self.store().append(version, body, BodyRoom::beside(&room)).await?;
            // Observers see only what was stored, so they are called after the append.
            if let Some(batch) = seen {
                self.observe(&batch);
            }
            add(&mut stored, outcome);
        }
        drop(room);
        Ok(transformed.outcome(stored))
    }
}

/// Adds the outcome of a part. If a retry can cure a refusal, such a refusal is among those that
/// are described, because the description makes the sender retry.
fn add(sum: &mut WriteOutcome, outcome: WriteOutcome) {
    sum.samples_written += outcome.samples_written;
    sum.histograms_written += outcome.histograms_written;
    sum.exemplars_written += outcome.exemplars_written;
    sum.refused += outcome.refused;
    for refusal in outcome.refusals {
        if sum.refusals.len() >= REFUSALS_MAX {
            // The list is full: only the first curable refusal replaces another refusal.
            if !clears(refusal.reason) || may_clear(sum) {
                continue;
            }
            sum.refusals.pop();
        }
        sum.refusals.push(refusal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_runtime::{Refusal, RefusalReason};

    /// Returns an outcome with this number of rows refused.
    fn refused(reason: RefusalReason, count: u64) -> WriteOutcome {
        let refusal = Refusal { reason, detail: String::new(), timestamp_ms: 0 };
        let refusals = vec![refusal; (count as usize).min(REFUSALS_MAX)];
        WriteOutcome { refused: count, refusals, ..nothing_written() }
    }

    #[test]
    fn a_refusal_that_time_cures_is_never_hidden() {
        for curable in [RefusalReason::SeriesLimit, RefusalReason::MemoryLimit] {
            let mut sum = nothing_written();
            add(&mut sum, refused(RefusalReason::OutOfOrder, 12));
            assert!(!may_clear(&sum));
            add(&mut sum, refused(curable, 3));
            add(&mut sum, refused(RefusalReason::OutOfOrder, 12));
            assert!(may_clear(&sum), "{curable:?}");
            assert_eq!((sum.refused, sum.refusals.len()), (27, REFUSALS_MAX));
        }
    }
}

//! The store to which scrapes are written.
//!
//! ```text
//! samples, report ─▶ columns, by the numbers of their series ─┐
//! markers ─▶ numbers of series that end                       ├─▶ one job of the head
//! histograms, exemplars, metadata ─▶ requests, by labels ─────┘
//! ```
//!
//! While a plugin sees writes, all rows of a scrape are sent as requests, one after the other, and
//! markers are sent as samples.
//!
//! If the store drops a series in the meantime, the whole scrape is stored again. Samples that are
//! already stored are equal, so they are accepted.

use super::labelled::{LabelledSeries, is_labelled};
use super::request::{self, Rows};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidepool_plugins::intake::Intake;
use tidepool_protocol::prom::rows::Piece;
use tidepool_runtime::{
    Columns, Error, Label, Refusal, RefusalReason, RefusedRow, WriteOutcome, in_words,
};
use tidepool_scrape::labels::Labels;
use tidepool_scrape::store::{self as scrape, Appended, Batch, Reason, SeriesRef, SeriesRefused};
use tidepool_store::{BodyRoom, ScrapeRows, StoreError};
use tokio::task::spawn_blocking;

/// Number of low bits of a reference that hold the series number. The bits above hold the
/// generation of the head, which distinguishes references of an earlier head.
const NUMBER_BITS: u32 = 48;

/// Number of rows with labels above which encoding them takes too long for the scrape thread.
const MANY: usize = 2000;

pub struct ScrapeStore {
    intake: Intake,
    /// Label sets behind references, used while a plugin sees writes.
    labelled: Mutex<LabelledSeries>,
}

impl ScrapeStore {
    /// Creates a store on the intake that all writes share.
    pub fn new(intake: Intake) -> ScrapeStore {
        ScrapeStore { intake, labelled: Mutex::default() }
    }

    fn labelled(&self) -> MutexGuard<'_, LabelledSeries> {
        self.labelled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a scrape as one job of the head. Its samples are passed without labels.
    async fn append_at_once(&self, batch: Arc<Batch>) -> Result<Appended, scrape::StoreError> {
        let bodies = match batch.histograms.len() + batch.exemplars.len() + batch.metadata.len() {
            // Encoding many rows here would delay all targets, which share a thread.
            MANY.. => {
                let batch = Arc::clone(&batch);
                let made = spawn_blocking(move || request::pieces(&batch, None)).await;
                made.map_err(|error| scrape::StoreError::Unavailable {
                    reason: Reason::Other,
                    what: error.to_string(),
                })?
            }
            _ => request::pieces(&batch, None),
        };
        let rows = ScrapeRows {
            bodies: bodies.into_iter().map(|piece| (piece.version, piece.body.into())).collect(),
            generation: generation(&batch)?,
            count: batch.series.len(),
            ended: numbers(&batch.markers),
            ended_at_ms: batch.markers_at_ms,
            rows: Box::new(move |range| Columns {
                series: numbers(&batch.series[range.clone()]),
                timestamps_ms: batch.timestamps_ms[range.clone()].to_vec(),
                values: batch.values[range].to_vec(),
            }),
        };
        let (of_bodies, refused_rows) =
            self.intake.store().append_scrape(rows).await.map_err(refused)?;
        let mut appended = Appended::default();
        // Bodies and columns have separate outcomes; both are added.
        count_refusals(&mut appended, &of_bodies);
        for RefusedRow { row, reason } in refused_rows {
            appended.refused.add(reason_of(reason), 1);
            appended.refused_rows.push(row);
        }
        Ok(appended)
    }

    async fn append_requests(&self, pieces: Vec<Piece>) -> Result<Appended, scrape::StoreError> {
        let mut appended = Appended::default();
        for Piece { version, body, .. } in pieces {
            let stored = self.intake.append(version, body, BodyRoom::none()).await;
            count_refusals(&mut appended, &stored.map_err(refused)?);
        }
        Ok(appended)
    }

    /// Returns the labels of rows and markers if a plugin sees writes. Fails if the references are
    /// not of the kind that is then needed.
    fn labelled_rows(&self, batch: &Batch) -> Result<Option<Rows>, scrape::StoreError> {
        let is_watched = self.intake.is_watched();
        let first = batch.series.first().or(batch.markers.first());
        if first.is_some_and(|first| is_labelled(*first) != is_watched) {
            // A plugin was added or removed, so the scrape has to request its references again.
            return Err(scrape::StoreError::UnknownSeries);
        }
        if !is_watched {
            return Ok(None);
        }
        let mut labelled = self.labelled();
        // Markers are last: `end` drops series, which a failure before must not do.
        let series = labelled.labels(&batch.series)?;
        let markers = labelled.end(&batch.markers, batch.markers_at_ms)?;
        Ok(Some(Rows { series, markers }))
    }
}

impl scrape::Store for ScrapeStore {
    async fn resolve(
        &self,
        sets: Vec<Labels>,
    ) -> Result<Vec<Result<SeriesRef, SeriesRefused>>, scrape::StoreError> {
        if self.intake.is_watched() {
            let mut labelled = self.labelled();
            return Ok(sets.iter().map(|labels| Ok(labelled.reference(labels))).collect());
        }
        let label_sets = sets.into_iter().map(|labels| {
            let label =
                |(name, value): (&str, &str)| Label { name: name.into(), value: value.into() };
            labels.iter().map(label).collect()
        });
        let found = self.intake.store().series_numbers(label_sets).await.map_err(refused)?;
        let reference = |number: u64| match number >> NUMBER_BITS {
            // The bits above would be read as the generation.
            0 => Ok(found.generation << NUMBER_BITS | number),
            _ => Err(SeriesRefused {
                reason: Reason::Other,
                what: "the store has no numbers left".into(),
            }),
        };
        let refused = |why| SeriesRefused { reason: reason_of_error(&why), what: in_words(&why) };
        let numbers = found.numbers.into_iter();
        Ok(numbers.map(|number| number.map_err(refused).and_then(reference)).collect())
    }

    async fn append(
        &self,
        batch: Arc<Batch>,
        _now_ms: i64,
    ) -> Result<Appended, scrape::StoreError> {
        match self.labelled_rows(&batch)? {
            None => self.append_at_once(batch).await,
            Some(rows) => {
                let appended = self.append_requests(request::pieces(&batch, Some(&rows))).await?;
                // After the append: a sample that is not stored must not suppress a marker.
                self.labelled().note(&batch.series, &batch.timestamps_ms);
                Ok(appended)
            }
        }
    }
}

/// Returns the generation of the head that all references of a batch have. References of two
/// generations mean that one of the heads no longer exists.
fn generation(batch: &Batch) -> Result<u64, scrape::StoreError> {
    let mut references = batch.series.iter().chain(&batch.markers);
    let generation = references.clone().next().map_or(0, |reference| reference >> NUMBER_BITS);
    match references.all(|reference| reference >> NUMBER_BITS == generation) {
        true => Ok(generation),
        false => Err(scrape::StoreError::UnknownSeries),
    }
}

/// Returns the series numbers that references hold.
fn numbers(references: &[SeriesRef]) -> Vec<u64> {
    references.iter().map(|reference| reference & ((1 << NUMBER_BITS) - 1)).collect()
}

fn refused(error: StoreError) -> scrape::StoreError {
    let reason = match &error {
        // On this error alone, a scrape requests all references again.
        StoreError::SeriesGone => return scrape::StoreError::UnknownSeries,
        StoreError::DiskFull { .. } => Reason::Disk,
        StoreError::ShortOfMemory(_) | StoreError::NotReplayed(_) => Reason::Memory,
        StoreError::Refused(error) => reason_of_error(error),
        _ => Reason::Other,
    };
    scrape::StoreError::Unavailable { reason, what: error.to_string() }
}

/// Counts refused samples. The engine gives the reasons of the first refusals of each call; all
/// further refusals are counted under the last of these reasons.
fn count_refusals(appended: &mut Appended, outcome: &WriteOutcome) {
    let mut rest = outcome.refused;
    let mut refusals = outcome.refusals.iter().peekable();
    while let Some(Refusal { reason, detail, .. }) = refusals.next() {
        let count = if refusals.peek().is_some() { 1 } else { rest };
        rest = rest.saturating_sub(1);
        // Not counted: `lastError` reports refused samples, not exemplars.
        if !is_of_exemplar(*reason) {
            appended.refused.add(reason_of(*reason), count);
            appended.first_refusal.get_or_insert_with(|| detail.clone());
        }
    }
}

fn is_of_exemplar(reason: RefusalReason) -> bool {
    matches!(reason, RefusalReason::InvalidExemplar | RefusalReason::ExemplarsOff)
}

/// Returns the reason under which a refused row is counted.
fn reason_of(reason: RefusalReason) -> Reason {
    match reason {
        RefusalReason::OutOfOrder => Reason::OutOfOrder,
        RefusalReason::DuplicateSample => Reason::Duplicate,
        RefusalReason::TooOld | RefusalReason::TooFarInFuture => Reason::OutOfBounds,
        RefusalReason::InvalidLabels | RefusalReason::InvalidSymbolRef => Reason::Labels,
        RefusalReason::SeriesLimit => Reason::SeriesLimit,
        RefusalReason::MemoryLimit => Reason::Memory,
        _ => Reason::Other,
    }
}

/// Returns the reason under which a refused series is counted.
fn reason_of_error(error: &Error) -> Reason {
    match error {
        Error::Invalid(_) => Reason::Labels,
        Error::LimitExceeded(_) => Reason::SeriesLimit,
        Error::ShortOfMemory(_) => Reason::Memory,
        Error::Storage(_) => Reason::Disk,
        _ => Reason::Other,
    }
}

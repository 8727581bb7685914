//! The store as scraping uses it.
//!
//! ```text
//! samples, report ─▶ columns, by the numbers of their series ─┐
//! markers ─▶ numbers of series that end                       ├─▶ one job of the head
//! histograms, exemplars, metadata ─▶ requests, by labels ─────┘
//! ```
//!
//! While a plugin looks at writes, all goes as requests, one after the other, markers as samples.
//!
//! If the store drops a series in the middle, the scrape is stored again from its beginning: what
//! is there already is the same.

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

/// Bits of a reference that hold the number; those above hold which head gave it, so that a
/// reference of an earlier head is never taken for one of this.
const NUMBER_BITS: u32 = 48;

/// Rows with labels from which on it takes a while to write them.
const MANY: usize = 2000;

/// The store, for scrapes.
pub struct ScrapeStore {
    intake: Intake,
    /// Used while a plugin looks at writes.
    labelled: Mutex<LabelledSeries>,
}

impl ScrapeStore {
    /// By the way that all writes take.
    pub fn new(intake: Intake) -> ScrapeStore {
        ScrapeStore { intake, labelled: Mutex::default() }
    }

    fn labelled(&self) -> MutexGuard<'_, LabelledSeries> {
        self.labelled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of a scrape in one go.
    async fn append_at_once(&self, batch: Arc<Batch>) -> Result<Appended, scrape::StoreError> {
        let bodies = match batch.histograms.len() + batch.exemplars.len() + batch.metadata.len() {
            // Targets share a thread, and wait for what this takes.
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

    /// The labels of all rows and markers, if these are known by labels.
    fn labelled_rows(&self, batch: &Batch) -> Result<Option<Rows>, scrape::StoreError> {
        let is_watched = self.intake.is_watched();
        let first = batch.series.first().or(batch.markers.first());
        if first.is_some_and(|first| is_labelled(*first) != is_watched) {
            // A plugin came or went: others are given now.
            return Err(scrape::StoreError::UnknownSeries);
        }
        if !is_watched {
            return Ok(None);
        }
        let mut labelled = self.labelled();
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
                self.labelled().note(&batch.series, &batch.timestamps_ms);
                Ok(appended)
            }
        }
    }
}

/// The head that gave all references of a batch. Of two heads, one is gone.
fn generation(batch: &Batch) -> Result<u64, scrape::StoreError> {
    let mut references = batch.series.iter().chain(&batch.markers);
    let generation = references.clone().next().map_or(0, |reference| reference >> NUMBER_BITS);
    match references.all(|reference| reference >> NUMBER_BITS == generation) {
        true => Ok(generation),
        false => Err(scrape::StoreError::UnknownSeries),
    }
}

/// The numbers behind references.
fn numbers(references: &[SeriesRef]) -> Vec<u64> {
    references.iter().map(|reference| reference & ((1 << NUMBER_BITS) - 1)).collect()
}

fn refused(error: StoreError) -> scrape::StoreError {
    let reason = match &error {
        StoreError::SeriesGone => return scrape::StoreError::UnknownSeries,
        StoreError::DiskFull { .. } => Reason::Disk,
        StoreError::ShortOfMemory(_) | StoreError::NotReplayed(_) => Reason::Memory,
        StoreError::Refused(error) => reason_of_error(error),
        _ => Reason::Other,
    };
    scrape::StoreError::Unavailable { reason, what: error.to_string() }
}

/// Counts the samples that were refused. The engine tells the reasons of the first refusals of each
/// call; the rest is counted as the last of these.
fn count_refusals(appended: &mut Appended, outcome: &WriteOutcome) {
    let mut rest = outcome.refused;
    let mut refusals = outcome.refusals.iter().peekable();
    while let Some(Refusal { reason, detail, .. }) = refusals.next() {
        let count = if refusals.peek().is_some() { 1 } else { rest };
        rest = rest.saturating_sub(1);
        if !is_of_exemplar(*reason) {
            appended.refused.add(reason_of(*reason), count);
            appended.first_refusal.get_or_insert_with(|| detail.clone());
        }
    }
}

fn is_of_exemplar(reason: RefusalReason) -> bool {
    matches!(reason, RefusalReason::InvalidExemplar | RefusalReason::ExemplarsOff)
}

/// What a refusal is counted as.
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

/// What an error of the engine is counted as.
fn reason_of_error(error: &Error) -> Reason {
    match error {
        Error::Invalid(_) => Reason::Labels,
        Error::LimitExceeded(_) => Reason::SeriesLimit,
        Error::ShortOfMemory(_) => Reason::Memory,
        Error::Storage(_) => Reason::Disk,
        _ => Reason::Other,
    }
}

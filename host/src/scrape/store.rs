//! The store as scraping uses it.
//!
//! ```text
//! samples ─▶ columns, by the numbers of their series    ROWS_PER_CALL at a time
//! markers ─▶ end-series
//! histograms, exemplars, metadata ─▶ requests, by labels
//! ```
//!
//! While a plugin looks at writes, all goes as requests, markers as samples.
//!
//! Writes of others come in between, so that a large scrape does not block them. If the store drops
//! a series in the middle, the scrape is stored again from its beginning: what is there already is
//! the same.

use super::labelled::{LabelledSeries, is_labelled};
use super::request::{self, Rows};
use crate::intake::Intake;
use crate::prom::rows::Piece;
use crate::store::{BodyRoom, StoreError};
use crate::wasm::{
    Columns, Label, Refusal, RefusalReason, WriteOutcome, in_words, nothing_written,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidepool_scrape::labels::Labels;
use tidepool_scrape::store::{self as scrape, Appended, Batch, SeriesRef, SeriesRefused};

/// Rows that one call of the head stores: some milliseconds.
const ROWS_PER_CALL: usize = 4096;

/// Bits of a reference that hold the number; those above hold which head gave it, so that a
/// reference of an earlier head is never taken for one of this.
const NUMBER_BITS: u32 = 48;

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

    async fn append_rows(&self, batch: &Batch) -> Result<WriteOutcome, scrape::StoreError> {
        let mut total = nothing_written();
        let rows = batch.series.chunks(ROWS_PER_CALL);
        let rows = rows.zip(batch.timestamps_ms.chunks(ROWS_PER_CALL));
        for ((series, times), values) in rows.zip(batch.values.chunks(ROWS_PER_CALL)) {
            let (generation, series) = numbers(series)?;
            let (timestamps_ms, values) = (times.to_vec(), values.to_vec());
            let rows = Columns { series, timestamps_ms, values };
            add(
                &mut total,
                self.intake.store().append_columns(generation, rows).await.map_err(refused)?,
            );
        }
        for markers in batch.markers.chunks(ROWS_PER_CALL) {
            let (generation, series) = numbers(markers)?;
            let ended =
                self.intake.store().end_series(generation, series, batch.markers_at_ms).await;
            add(&mut total, ended.map_err(refused)?);
        }
        Ok(total)
    }

    async fn append_requests(
        &self,
        pieces: Vec<Piece>,
    ) -> Result<WriteOutcome, scrape::StoreError> {
        let mut total = nothing_written();
        for Piece { version, body } in pieces {
            let stored = self.intake.append(version, body, BodyRoom::none()).await;
            add(&mut total, stored.map_err(refused)?);
        }
        Ok(total)
    }

    /// The labels of all rows and markers, if these are known by labels.
    fn labelled_rows(&self, batch: &Batch) -> Result<Option<Rows>, scrape::StoreError> {
        let first = batch.series.first().or(batch.markers.first()).copied();
        // What has neither rows nor markers goes as requests in any case.
        let is_labelled = first.is_some_and(is_labelled);
        if is_labelled != self.intake.is_watched() {
            // A plugin came or went: others are given now.
            return if first.is_some() { Err(scrape::StoreError::UnknownSeries) } else { Ok(None) };
        }
        if !is_labelled {
            return Ok(None);
        }
        let mut labelled = self.labelled();
        let rows = Rows {
            series: labelled.labels(&batch.series)?,
            markers: labelled.labels(&batch.markers)?,
        };
        labelled.end(&batch.markers);
        Ok(Some(rows))
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
        let label_sets = sets.iter().map(|labels| {
            let label =
                |(name, value): (&str, &str)| Label { name: name.into(), value: value.into() };
            labels.iter().map(label).collect()
        });
        let found =
            self.intake.store().series_numbers(label_sets.collect()).await.map_err(refused)?;
        let reference = |number: u64| match number >> NUMBER_BITS {
            0 => Ok(found.generation << NUMBER_BITS | number),
            _ => Err(SeriesRefused("the store has no numbers left".into())),
        };
        let refused = |why| SeriesRefused(in_words(&why).to_string());
        let numbers = found.numbers.into_iter();
        Ok(numbers.map(|number| number.map_err(refused).and_then(reference)).collect())
    }

    async fn append(
        &self,
        batch: Arc<Batch>,
        _now_ms: i64,
    ) -> Result<Appended, scrape::StoreError> {
        let rows = self.labelled_rows(&batch)?;
        let mut outcome = match &rows {
            None => self.append_rows(&batch).await?,
            Some(_) => nothing_written(),
        };
        let pieces = request::pieces(&batch, rows.as_ref());
        add(&mut outcome, self.append_requests(pieces).await?);
        Ok(appended(&outcome))
    }
}

/// The numbers behind references, and the head that gave them. Of two heads, one is gone.
fn numbers(references: &[SeriesRef]) -> Result<(u64, Vec<u64>), scrape::StoreError> {
    let generation = references.first().map_or(0, |reference| reference >> NUMBER_BITS);
    let number = |reference: &SeriesRef| match reference >> NUMBER_BITS == generation {
        true => Ok(reference & ((1 << NUMBER_BITS) - 1)),
        false => Err(scrape::StoreError::UnknownSeries),
    };
    Ok((generation, references.iter().map(number).collect::<Result<_, _>>()?))
}

fn refused(error: StoreError) -> scrape::StoreError {
    match error {
        StoreError::SeriesGone => scrape::StoreError::UnknownSeries,
        other => scrape::StoreError::Unavailable(other.to_string()),
    }
}

fn add(total: &mut WriteOutcome, more: WriteOutcome) {
    total.samples_written += more.samples_written;
    total.histograms_written += more.histograms_written;
    total.exemplars_written += more.exemplars_written;
    total.refused += more.refused;
    total.refusals.extend(more.refusals);
}

/// What became of the rows. The engine tells the reasons of the first refusals of each call.
fn appended(outcome: &WriteOutcome) -> Appended {
    let mut appended = Appended::default();
    for Refusal { reason, .. } in &outcome.refusals {
        *match reason {
            RefusalReason::OutOfOrder => &mut appended.out_of_order,
            RefusalReason::DuplicateSample => &mut appended.duplicates,
            RefusalReason::TooOld | RefusalReason::TooFarInFuture => &mut appended.out_of_bounds,
            _ => &mut appended.refused,
        } += 1;
    }
    appended.refused += outcome.refused.saturating_sub(outcome.refusals.len() as u64);
    appended
}

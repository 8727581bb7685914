//! A batch of rows on its way into the head: its series are found or made, its rows checked
//! (`check`), logged by the engine, and applied.

use super::batch::{IS_FLOAT, Row};
use super::label_budget::EXCESS_BYTES_MAX;
use super::series::NO_ROW;
use super::series_table::TextPairs;
use super::{
    Batch, Exemplar, Head, Labels, LookupError, NextSeriesPredictor, RefusalReason, RequestSymbols,
    Slot, WriteOutcome,
};
use crate::model::{LABEL_NAME, LabelError, Sample, Value, sort_and_check};
use rustc_hash::FxHashSet;

/// Largest number of out-of-order samples of a series that are merged at once.
const LATE_SAMPLES_MAX: usize = 8192;

impl Head {
    /// Begins a batch at the clock time `now_ms`; drops the rows of the previous batch.
    pub fn begin(&mut self, batch: &mut Batch, now_ms: i64) {
        self.window.set_now(now_ms);
        batch.begin();
        batch.in_order_ms = (self.window.in_order_from_ms(), self.window.clock_limit_ms());
    }

    /// Returns or creates the series with these labels, given in any order. Labels that are the
    /// same slices as in an earlier call are not compared again.
    #[inline]
    pub fn next_by_pairs<'r>(
        &mut self,
        batch: &mut Batch,
        predictor: &mut NextSeriesPredictor<'r>,
        pairs: &[(&'r [u8], &'r [u8])],
    ) -> Result<Slot, LookupError> {
        let slot = match predictor.guess_pairs(&self.table, pairs) {
            Some(slot) => slot,
            None => self.series_by_pairs(batch, pairs)?,
        };
        predictor.set_last(slot);
        Ok(slot)
    }

    /// Returns or creates the series whose labels are these references, names and values in turn.
    #[inline]
    pub fn next_by_refs<'r>(
        &mut self,
        batch: &mut Batch,
        predictor: &mut NextSeriesPredictor<'r>,
        request: &mut RequestSymbols<'r>,
        refs: &[u32],
    ) -> Result<Slot, LookupError> {
        let slot = match predictor.guess_refs(&self.table, request, refs) {
            Some(slot) => slot,
            None => self.series_by_refs(batch, request, refs)?,
        };
        predictor.set_last(slot);
        Ok(slot)
    }

    /// Returns or creates the series with these labels, given in any order.
    pub fn series_by_pairs(
        &mut self,
        batch: &mut Batch,
        pairs: &[(&[u8], &[u8])],
    ) -> Result<Slot, LookupError> {
        match self.table.find_by_pairs(pairs) {
            Some(slot) => Ok(slot),
            None => self.unusual_series(batch, pairs.iter().copied(), false),
        }
    }

    /// Returns or creates the series whose labels are these references, names and values in turn.
    pub fn series_by_refs(
        &mut self,
        batch: &mut Batch,
        request: &mut RequestSymbols<'_>,
        refs: &[u32],
    ) -> Result<Slot, LookupError> {
        match self.table.find_by_refs(request, refs)? {
            Some(slot) => Ok(slot),
            None => {
                // Lengths and budget are checked before any text is validated, sorted or hashed.
                let limits = &self.options.label_limits;
                request.check_lengths(self.table.symbols(), limits, refs)?;
                let bytes = request.text_bytes(refs);
                if !batch.label_budget.take(refs.len(), bytes) {
                    return Err(LookupError::LabelBytes { bytes, max: EXCESS_BYTES_MAX });
                }
                let pairs = request.known_texts(refs)?;
                self.unusual_texts(batch, pairs, false)
            }
        }
    }

    /// Returns or creates the series with these labels, which are valid.
    pub fn series_by_labels(
        &mut self,
        batch: &mut Batch,
        labels: &Labels,
    ) -> Result<Slot, LookupError> {
        let pairs: Vec<_> =
            labels.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        self.series_by_pairs(batch, &pairs)
    }

    /// Handles labels that no stored series has in this order: they are new, unsorted, or invalid.
    /// Labels from the log are not checked against limits.
    pub(super) fn unusual_series<'r>(
        &mut self,
        batch: &mut Batch,
        pairs: impl Iterator<Item = (&'r [u8], &'r [u8])>,
        is_from_log: bool,
    ) -> Result<Slot, LookupError> {
        let utf8 = |bytes| std::str::from_utf8(bytes).map_err(|_| LabelError::NotUtf8);
        let pairs = pairs
            .map(|(name, value)| Ok((utf8(name)?, utf8(value)?)))
            .collect::<Result<TextPairs<'_>, LabelError>>()?;
        self.unusual_texts(batch, pairs, is_from_log)
    }

    fn unusual_texts(
        &mut self,
        batch: &mut Batch,
        mut pairs: TextPairs<'_>,
        is_from_log: bool,
    ) -> Result<Slot, LookupError> {
        sort_and_check(&mut pairs)?;
        if !pairs.iter().any(|(name, _)| *name == LABEL_NAME) {
            return Err(LabelError::NoMetricName.into());
        }
        // A stored series may have the same labels in another order.
        let hash = match self.table.find_sorted(&pairs) {
            Ok(slot) => return Ok(slot),
            Err(hash) => hash,
        };
        // Acknowledged series come back from the log, whatever the limits are now.
        if !is_from_log {
            self.options.label_limits.check(&pairs)?;
            self.options.check_new_series(self.series_count(), &pairs)?;
        }
        let slot = self.table.insert(hash, &pairs);
        if let Some(series) = self.table.get(slot) {
            self.postings.insert(slot, &series.labels);
        }
        self.counters.series_created += 1;
        batch.created.push(slot);
        Ok(slot)
    }

    /// Checks an exemplar of a series; adds it to the batch or counts its refusal.
    pub fn check_exemplar(&mut self, batch: &mut Batch, slot: Slot, exemplar: Exemplar) {
        // The labels of the series are packed and hashed for each exemplar, so they use the budget.
        let series_bytes = self.table.label_bytes(slot);
        if !batch.label_budget.take_exemplar(series_bytes) {
            batch.refuse(RefusalReason::InvalidExemplar, exemplar.timestamp_ms, 1, || {
                format!(
                    "exemplar of a series with {series_bytes} bytes of labels: too many of such \
                     come in one request"
                )
            });
            return;
        }
        let series = self.table.packed_labels(slot);
        self.exemplars.check(&self.window, batch, (slot, &series), exemplar);
    }

    /// Returns the in-order or the out-of-order floats of a batch, which must be logged before the
    /// batch is applied, as (series reference, sample).
    pub fn rows<'a>(
        &'a self,
        batch: &'a Batch,
        is_out_of_order: bool,
    ) -> impl Iterator<Item = (u64, Sample)> + 'a {
        let of_kind =
            move |row: &&Row| row.is_out_of_order == is_out_of_order && row.histogram == IS_FLOAT;
        let rows = batch.rows.iter().filter(of_kind);
        rows.map(|row| (row.series_ref, row.sample))
    }

    /// Returns whether a batch has histograms; nearly all have none.
    pub fn has_histograms(&self, batch: &Batch) -> bool {
        !batch.histograms.is_empty()
    }

    /// Returns the in-order or the out-of-order rows of a batch that has histograms, for the log,
    /// in order of arrival, as (series reference, time, value).
    pub fn value_rows<'a>(
        &'a self,
        batch: &'a Batch,
        is_out_of_order: bool,
    ) -> impl Iterator<Item = (u64, i64, Value)> + 'a {
        let rows = batch.rows.iter().filter(move |row| row.is_out_of_order == is_out_of_order);
        rows.map(|row| (row.series_ref, row.sample.timestamp_ms, batch.value(row)))
    }

    /// Returns the exemplars of a batch that must be logged, as (series reference, exemplar).
    pub fn exemplar_rows<'a>(
        &'a self,
        batch: &'a Batch,
    ) -> impl Iterator<Item = (u64, &'a Exemplar)> + 'a {
        batch.exemplars.iter().map(|(slot, exemplar)| (self.series_ref(*slot), exemplar))
    }

    /// Returns the series that the batch created, for the log.
    pub fn created<'a>(&self, batch: &'a Batch) -> &'a [Slot] {
        &batch.created
    }

    /// Makes a checked batch visible, once the log has it.
    pub fn apply(&mut self, batch: &mut Batch) -> WriteOutcome {
        let mut oldest_ms = self.oldest_stored_ms.get();
        let mut late = Vec::new();
        for (place, row) in (0..).zip(&batch.rows) {
            let Row { slot, sample: Sample { timestamp_ms, value }, is_out_of_order, .. } = *row;
            oldest_ms = oldest_ms.min(timestamp_ms);
            // Most rows are in-order floats, which need no copy of their value.
            if row.histogram == IS_FLOAT && !is_out_of_order {
                batch.outcome.samples_written += 1;
                self.append_float(slot, timestamp_ms, value);
                continue;
            }
            let value = batch.value(row);
            batch.outcome.count_written(&value);
            match is_out_of_order {
                false => self.append(slot, timestamp_ms, &value),
                true => late.push(place),
            }
            self.counters.samples_out_of_order += u64::from(is_out_of_order);
        }
        self.append_late(batch, late);
        self.oldest_stored_ms.set(oldest_ms);
        for (slot, exemplar) in batch.exemplars.drain(..) {
            let labels = self.table.packed_labels(slot);
            self.exemplars.add(&labels, exemplar);
        }
        batch.clear();
        let outcome = std::mem::take(&mut batch.outcome);
        let written = outcome.samples_written + outcome.histograms_written;
        // A duplicate counts as written for its sender, but nothing was appended.
        self.counters.samples_duplicate += outcome.samples_duplicate;
        self.counters.samples_appended += written - outcome.samples_duplicate;
        outcome
    }

    /// Removes the rows of a checked batch and the series that it created.
    pub fn abort(&mut self, batch: &mut Batch) {
        // A row number left in a series would be taken for a row of the next batch.
        for row in &batch.rows {
            self.table.at_mut(row.slot).pending_row = NO_ROW;
        }
        self.remove(&batch.created);
        batch.clear();
    }

    /// Removes series that a batch created although all of their rows were refused, with their
    /// exemplars: refused rows must not use memory.
    pub fn drop_unused(&mut self, batch: &mut Batch) {
        // The first accepted row of a series is always noted in `pending_row`.
        let is_unused = |slot: &Slot| self.table.at(*slot).pending_row == NO_ROW;
        let unused: FxHashSet<Slot> =
            batch.created.extract_if(.., |slot| is_unused(slot)).collect();
        if unused.is_empty() {
            return;
        }
        for (slot, exemplar) in batch.exemplars.extract_if(.., |(slot, _)| unused.contains(slot)) {
            // The exemplar was counted as written when it was checked.
            batch.outcome.exemplars_written -= 1;
            batch.outcome.refuse(RefusalReason::NoSamples, exemplar.timestamp_ms, 1, || {
                let labels = self.table.packed_labels(slot);
                format!("exemplar of {labels}: no sample of this new series was taken")
            });
        }
        self.remove(&unused.into_iter().collect::<Vec<_>>());
    }

    #[inline]
    fn append_float(&mut self, slot: Slot, timestamp_ms: i64, value: f64) {
        // Noted before the append, while the series still has its previous newest time.
        if self.observers.is_observed() {
            self.note_sample(slot, timestamp_ms, false);
        }
        let block_duration_ms = self.window.block_duration_ms();
        if self.table.append_float(slot, timestamp_ms, value, block_duration_ms) {
            self.window.add_in_order(timestamp_ms);
        }
    }

    pub(super) fn append(&mut self, slot: Slot, timestamp_ms: i64, value: &Value) {
        if let Value::Float(value) = value {
            return self.append_float(slot, timestamp_ms, *value);
        }
        if self.observers.is_observed() {
            self.note_sample(slot, timestamp_ms, false);
        }
        let block_duration_ms = self.window.block_duration_ms();
        if self.table.append(slot, timestamp_ms, value, block_duration_ms) {
            self.window.add_in_order(timestamp_ms);
        }
    }

    /// Adds the out-of-order rows of a batch, sorted by time, so that each affected chunk is
    /// encoded once whatever the order of arrival.
    fn append_late(&mut self, batch: &Batch, mut late: Vec<u32>) {
        let key = |place: &u32| {
            batch.rows.get(*place as usize).map(|row| (row.slot, row.sample.timestamp_ms))
        };
        // No two rows share series and time, so the order of equal keys does not matter.
        late.sort_unstable_by_key(key);
        let mut rows = late.iter().filter_map(|place| batch.rows.get(*place as usize)).peekable();
        while let Some(first) = rows.next() {
            let mut samples = vec![(first.sample.timestamp_ms, batch.value(first))];
            while samples.len() < LATE_SAMPLES_MAX
                && let Some(row) = rows.next_if(|row| row.slot == first.slot)
            {
                samples.push((row.sample.timestamp_ms, batch.value(row)));
            }
            for (timestamp_ms, _) in &samples {
                if self.observers.is_observed() {
                    self.note_sample(first.slot, *timestamp_ms, true);
                }
                self.window.add_out_of_order(*timestamp_ms);
            }
            let arrival = self.observers.arrival(self.cuts.generation());
            self.table.append_all_out_of_order(first.slot, samples, arrival);
        }
    }

    pub(super) fn append_out_of_order(&mut self, slot: Slot, timestamp_ms: i64, value: Value) {
        if self.observers.is_observed() {
            self.note_sample(slot, timestamp_ms, true);
        }
        let arrival = self.observers.arrival(self.cuts.generation());
        self.table.append_out_of_order(slot, timestamp_ms, value, arrival);
        self.window.add_out_of_order(timestamp_ms);
    }

    /// Informs the observers that a sample is about to be stored.
    #[cold]
    fn note_sample(&mut self, slot: Slot, timestamp_ms: i64, is_out_of_order: bool) {
        let newest_ms = self.table.at(slot).newest_ms();
        self.observers.note_sample(slot, newest_ms, timestamp_ms, is_out_of_order);
    }
}

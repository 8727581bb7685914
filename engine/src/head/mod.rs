//! Recent samples in memory, and the rules by which new ones are accepted.
//!
//! [`Head`] holds series by label hash, their chunks, and an inverted index over their labels. It
//! knows nothing of the log or of blocks: the engine writes the log between [`Head::check`] and
//! [`Head::apply`].
//!
//! Order rules, per row: newer than the series' newest sample is accepted; a sample that is
//! already there with the same bits counts as written and changes nothing; all else is refused
//! with its reason. The window of acceptance begins half a block before the newest sample of the
//! head, and never before what blocks hold.

mod batch;
mod cursor;
mod lookup;
mod metadata;
mod postings;
mod series;
mod symbols;

pub use batch::{Batch, Refusal, RefusalReason, WriteOutcome};
pub use cursor::HeadCursor;
pub use lookup::{LookupError, RequestSymbols};
pub use metadata::{METADATA_FAMILIES_MAX, Metadata, MetadataTable};
pub use series::Slot;

use crate::chunk::ChunkError;
use crate::model::{Labels, Sample, TimeRange};
use batch::Row;
use hashbrown::HashTable;
use postings::Postings;
use rustc_hash::FxHashMap;
use series::{NO_ROW, Series, block_end, block_start};
use std::cell::Cell;
use std::rc::Rc;
use symbols::Symbols;

/// What a head is told when it is made.
#[derive(Clone, Copy, Debug)]
pub struct HeadOptions {
    /// Span of one block in milliseconds.
    pub block_duration_ms: i64,
    /// How far ahead of the clock a sample may be, in milliseconds.
    pub future_limit_ms: i64,
    /// Most series held at a time; 0 means no limit.
    pub series_max: u64,
    /// Mixed into every hash of labels.
    pub hash_seed: u64,
}

/// Counts since the head was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadCounters {
    /// Series that came to be.
    pub series_created: u64,
    /// Series that were forgotten.
    pub series_removed: u64,
    /// Samples stored.
    pub samples_appended: u64,
    /// Samples that were there already.
    pub samples_duplicate: u64,
    /// Refused: another value is stored at this time.
    pub samples_refused_duplicate: u64,
    /// Refused: older than the newest sample of the series.
    pub samples_refused_out_of_order: u64,
    /// Refused: older than the window.
    pub samples_refused_too_old: u64,
    /// Refused: too far ahead of the clock.
    pub samples_refused_in_future: u64,
}

/// The head.
pub struct Head {
    options: HeadOptions,
    symbols: Symbols,
    postings: Postings,
    /// By slot.
    series: Vec<Option<Series>>,
    free_slots: Vec<Slot>,
    by_hash: HashTable<Slot>,
    /// Series that somebody knows by their number: embedders, and the log during replay.
    by_ref: FxHashMap<u64, Slot>,
    next_ref: u64,
    chunk_count: usize,
    min_time_ms: i64,
    max_time_ms: i64,
    /// Everything before is in blocks, or about to be.
    min_valid_ms: i64,
    open_cursors: Rc<Cell<u64>>,
    /// What is known of metric families.
    pub metadata: MetadataTable,
    /// Counts since the head was made.
    pub counters: HeadCounters,
}

impl Head {
    /// An empty head that leaves everything before `min_valid_ms` to blocks.
    pub fn new(options: HeadOptions, min_valid_ms: i64) -> Head {
        Head {
            options,
            symbols: Symbols::new(options.hash_seed),
            postings: Postings::default(),
            series: Vec::new(),
            free_slots: Vec::new(),
            by_hash: HashTable::new(),
            by_ref: FxHashMap::default(),
            next_ref: 1,
            chunk_count: 0,
            min_time_ms: i64::MAX,
            max_time_ms: i64::MIN,
            min_valid_ms,
            open_cursors: Rc::default(),
            metadata: MetadataTable::default(),
            counters: HeadCounters::default(),
        }
    }

    /// Number of series.
    pub fn series_count(&self) -> usize {
        self.series.len() - self.free_slots.len()
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.chunk_count
    }

    /// Number of distinct label names and values.
    pub fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    /// Times of the oldest and newest sample; an empty head's range ends before it starts.
    pub fn range(&self) -> TimeRange {
        TimeRange { start_ms: self.min_time_ms, end_ms: self.max_time_ms }
    }

    /// How many cursors are open; while there are any, nothing may be forgotten.
    pub fn open_cursors(&self) -> u64 {
        self.open_cursors.get()
    }

    /// The number by which the log knows a series.
    pub fn series_ref(&self, slot: Slot) -> u64 {
        self.at(slot).series_ref
    }

    /// The slot of a series that [`Head::remember_ref`] was told of.
    pub fn by_ref(&self, series_ref: u64) -> Option<Slot> {
        self.by_ref.get(&series_ref).copied()
    }

    /// Makes a series known by its number.
    pub fn remember_ref(&mut self, slot: Slot) {
        self.by_ref.insert(self.at(slot).series_ref, slot);
    }

    /// Takes a series back from the log, under the number it has there.
    pub fn replay_series(
        &mut self,
        batch: &mut Batch,
        series_ref: u64,
        labels: &[(&[u8], &[u8])],
    ) -> Result<(), LookupError> {
        let slot = self.series_by_pairs(batch, labels)?;
        batch.created.clear();
        // Of several numbers for one series the last is the one that newer records use.
        self.at_mut(slot).series_ref = series_ref;
        self.next_ref = self.next_ref.max(series_ref.saturating_add(1));
        self.by_ref.insert(series_ref, slot);
        Ok(())
    }

    /// Takes a sample back from the log; gives whether it was new. The log holds only what was
    /// accepted, so that all else is what a block holds, or what was logged twice.
    pub fn replay_sample(&mut self, slot: Slot, sample: Sample) -> bool {
        let newest = self.at(slot).newest();
        let is_new = sample.timestamp_ms >= self.min_valid_ms
            && newest.is_none_or(|newest| sample.timestamp_ms > newest.timestamp_ms);
        if is_new {
            self.append(slot, sample);
        }
        is_new
    }

    /// Ends the replay: forgets numbers that only the log used, and series without samples.
    pub fn end_replay(&mut self) {
        self.by_ref = FxHashMap::default();
        self.forget(self.min_valid_ms);
    }

    fn append(&mut self, slot: Slot, sample: Sample) {
        let block_duration_ms = self.options.block_duration_ms;
        let Some(series) = self.series[slot.0 as usize].as_mut() else { return };
        series.pending_row = NO_ROW;
        self.chunk_count += usize::from(series.append(sample, block_duration_ms));
        self.min_time_ms = self.min_time_ms.min(sample.timestamp_ms);
        self.max_time_ms = self.max_time_ms.max(sample.timestamp_ms);
    }

    /// How many labels a series has, and what they are, by ascending name.
    pub fn labels(&self, slot: Slot) -> (usize, impl Iterator<Item = (&str, &str)>) {
        let labels = &self.at(slot).labels;
        let texts = labels.iter().map(|(n, v)| (self.symbols.text(*n), self.symbols.text(*v)));
        (labels.len(), texts)
    }

    /// A series' labels in packed form.
    pub fn packed_labels(&self, slot: Slot) -> Labels {
        Labels::from_sorted(self.labels(slot).1)
    }

    /// Begins a batch.
    pub fn begin(&self, batch: &mut Batch, now_ms: i64) {
        batch.begin(now_ms);
    }

    /// Oldest time that a sample may have.
    fn window_start_ms(&self) -> i64 {
        let half_block = self.options.block_duration_ms / 2;
        self.min_valid_ms.max(self.max_time_ms.saturating_sub(half_block))
    }

    /// Checks one row, and takes it into the batch or counts its refusal.
    pub fn check(
        &mut self,
        batch: &mut Batch,
        slot: Slot,
        sample: Sample,
    ) -> Result<(), ChunkError> {
        let time = sample.timestamp_ms;
        let series = self.at(slot);
        let pending = batch.rows.get(series.pending_row as usize).map(|row| row.sample);
        let newest = pending.or_else(|| series.newest());
        if newest.is_none_or(|newest| time > newest.timestamp_ms) {
            if time > batch.now_ms.saturating_add(self.options.future_limit_ms) {
                self.refuse(batch, slot, sample, RefusalReason::TooFarInFuture);
            } else if time < self.window_start_ms() {
                self.refuse(batch, slot, sample, RefusalReason::TooOld);
            } else {
                let series = self.at_mut(slot);
                let previous = series.pending_row;
                series.pending_row = batch.rows.len() as u32;
                batch.rows.push(Row { slot, previous, sample });
            }
            return Ok(());
        }
        let stored = match newest {
            Some(newest) if newest.timestamp_ms == time => Some(newest.value),
            _ => self.value_at(batch, slot, time)?,
        };
        match stored {
            Some(value) if value.to_bits() == sample.value.to_bits() => {
                batch.outcome.samples_written += 1;
                batch.outcome.samples_duplicate += 1;
            }
            Some(_) => self.refuse(batch, slot, sample, RefusalReason::DuplicateSample),
            None if time < self.window_start_ms() => {
                self.refuse(batch, slot, sample, RefusalReason::TooOld);
            }
            None => self.refuse(batch, slot, sample, RefusalReason::OutOfOrder),
        }
        Ok(())
    }

    /// The value a series has at a time, in the running batch or in its chunks.
    fn value_at(&self, batch: &Batch, slot: Slot, time_ms: i64) -> Result<Option<f64>, ChunkError> {
        let series = self.at(slot);
        let mut row = batch.rows.get(series.pending_row as usize);
        while let Some(pending) = row {
            if pending.sample.timestamp_ms == time_ms {
                return Ok(Some(pending.sample.value));
            }
            row = batch.rows.get(pending.previous as usize);
        }
        series.value_at(time_ms)
    }

    fn refuse(&mut self, batch: &mut Batch, slot: Slot, sample: Sample, reason: RefusalReason) {
        let time = sample.timestamp_ms;
        let (counter, why) = match reason {
            RefusalReason::DuplicateSample => (
                &mut self.counters.samples_refused_duplicate,
                "duplicate sample for timestamp: another value is stored".to_owned(),
            ),
            RefusalReason::TooOld => (
                &mut self.counters.samples_refused_too_old,
                "too old: samples this far behind the newest are no longer accepted".to_owned(),
            ),
            RefusalReason::TooFarInFuture => (
                &mut self.counters.samples_refused_in_future,
                format!(
                    "too far in the future: more than {} s ahead of this node's clock",
                    self.options.future_limit_ms / 1000
                ),
            ),
            _ => (
                &mut self.counters.samples_refused_out_of_order,
                "out of order: the series has a newer sample".to_owned(),
            ),
        };
        *counter += 1;
        batch.refuse(reason, time, 1, || {
            format!("{} at {time} ms: {why}", self.packed_labels(slot))
        });
    }

    /// The rows that the log must hold before they are applied, as (series reference, sample).
    pub fn rows<'a>(
        &'a self,
        batch: &'a Batch,
    ) -> impl ExactSizeIterator<Item = (u64, Sample)> + 'a {
        batch.rows.iter().map(|row| (self.at(row.slot).series_ref, row.sample))
    }

    /// Series that the batch created, for the log.
    pub fn created<'a>(&self, batch: &'a Batch) -> &'a [Slot] {
        &batch.created
    }

    /// Makes a checked batch visible, once the log has it.
    pub fn apply(&mut self, batch: &mut Batch) -> WriteOutcome {
        for Row { slot, sample, .. } in batch.rows.drain(..) {
            self.append(slot, sample);
            batch.outcome.samples_written += 1;
        }
        batch.created.clear();
        let outcome = std::mem::take(&mut batch.outcome);
        self.counters.samples_duplicate += outcome.samples_duplicate;
        self.counters.samples_appended += outcome.samples_written - outcome.samples_duplicate;
        outcome
    }

    /// Undoes what checking a batch left behind.
    pub fn abort(&mut self, batch: &mut Batch) {
        for row in batch.rows.drain(..) {
            self.at_mut(row.slot).pending_row = NO_ROW;
        }
        for slot in std::mem::take(&mut batch.created) {
            self.remove(slot);
        }
    }

    /// The range that the next block should hold, if the head spans more than one and a half
    /// blocks. From then on nothing up to the range's end is accepted any more.
    pub fn plan_cut(&mut self) -> Option<TimeRange> {
        let block = self.options.block_duration_ms;
        let span_ms = self.max_time_ms.checked_sub(self.min_time_ms)?;
        if self.series_count() == 0 || span_ms <= block + block / 2 {
            return None;
        }
        let end_ms = block_end(self.min_time_ms, block);
        self.min_valid_ms = self.min_valid_ms.max(end_ms);
        Some(TimeRange { start_ms: block_start(self.min_time_ms, block), end_ms: end_ms - 1 })
    }

    /// Drops samples before a time, and series that have none left.
    pub fn forget(&mut self, before_ms: i64) {
        self.min_valid_ms = self.min_valid_ms.max(before_ms);
        let mut min_time_ms = i64::MAX;
        for slot in 0..self.series.len() as u32 {
            let Some(series) = self.series[slot as usize].as_mut() else { continue };
            self.chunk_count -= series.forget(before_ms);
            match series.min_time_ms() {
                Some(time_ms) => min_time_ms = min_time_ms.min(time_ms),
                None => {
                    self.remove(Slot(slot));
                    self.counters.series_removed += 1;
                }
            }
        }
        self.min_time_ms = min_time_ms;
        if min_time_ms == i64::MAX {
            self.max_time_ms = i64::MIN;
        }
        let series = &self.series;
        self.by_ref.retain(|series_ref, slot| {
            let held = series[slot.0 as usize].as_ref();
            held.is_some_and(|series| series.series_ref == *series_ref)
        });
    }

    /// Slots in use, ascending.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let in_use = self.series.iter().enumerate().filter(|(_, series)| series.is_some());
        in_use.map(|(slot, _)| Slot(slot as u32))
    }

    fn remove(&mut self, slot: Slot) {
        let Some(series) = self.series[slot.0 as usize].take() else { return };
        self.chunk_count -= series.chunk_count();
        self.postings.remove(slot, &series.labels);
        if let Ok(entry) = self.by_hash.find_entry(series.hash, |other| *other == slot) {
            entry.remove();
        }
        for (name, value) in &series.labels {
            self.symbols.release(*name);
            self.symbols.release(*value);
        }
        self.free_slots.push(slot);
    }

    /// The series in a slot. Slots come from this head's own tables, which drop a slot together
    /// with its series.
    fn at(&self, slot: Slot) -> &Series {
        match &self.series[slot.0 as usize] {
            Some(series) => series,
            None => unreachable!("{slot:?} is in a table of the head but holds no series"),
        }
    }

    fn at_mut(&mut self, slot: Slot) -> &mut Series {
        match &mut self.series[slot.0 as usize] {
            Some(series) => series,
            None => unreachable!("{slot:?} is in a table of the head but holds no series"),
        }
    }
}

#[cfg(test)]
mod tests;

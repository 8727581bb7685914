//! Recent samples in memory, and the rules by which new ones are accepted.
//!
//! [`Head`] holds series by label hash, their chunks, and an inverted index over their labels. It
//! knows nothing of the log or of blocks: the engine writes the log between [`Head::check`] and
//! [`Head::apply`].
//!
//! Reading order: `lookup` finds the series of a request, `next_series` finds them sooner;
//! `order` decides which rows are accepted, `series` and `out_of_order` keep them, `cut`
//! says when a block is due and drops what it holds, `deletion` takes samples out, `cursor`
//! reads series, `labels` names and values. Beside the series stand `metadata` and `exemplars`;
//! `replay` takes rows back from the
//! log, `saved` makes bytes of it all.

mod batch;
mod cardinality;
mod cursor;
mod cut;
mod deletion;
mod exemplars;
mod label_names;
mod labels;
mod lookup;
mod metadata;
mod next_series;
mod order;
mod out_of_order;
mod postings;
mod replay;
mod saved;
mod series;
mod slab;
mod sorted;
mod symbols;
mod work;

pub use batch::{Batch, REFUSAL_DETAIL_BYTES_MAX, Refusal, RefusalReason, WriteOutcome};
pub use cardinality::{CardinalityList, CardinalityWalk};
pub use cursor::{HeadCursor, HeadSeries, Slice};
pub use deletion::DeletedSpan;
pub use exemplars::{
    EXEMPLAR_LABELS_CHARS_MAX, Exemplar, ExemplarScan, Exemplars, SeriesExemplars,
};
pub use labels::HeadStrings;
pub use lookup::{LookupError, RequestSymbols};
pub use metadata::{METADATA_FAMILIES_MAX, Metadata, MetadataTable};
pub use next_series::NextSeriesPredictor;
pub use replay::FloatReplay;
pub use saved::{Bytes, HeadLoader, HeadSaver, SavedHeadError};
pub use series::Slot;
pub use work::{NotNow, WorkLeft};

use crate::memory::MemoryBudget;
use crate::model::{LabelLimits, Labels, Sample, TimeRange, Value};
use batch::{IS_FLOAT, Row};
use cursor::{OpenCursors, Watches};
use cut::PlannedCut;
use deletion::TimesScan;
use hashbrown::HashTable;
use label_names::NameLists;
use out_of_order::Arrival;
use postings::Postings;
use replay::Replay;
use rustc_hash::{FxHashMap, FxHashSet};
use series::{NO_ROW, Series};
use slab::{Slab, shrink_above};
use std::rc::Rc;
use symbols::Symbols;

/// What a head is told when it is made.
#[derive(Clone, Copy, Debug)]
pub struct HeadOptions {
    /// Span of one block in milliseconds.
    pub block_duration_ms: i64,
    /// How far ahead of the clock a sample may be, in milliseconds.
    pub future_limit_ms: i64,
    /// How far behind the newest sample an out-of-order one may be, in milliseconds. With 0,
    /// samples are accepted in order only.
    pub out_of_order_window_ms: i64,
    /// Most series held at a time; 0 means no limit.
    pub series_max: u64,
    /// Most exemplars kept, the newest; 0 keeps none.
    pub exemplars_max: u64,
    /// How much memory may be in use.
    pub memory: MemoryBudget,
    /// How large the label sets of new series may be.
    pub label_limits: LabelLimits,
    /// Mixed into every hash of labels.
    pub hash_seed: u64,
}

impl HeadOptions {
    /// Prometheus' block of two hours and its ten minutes ahead of the clock, two hours for
    /// out-of-order samples, no exemplars and no limits. The seed is any number that nobody can guess.
    pub fn new(hash_seed: u64) -> HeadOptions {
        HeadOptions {
            block_duration_ms: 2 * 60 * 60 * 1000,
            future_limit_ms: 10 * 60 * 1000,
            out_of_order_window_ms: 2 * 60 * 60 * 1000,
            series_max: 0,
            exemplars_max: 0,
            memory: MemoryBudget::UNBOUNDED,
            label_limits: LabelLimits::NONE,
            hash_seed,
        }
    }
}

/// Counts since the head was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadCounters {
    /// Series that came to be.
    pub series_created: u64,
    /// Series that were dropped.
    pub series_removed: u64,
    /// Samples stored.
    pub samples_appended: u64,
    /// Of those, the ones that came out of order.
    pub samples_out_of_order: u64,
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
    series: Slab<Slot, Series>,
    by_key: HashTable<Slot>,
    name_lists: NameLists,
    /// Series that embedders know by their number.
    by_ref: FxHashMap<u64, Slot>,
    next_ref: u64,
    chunk_count: usize,
    min_time_ms: i64,
    max_time_ms: i64,
    /// Whether samples were taken out since the times were found.
    times_are_stale: bool,
    /// Everything before is in blocks, or about to be; only out-of-order samples may be older.
    min_valid_ms: i64,
    /// What of that the log need not give back: everything before is in committed blocks.
    stored_until_ms: i64,
    /// Nothing out-of-order is older; the largest time if nothing is out of order.
    out_of_order_min_time_ms: i64,
    /// How many cuts were planned; out-of-order samples are told apart by it.
    generation: u64,
    /// Whether everything is due to be cut.
    cuts_all: bool,
    /// Memory in use after the last cut.
    left_by_cut_bytes: u64,
    /// The clock, as the last write told it; the largest time as long as nobody did.
    now_ms: i64,
    /// The cut that was planned and not truncated yet.
    planned: Option<PlannedCut>,
    /// Whether a series comes from the log, which no limit refuses.
    is_replaying: bool,
    /// Until the log is read to its end, from its first series on.
    replay: Option<Box<Replay>>,
    /// Longest span of a block that is cut meanwhile, in milliseconds, if it may be longer than one
    /// that is cut later.
    replay_cut_ms: i64,
    /// Another number after each deletion, and in each life.
    deletion_mark: u64,
    /// How many cursors were ever opened: what comes out of order is told apart by it.
    epoch: u64,
    open_cursors: Rc<OpenCursors>,
    /// Cursors that note the samples which come while they are prepared.
    watches: Watches,
    /// After a deletion.
    times_scan: Option<Box<TimesScan>>,
    /// Whether one of the two wants to know of each sample.
    is_observed: bool,
    /// What is known of metric families.
    pub metadata: MetadataTable,
    /// The newest exemplars.
    pub exemplars: Exemplars,
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
            series: Slab::default(),
            by_key: HashTable::new(),
            name_lists: NameLists::default(),
            by_ref: FxHashMap::default(),
            next_ref: 1,
            chunk_count: 0,
            min_time_ms: i64::MAX,
            max_time_ms: i64::MIN,
            times_are_stale: false,
            min_valid_ms,
            stored_until_ms: min_valid_ms,
            out_of_order_min_time_ms: i64::MAX,
            generation: 0,
            cuts_all: false,
            left_by_cut_bytes: 0,
            now_ms: i64::MAX,
            planned: None,
            is_replaying: false,
            replay: None,
            replay_cut_ms: 0,
            deletion_mark: options.hash_seed,
            epoch: 0,
            open_cursors: Rc::default(),
            watches: Watches::default(),
            times_scan: None,
            is_observed: false,
            metadata: MetadataTable::default(),
            exemplars: Exemplars::new(options.exemplars_max, options.hash_seed),
            counters: HeadCounters::default(),
        }
    }

    /// What it was told when it was made.
    pub fn options(&self) -> &HeadOptions {
        &self.options
    }

    /// Number of series.
    pub fn series_count(&self) -> usize {
        self.series.len()
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.chunk_count
    }

    /// Number of distinct label names and values.
    pub fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    /// Times of the oldest and newest in-order sample; without any, the range ends before it starts.
    pub fn range(&self) -> TimeRange {
        TimeRange { start_ms: self.min_time_ms, end_ms: self.max_time_ms }
    }

    /// Time of the newest sample that the head or a block holds; the smallest time without any.
    pub fn newest_time_ms(&self) -> i64 {
        self.newest_ms()
    }

    /// How many cursors are open; while there are any, nothing may be truncated.
    pub fn open_cursors(&self) -> u64 {
        self.open_cursors.count()
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

    /// Makes sure that no new series gets a number that records of a dropped series still carry.
    pub fn retire_ref(&mut self, series_ref: u64) {
        self.next_ref = self.next_ref.max(series_ref.saturating_add(1));
    }

    /// The largest number that a series has, or had.
    pub fn last_ref(&self) -> u64 {
        self.next_ref.saturating_sub(1)
    }

    fn append_out_of_order(&mut self, slot: Slot, timestamp_ms: i64, value: Value) {
        let (generation, epoch) = (self.generation, self.epoch);
        let arrival = Arrival { generation, epoch, is_watched: self.open_cursors() > 0 };
        if self.is_observed {
            self.note_sample(slot, timestamp_ms, true);
        }
        let series = self.at_mut(slot);
        series.pending_row = NO_ROW;
        series.append_out_of_order(timestamp_ms, value, arrival);
        self.out_of_order_min_time_ms = self.out_of_order_min_time_ms.min(timestamp_ms);
        // The newest of all it is where what was newer was deleted before a cut had an end.
        self.max_time_ms = self.max_time_ms.max(timestamp_ms);
    }

    /// Tells those who want to know that a sample is about to be stored.
    #[cold]
    fn note_sample(&mut self, slot: Slot, timestamp_ms: i64, is_out_of_order: bool) {
        if !is_out_of_order {
            let newest_ms = self.at(slot).newest_ms();
            self.watches.note(slot, newest_ms);
        }
        if let Some(scan) = &mut self.times_scan {
            scan.add(timestamp_ms, is_out_of_order);
        }
        self.is_observed = self.times_scan.is_some() || !self.watches.is_empty();
    }

    #[inline]
    fn append_float(&mut self, slot: Slot, timestamp_ms: i64, value: f64) {
        if self.is_observed {
            self.note_sample(slot, timestamp_ms, false);
        }
        let block_duration_ms = self.options.block_duration_ms;
        let Some(series) = self.series.get_mut(slot) else { return };
        series.pending_row = NO_ROW;
        let begins_chunk = series.append_float(timestamp_ms, value, block_duration_ms);
        self.note_appended(timestamp_ms, begins_chunk);
    }

    fn append(&mut self, slot: Slot, timestamp_ms: i64, value: &Value) {
        if let Value::Float(value) = value {
            return self.append_float(slot, timestamp_ms, *value);
        }
        if self.is_observed {
            self.note_sample(slot, timestamp_ms, false);
        }
        let block_duration_ms = self.options.block_duration_ms;
        let Some(series) = self.series.get_mut(slot) else { return };
        series.pending_row = NO_ROW;
        let begins_chunk = series.append(timestamp_ms, value, block_duration_ms);
        self.note_appended(timestamp_ms, begins_chunk);
    }

    #[inline]
    fn note_appended(&mut self, timestamp_ms: i64, begins_chunk: bool) {
        self.chunk_count += usize::from(begins_chunk);
        self.min_time_ms = self.min_time_ms.min(timestamp_ms);
        self.max_time_ms = self.max_time_ms.max(timestamp_ms);
    }

    /// How many labels a series has, and what they are, by ascending name.
    pub fn labels(&self, slot: Slot) -> (usize, impl Iterator<Item = (&str, &str)>) {
        let labels = &self.at(slot).labels;
        let strings = labels.iter().map(|(n, v)| (self.symbols.text(n), self.symbols.text(v)));
        (labels.len(), strings)
    }

    /// A series' labels in packed form.
    pub fn packed_labels(&self, slot: Slot) -> Labels {
        Labels::from_sorted(self.labels(slot).1)
    }

    /// Begins a batch.
    pub fn begin(&mut self, batch: &mut Batch, now_ms: i64) {
        self.now_ms = now_ms;
        batch.begin();
        batch.in_order_ms = self.in_order_ms();
    }

    /// The clock, as the last write told it.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Bytes of memory that may be in use; 0 is no limit.
    pub fn memory_bytes_max(&self) -> u64 {
        self.options.memory.bytes_max
    }

    /// Bytes of memory in use.
    pub fn memory_used_bytes(&self) -> u64 {
        (self.options.memory.used_bytes)()
    }

    /// Whether memory is so short that no write can be taken before a cut frees some.
    pub fn is_out_of_memory(&self) -> bool {
        self.options.memory.refuses_writes()
    }

    /// What the log must hold of a batch of floats before it is applied, as (series reference,
    /// sample): those that come in order, or those that come out of order.
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

    /// Whether a batch has histograms; nearly all have none.
    pub fn has_histograms(&self, batch: &Batch) -> bool {
        !batch.histograms.is_empty()
    }

    /// What the log must hold of a batch with histograms, in the order in which it came, as
    /// (series reference, time, value).
    pub fn value_rows<'a>(
        &'a self,
        batch: &'a Batch,
        is_out_of_order: bool,
    ) -> impl Iterator<Item = (u64, i64, Value)> + 'a {
        let rows = batch.rows.iter().filter(move |row| row.is_out_of_order == is_out_of_order);
        rows.map(|row| (row.series_ref, row.sample.timestamp_ms, batch.value(row)))
    }

    /// Exemplars that the log must hold, as (series reference, exemplar).
    pub fn exemplar_rows<'a>(
        &'a self,
        batch: &'a Batch,
    ) -> impl Iterator<Item = (u64, &'a Exemplar)> + 'a {
        batch.exemplars.iter().map(|(slot, exemplar)| (self.at(*slot).series_ref, exemplar))
    }

    /// Series that the batch created, for the log.
    pub fn created<'a>(&self, batch: &'a Batch) -> &'a [Slot] {
        &batch.created
    }

    /// Makes a checked batch visible, once the log has it.
    pub fn apply(&mut self, batch: &mut Batch) -> WriteOutcome {
        for row in &batch.rows {
            let Row { slot, sample: Sample { timestamp_ms, value }, is_out_of_order, .. } = *row;
            if row.histogram == IS_FLOAT && !is_out_of_order {
                batch.outcome.samples_written += 1;
                self.append_float(slot, timestamp_ms, value);
                continue;
            }
            let value = batch.value(row);
            batch.outcome.count_written(&value);
            match is_out_of_order {
                false => self.append(slot, timestamp_ms, &value),
                true => self.append_out_of_order(slot, timestamp_ms, value),
            }
            self.counters.samples_out_of_order += u64::from(is_out_of_order);
        }
        for (slot, exemplar) in batch.exemplars.drain(..) {
            let labels = self.packed_labels(slot);
            self.exemplars.add(&labels, exemplar);
        }
        batch.clear();
        let outcome = std::mem::take(&mut batch.outcome);
        let written = outcome.samples_written + outcome.histograms_written;
        self.counters.samples_duplicate += outcome.samples_duplicate;
        self.counters.samples_appended += written - outcome.samples_duplicate;
        outcome
    }

    /// Undoes what checking a batch left behind.
    pub fn abort(&mut self, batch: &mut Batch) {
        for row in &batch.rows {
            self.at_mut(row.slot).pending_row = NO_ROW;
        }
        self.remove(&batch.created);
        batch.clear();
    }

    /// Takes those series out again that a batch created and of which it took no row: what is
    /// refused must not take memory. Their exemplars go with them.
    pub fn drop_unused(&mut self, batch: &mut Batch) {
        let is_unused = |slot: &Slot| self.at(*slot).pending_row == NO_ROW;
        let unused: FxHashSet<Slot> =
            batch.created.extract_if(.., |slot| is_unused(slot)).collect();
        if unused.is_empty() {
            return;
        }
        for (slot, exemplar) in batch.exemplars.extract_if(.., |(slot, _)| unused.contains(slot)) {
            let labels = self.packed_labels(slot);
            batch.outcome.exemplars_written -= 1;
            batch.outcome.refuse(RefusalReason::NoSamples, exemplar.timestamp_ms, 1, || {
                format!("exemplar of {labels}: no sample of this new series was taken")
            });
        }
        self.remove(&unused.into_iter().collect::<Vec<_>>());
    }

    /// Slots in use, ascending.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.series.iter()
    }

    fn remove(&mut self, slots: &[Slot]) {
        if slots.is_empty() {
            return;
        }
        self.postings.remove(slots, &self.series);
        for slot in slots {
            let Some(series) = self.series.remove(*slot) else { continue };
            self.chunk_count -= series.chunk_count();
            if let Ok(entry) = self.by_key.find_entry(series.key.table_hash(), |s| s == slot) {
                entry.remove();
            }
            for (name, value) in series.labels.iter() {
                self.symbols.release(name);
                self.symbols.release(value);
            }
            self.name_lists.release(series.labels);
        }
        let series = &self.series;
        let hash_of = |slot: &Slot| series.get(*slot).map_or(0, |series| series.key.table_hash());
        if self.by_key.capacity() > shrink_above(self.by_key.len()) {
            self.by_key.shrink_to(2 * self.by_key.len(), hash_of);
        }
        self.symbols.shrink();
    }

    /// The series in a slot. Slots come from this head's own tables, which drop a slot together
    /// with its series.
    fn at(&self, slot: Slot) -> &Series {
        match self.series.get(slot) {
            Some(series) => series,
            None => unreachable!("{slot:?} is in a table of the head but holds no series"),
        }
    }

    fn at_mut(&mut self, slot: Slot) -> &mut Series {
        match self.series.get_mut(slot) {
            Some(series) => series,
            None => unreachable!("{slot:?} is in a table of the head but holds no series"),
        }
    }
}

#[cfg(test)]
mod tests;

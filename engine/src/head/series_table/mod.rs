//! The series of the head: by slot, by labels and by the number that they have in the log.
//!
//! A slot, a key and the labels of a series are added and removed together. The index by label,
//! `postings`, is separate: callers update it after [`SeriesTable::insert`] and before
//! [`SeriesTable::remove`].

mod load;
mod lookup;

pub use load::TableLoader;
pub use lookup::{LookupError, RequestSymbols, TextPairs};

use super::label_names::NameLists;
use super::series::out_of_order_samples::Arrival;
use super::series::{NO_ROW, Series, SeriesKey, Slot};
use super::slab::{Slab, shrink_above};
use super::symbols::Symbols;
use super::window::HeldTimes;
use crate::chunk::ChunkError;
use crate::model::{Labels, TimeRange, Value};
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

pub struct SeriesTable {
    symbols: Symbols,
    series: Slab<Slot, Series>,
    by_key: HashTable<Slot>,
    name_lists: NameLists,
    /// Series that embedders look up by their number.
    by_ref: FxHashMap<u64, Slot>,
    next_ref: u64,
    /// In-order chunks of all series.
    chunk_count: usize,
}

/// Samples and series that a truncation leaves.
pub struct Truncated {
    /// Oldest samples that are left.
    pub held: HeldTimes,
    /// Series that have no sample left.
    pub empty: Vec<Slot>,
}

impl SeriesTable {
    /// Creates an empty table whose hashes are mixed with `seed`.
    pub fn new(seed: u64) -> SeriesTable {
        SeriesTable {
            symbols: Symbols::new(seed),
            series: Slab::default(),
            by_key: HashTable::new(),
            name_lists: NameLists::default(),
            by_ref: FxHashMap::default(),
            next_ref: 1,
            chunk_count: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.series.len()
    }

    pub fn chunk_count(&self) -> usize {
        self.chunk_count
    }

    #[inline]
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    #[inline]
    pub fn places(&self) -> &Slab<Slot, Series> {
        &self.series
    }

    #[inline]
    pub fn get(&self, slot: Slot) -> Option<&Series> {
        self.series.get(slot)
    }

    /// Returns the series in a slot, if any. Only the table adds or removes chunks of a series.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Series> {
        self.series.get_mut(slot)
    }

    /// Returns the series in a slot. Slots come from the head's own tables, which drop a slot
    /// together with its series.
    #[inline]
    pub fn at(&self, slot: Slot) -> &Series {
        match self.series.get(slot) {
            Some(series) => series,
            None => unreachable!("{slot:?} is in a table of the head but holds no series"),
        }
    }

    #[inline]
    pub fn at_mut(&mut self, slot: Slot) -> &mut Series {
        match self.series.get_mut(slot) {
            Some(series) => series,
            None => unreachable!("{slot:?} is in a table of the head but holds no series"),
        }
    }

    /// Returns the number of a series' labels, and the labels by ascending name.
    pub fn labels(&self, slot: Slot) -> (usize, impl Iterator<Item = (&str, &str)>) {
        let labels = &self.at(slot).labels;
        let strings = labels.iter().map(|(n, v)| (self.symbols.text(n), self.symbols.text(v)));
        (labels.len(), strings)
    }

    pub fn label_bytes(&self, slot: Slot) -> usize {
        self.labels(slot).1.map(|(name, value)| name.len() + value.len()).sum()
    }

    pub fn packed_labels(&self, slot: Slot) -> Labels {
        Labels::from_sorted(self.labels(slot).1)
    }

    /// Adds a series with these labels, which are sorted, valid and not in the table yet.
    pub fn insert(&mut self, hash: u64, pairs: &[(&str, &str)]) -> Slot {
        let symbols = &mut self.symbols;
        let names = pairs.iter().map(|(name, _)| symbols.acquire(name)).collect();
        let values = pairs.iter().map(|(_, value)| symbols.acquire(value)).collect();
        let labels = self.name_lists.labels(names, values);
        let key = SeriesKey::of(hash);
        let slot = self.series.insert(Series::new(self.next_ref, key, labels));
        // Numbers are never reused, so that older records cannot mean a newer series.
        self.next_ref += 1;
        let all = &self.series;
        let hash_of = |slot: &Slot| all.get(*slot).map_or(0, |series| series.key.table_hash());
        self.by_key.insert_unique(key.table_hash(), slot, hash_of);
        slot
    }

    /// Removes series that are in no list of `postings` any more.
    pub fn remove(&mut self, slots: &[Slot]) {
        for slot in slots {
            let Some(series) = self.series.remove(*slot) else { continue };
            self.chunk_count -= series.chunk_count();
            // Several series may have the same key, so the slot decides.
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
        // Shrinks only far below the capacity, so that churn does not rehash all series repeatedly.
        if self.by_key.capacity() > shrink_above(self.by_key.len()) {
            self.by_key.shrink_to(2 * self.by_key.len(), hash_of);
        }
        self.symbols.shrink();
    }

    pub fn by_ref(&self, series_ref: u64) -> Option<Slot> {
        self.by_ref.get(&series_ref).copied()
    }

    /// Makes a series available to [`SeriesTable::by_ref`].
    pub fn remember_ref(&mut self, slot: Slot) {
        self.by_ref.insert(self.at(slot).series_ref, slot);
    }

    /// Drops the numbers of dropped series from [`SeriesTable::by_ref`].
    pub fn drop_dead_refs(&mut self) {
        let series = &self.series;
        self.by_ref.retain(|series_ref, slot| {
            // The slot may belong to another series by now.
            series.get(*slot).is_some_and(|series| series.series_ref == *series_ref)
        });
    }

    /// Keeps new series from getting a number that log records of a dropped series still use.
    pub fn retire_ref(&mut self, series_ref: u64) {
        self.next_ref = self.next_ref.max(series_ref.saturating_add(1));
    }

    pub fn next_ref(&self) -> u64 {
        self.next_ref
    }

    /// Appends a float newer than its series' in-order values; returns whether the series exists.
    #[inline]
    pub fn append_float(
        &mut self,
        slot: Slot,
        timestamp_ms: i64,
        value: f64,
        block_duration_ms: i64,
    ) -> bool {
        let Some(series) = self.series.get_mut(slot) else { return false };
        // The batch is applied, so its row numbers are no longer valid.
        series.pending_row = NO_ROW;
        let begins_chunk = series.append_float(timestamp_ms, value, block_duration_ms);
        self.chunk_count += usize::from(begins_chunk);
        true
    }

    /// Like [`SeriesTable::append_float`], for any value.
    pub fn append(
        &mut self,
        slot: Slot,
        timestamp_ms: i64,
        value: &Value,
        block_duration_ms: i64,
    ) -> bool {
        let Some(series) = self.series.get_mut(slot) else { return false };
        series.pending_row = NO_ROW;
        let begins_chunk = series.append(timestamp_ms, value, block_duration_ms);
        self.chunk_count += usize::from(begins_chunk);
        true
    }

    pub fn append_out_of_order(
        &mut self,
        slot: Slot,
        timestamp_ms: i64,
        value: Value,
        arrival: Arrival<'_>,
    ) {
        let series = self.at_mut(slot);
        series.pending_row = NO_ROW;
        series.append_out_of_order(timestamp_ms, value, arrival);
    }

    /// Adds out-of-order samples of one series, ascending by time.
    pub fn append_all_out_of_order(
        &mut self,
        slot: Slot,
        samples: Vec<(i64, Value)>,
        arrival: Arrival<'_>,
    ) {
        let series = self.at_mut(slot);
        series.pending_row = NO_ROW;
        series.append_all_out_of_order(samples, arrival);
    }

    /// Removes the in-order samples of a range from a series.
    pub fn delete_in_order(&mut self, slot: Slot, range: TimeRange) -> Result<(), ChunkError> {
        let series = self.at_mut(slot);
        let before = series.chunk_count();
        let deleted = series.delete_in_order(range);
        let after = series.chunk_count();
        // The sum is computed first: a deletion within a chunk can increase the number of chunks.
        self.chunk_count = self.chunk_count + after - before;
        deleted
    }

    /// Drops samples before a time; of out-of-order samples, only those of generations before
    /// `generation`. Lists series without samples if `lists_empty`.
    pub fn truncate(
        &mut self,
        before_ms: i64,
        generation: u64,
        lists_empty: bool,
    ) -> Result<Truncated, ChunkError> {
        let mut truncated = Truncated { held: HeldTimes::NONE, empty: Vec::new() };
        for slot in self.series.all() {
            let Some(series) = self.series.get_mut(slot) else { continue };
            self.chunk_count -= series.truncate(before_ms, generation)?;
            // Called for every series, since it also collects the oldest times.
            if !truncated.held.add_oldest_of(series) && lists_empty {
                truncated.empty.push(slot);
            }
        }
        Ok(truncated)
    }
}

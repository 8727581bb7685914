//! Builds a table of series from a head snapshot, with the lists of series by label.

use super::SeriesTable;
use crate::codec::hash_word;
use crate::head::label_names::{NameList, NameLists, SeriesLabels};
use crate::head::postings::Postings;
use crate::head::saved::{Bytes, SavedHeadError, damaged};
use crate::head::series::{Series, SeriesKey, Slot};
use crate::head::slab::Slab;
use crate::head::symbols::{SymbolId, Symbols};
use crate::head::window::HeldTimes;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

/// Takes symbols, labels and series in the order in which they were saved.
pub struct TableLoader {
    block_duration_ms: i64,
    next_ref: u64,
    symbols: Symbols,
    pairs: Vec<Pair>,
    names: NameLists,
    name_lists: Vec<NameList>,
    series: Slab<Slot, Series>,
    /// Numbers of the (name, value) pairs of all series, one series after the other.
    series_pairs: Vec<u32>,
    chunk_count: usize,
    held: HeldTimes,
}

struct Pair {
    name: SymbolId,
    value: SymbolId,
    name_hash: u64,
    value_hash: u64,
    /// Number of series that have the label.
    series: u32,
}

impl TableLoader {
    pub fn new(hash_seed: u64, block_duration_ms: i64) -> TableLoader {
        TableLoader {
            block_duration_ms,
            next_ref: 1,
            symbols: Symbols::new(hash_seed),
            pairs: Vec::new(),
            names: NameLists::default(),
            name_lists: Vec::new(),
            series: Slab::default(),
            series_pairs: Vec::new(),
            chunk_count: 0,
            held: HeldTimes::NONE,
        }
    }

    pub fn len(&self) -> usize {
        self.series.len()
    }

    pub fn take_next_ref(&mut self, piece: &mut Bytes<'_>) -> Result<(), SavedHeadError> {
        self.next_ref = piece.u64()?;
        Ok(())
    }

    pub fn take_symbol(&mut self, piece: &mut Bytes<'_>) -> Result<(), SavedHeadError> {
        let new = self.symbols.add_unused(piece.text()?);
        new.map(|_| ()).ok_or(damaged("a symbol occurs twice"))
    }

    fn symbol(&self, number: u32) -> Result<SymbolId, SavedHeadError> {
        let id = SymbolId(number);
        self.symbols.holds(id).then_some(id).ok_or(damaged("a label refers to no symbol"))
    }

    pub fn take_pair(&mut self, piece: &mut Bytes<'_>) -> Result<(), SavedHeadError> {
        let (name, value) = (self.symbol(piece.u32()?)?, self.symbol(piece.u32()?)?);
        let (name_hash, value_hash) = (self.symbols.hash_of(name), self.symbols.hash_of(value));
        self.pairs.push(Pair { name, value, name_hash, value_hash, series: 0 });
        Ok(())
    }

    /// Takes the label names that series have.
    pub fn take_name_list(&mut self, piece: &mut Bytes<'_>) -> Result<(), SavedHeadError> {
        let names = piece.u32s()?.map(|number| self.symbol(number));
        let names = names.collect::<Result<Box<[SymbolId]>, _>>()?;
        let strings = || names.iter().map(|name| self.symbols.text(*name));
        // A series is looked up by sorted names, so an unsorted list would never be found.
        if !strings().is_sorted_by(|a, b| a < b) || strings().any(str::is_empty) {
            return Err(damaged("label names are out of order"));
        }
        self.name_lists.push(self.names.list(names));
        Ok(())
    }

    #[inline]
    pub fn take_series(&mut self, piece: &mut Bytes<'_>) -> Result<(), SavedHeadError> {
        let names = self.name_lists.get(piece.u32()? as usize);
        let names = names.ok_or(damaged("a series has no label names"))?;
        let (numbers, _) = piece.part(4 * names.len())?.as_chunks::<4>();
        self.series_pairs.reserve(names.len());
        let mut values = Vec::with_capacity(names.len());
        // The hash is computed as in `SeriesTable::find_by_pairs`.
        let mut hash = self.symbols.seed();
        for (name, number) in names.iter().zip(numbers) {
            let number = u32::from_le_bytes(*number);
            // A pair with another name would make the label set unsorted.
            let Some(pair) = self.pairs.get_mut(number as usize).filter(|p| p.name == *name) else {
                return Err(damaged("a series refers to no label"));
            };
            pair.series += 1;
            values.push(pair.value);
            hash = hash_word(hash_word(hash, pair.name_hash), pair.value_hash);
            self.series_pairs.push(number);
        }
        let labels = SeriesLabels::new(names, values.into());
        let series =
            Series::take_state(SeriesKey::of(hash), labels, self.block_duration_ms, piece)?;
        // Otherwise a new series would get the same number.
        if series.series_ref >= self.next_ref {
            return Err(damaged("a series has a number that is still to be given"));
        }
        self.chunk_count += series.chunk_count();
        self.held.add_oldest_of(&series);
        self.series.insert(series);
        Ok(())
    }

    /// Returns the table, the lists of series by label, and the oldest samples.
    pub fn finish(mut self) -> Result<(SeriesTable, Postings, HeldTimes), SavedHeadError> {
        let postings = self.postings()?;
        let mut by_key = HashTable::with_capacity(self.series.len());
        for slot in self.series.iter() {
            let Some(series) = self.series.get(slot) else { continue };
            let hash_of =
                |slot: &Slot| self.series.get(*slot).map_or(0, |series| series.key.table_hash());
            by_key.insert_unique(series.key.table_hash(), slot, hash_of);
        }
        let table = SeriesTable {
            symbols: self.symbols,
            series: self.series,
            by_key,
            name_lists: self.names,
            by_ref: FxHashMap::default(),
            next_ref: self.next_ref,
            chunk_count: self.chunk_count,
        };
        Ok((table, postings, self.held))
    }

    /// Builds the lists of series by label. All slots were assigned in ascending order.
    fn postings(&mut self) -> Result<Postings, SavedHeadError> {
        for pair in &self.pairs {
            // A label or symbol without series would never be released.
            if pair.series == 0 {
                return Err(damaged("no series has a label"));
            }
            self.symbols.use_more(pair.name, pair.series);
            self.symbols.use_more(pair.value, pair.series);
        }
        if !self.symbols.are_all_used() {
            return Err(damaged("no series has a symbol"));
        }
        // The numbers of series are known, so that no list has to grow.
        let with_room = |pair: &Pair| Vec::with_capacity(pair.series as usize);
        let mut lists: Vec<Vec<Slot>> = self.pairs.iter().map(with_room).collect();
        let mut pairs = std::mem::take(&mut self.series_pairs).into_iter();
        let all: Vec<Slot> = self.series.iter().collect();
        for slot in &all {
            let count = self.series.get(*slot).map_or(0, |series| series.labels.len());
            for pair in pairs.by_ref().take(count) {
                lists[pair as usize].push(*slot);
            }
        }
        let lists = self.pairs.iter().map(|pair| (pair.name, pair.value)).zip(lists);
        Postings::from_lists(lists, all).ok_or(damaged("a label occurs twice"))
    }
}

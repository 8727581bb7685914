//! Putting a head together.

use super::{Bytes, SavedHeadError, damaged, kind};
use crate::codec::hash_word;
use crate::head::exemplars::RingLoader;
use crate::head::label_names::{NameList, NameLists, SeriesLabels};
use crate::head::metadata::MetadataTable;
use crate::head::postings::Postings;
use crate::head::series::{Series, SeriesKey};
use crate::head::slab::Slab;
use crate::head::symbols::{SymbolId, Symbols};
use crate::head::{Exemplars, Head, HeadOptions, Slot};
use hashbrown::HashTable;

/// Takes pieces of a head, in the order in which they were given. The head comes to be at the end;
/// after an error the loader is of no further use.
pub struct HeadLoader {
    options: HeadOptions,
    /// Kind of the last piece.
    kind: u8,
    next_ref: u64,
    max_time_ms: i64,
    floor_ms: i64,
    symbols: Symbols,
    pairs: Vec<Pair>,
    names: NameLists,
    name_lists: Vec<NameList>,
    series: Slab<Slot, Series>,
    /// Pairs of all series, one series after the other.
    series_pairs: Vec<u32>,
    chunk_count: usize,
    metadata: MetadataTable,
    exemplars: Exemplars,
    ring: RingLoader,
}

/// A label that series have.
struct Pair {
    name: SymbolId,
    value: SymbolId,
    name_hash: u64,
    value_hash: u64,
    /// How many series have it.
    series: u32,
}

impl HeadLoader {
    /// Nothing was taken yet.
    pub fn new(options: HeadOptions) -> HeadLoader {
        HeadLoader {
            options,
            kind: 0,
            next_ref: 1,
            max_time_ms: i64::MIN,
            floor_ms: i64::MIN,
            symbols: Symbols::new(options.hash_seed),
            pairs: Vec::new(),
            names: NameLists::default(),
            name_lists: Vec::new(),
            series: Slab::default(),
            series_pairs: Vec::new(),
            chunk_count: 0,
            metadata: MetadataTable::default(),
            exemplars: Exemplars::new(options.exemplars_max, options.hash_seed),
            ring: RingLoader::default(),
        }
    }

    /// Takes the next piece; gives whether it was the last.
    pub fn take(&mut self, piece: &[u8]) -> Result<bool, SavedHeadError> {
        let mut piece = Bytes(piece);
        let kind = piece.u8()?;
        let is_next = match self.kind {
            0 => kind == kind::FIRST,
            before => before <= kind && before != kind::END && kind != kind::FIRST,
        };
        if !is_next {
            return Err(damaged("its pieces are out of order"));
        }
        self.kind = kind;
        while !piece.is_empty() {
            match kind {
                kind::TIMES => {
                    self.next_ref = piece.u64()?;
                    (self.max_time_ms, self.floor_ms) = (piece.i64()?, piece.i64()?);
                }
                kind::SYMBOLS => {
                    let new = self.symbols.add_unused(piece.text()?);
                    new.ok_or(damaged("a symbol occurs twice"))?;
                }
                kind::PAIRS => self.take_pair(&mut piece)?,
                kind::NAME_LISTS => self.take_name_list(&mut piece)?,
                kind::SERIES => self.take_series(&mut piece)?,
                kind::METADATA => self.metadata.take_state(&mut piece)?,
                kind::EXEMPLAR_SERIES => self.ring.take_series(&mut piece)?,
                kind::EXEMPLARS => self.ring.take_exemplar(&mut self.exemplars, &mut piece)?,
                kind::END => {
                    if piece.u32()? as usize != self.series.len() {
                        return Err(damaged("series are missing"));
                    }
                    return Ok(true);
                }
                _ => return Err(damaged("it has a piece of an unknown kind")),
            }
        }
        Ok(false)
    }

    fn symbol(&self, number: u32) -> Result<SymbolId, SavedHeadError> {
        let id = SymbolId(number);
        self.symbols.holds(id).then_some(id).ok_or(damaged("a label refers to no symbol"))
    }

    fn take_pair(&mut self, piece: &mut Bytes<'_>) -> Result<(), SavedHeadError> {
        let (name, value) = (self.symbol(piece.u32()?)?, self.symbol(piece.u32()?)?);
        let (name_hash, value_hash) = (self.symbols.hash_of(name), self.symbols.hash_of(value));
        self.pairs.push(Pair { name, value, name_hash, value_hash, series: 0 });
        Ok(())
    }

    fn take_name_list(&mut self, piece: &mut Bytes<'_>) -> Result<(), SavedHeadError> {
        let names = piece.u32s()?.map(|number| self.symbol(number));
        let names = names.collect::<Result<Box<[SymbolId]>, _>>()?;
        let strings = || names.iter().map(|name| self.symbols.text(*name));
        if !strings().is_sorted_by(|a, b| a < b) || strings().any(str::is_empty) {
            return Err(damaged("label names are out of order"));
        }
        self.name_lists.push(self.names.list(names));
        Ok(())
    }

    #[inline]
    fn take_series(&mut self, piece: &mut Bytes<'_>) -> Result<(), SavedHeadError> {
        let names = self.name_lists.get(piece.u32()? as usize);
        let names = names.ok_or(damaged("a series has no label names"))?;
        let (numbers, _) = piece.part(4 * names.len())?.as_chunks::<4>();
        self.series_pairs.reserve(names.len());
        let mut values = Vec::with_capacity(names.len());
        // As `Head::series_by_pairs` has it.
        let mut hash = self.options.hash_seed;
        for (name, number) in names.iter().zip(numbers) {
            let number = u32::from_le_bytes(*number);
            let Some(pair) = self.pairs.get_mut(number as usize).filter(|p| p.name == *name) else {
                return Err(damaged("a series refers to no label"));
            };
            pair.series += 1;
            values.push(pair.value);
            hash = hash_word(hash_word(hash, pair.name_hash), pair.value_hash);
            self.series_pairs.push(number);
        }
        let labels = SeriesLabels::new(names, values.into());
        let series = Series::take_state(SeriesKey::of(hash), labels, &self.options, piece)?;
        if series.series_ref >= self.next_ref {
            return Err(damaged("a series has a number that is still to be given"));
        }
        self.chunk_count += series.chunk_count();
        self.series.insert(series);
        Ok(())
    }

    /// Makes an empty head the one that was saved. Gives what is wrong if it cannot be.
    pub fn finish(mut self, head: &mut Head) -> Result<(), SavedHeadError> {
        let postings = self.postings()?;
        let mut by_key = HashTable::with_capacity(self.series.len());
        let (mut min_time_ms, mut out_of_order_min_time_ms) = (i64::MAX, i64::MAX);
        for slot in self.series.iter() {
            let Some(series) = self.series.get(slot) else { continue };
            min_time_ms = min_time_ms.min(series.min_time_ms().unwrap_or(i64::MAX));
            out_of_order_min_time_ms =
                out_of_order_min_time_ms.min(series.out_of_order_min_time_ms().unwrap_or(i64::MAX));
            let hash_of =
                |slot: &Slot| self.series.get(*slot).map_or(0, |series| series.key.table_hash());
            by_key.insert_unique(series.key.table_hash(), slot, hash_of);
        }
        head.counters.series_created += self.series.len() as u64;
        head.symbols = self.symbols;
        head.postings = postings;
        head.series = self.series;
        head.by_key = by_key;
        head.name_lists = self.names;
        head.next_ref = self.next_ref;
        head.chunk_count = self.chunk_count;
        head.min_time_ms = min_time_ms;
        head.max_time_ms = self.max_time_ms;
        head.out_of_order_min_time_ms = out_of_order_min_time_ms;
        head.metadata = self.metadata;
        head.exemplars = self.exemplars;
        let valid_ms = head.min_valid_ms;
        head.min_valid_ms = valid_ms.max(self.floor_ms);
        // A cut whose block was committed just before: what the block holds goes, as in a replay.
        if head.min_time_ms < head.min_valid_ms
            && head.replay_floor(head.min_valid_ms).and_then(|()| head.end_replay()).is_err()
        {
            *head = Head::new(self.options, valid_ms);
            return Err(damaged("a chunk does not decode"));
        }
        Ok(())
    }

    /// Lists of series by label. All series have got slots one after the other.
    fn postings(&mut self) -> Result<Postings, SavedHeadError> {
        for pair in &self.pairs {
            if pair.series == 0 {
                return Err(damaged("no series has a label"));
            }
            self.symbols.use_more(pair.name, pair.series);
            self.symbols.use_more(pair.value, pair.series);
        }
        if !self.symbols.are_all_used() {
            return Err(damaged("no series has a symbol"));
        }
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

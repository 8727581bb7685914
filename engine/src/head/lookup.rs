//! From a request's labels to a series of the head, which is made if it is new.
//!
//! Labels arrive as strings (remote write 1.0) or as references into a table of symbols (2.0). A
//! series' hash is folded from the hashes of its names and values, so that both ways lead to the
//! same entry, and 2.0 hashes each symbol at most once a request. A hit is verified label by label against
//! the stored set, which is sorted and valid; only a miss needs sorting and checks.

use super::batch::Batch;
use super::series::{Series, SeriesKey, Slot};
use super::slab::Place;
use super::symbols::{SymbolId, Symbols};
use super::{Head, Labels};
use crate::codec::{bytes_equal, hash_word};
use crate::model::{LABEL_NAME, LabelError, sort_and_check};

/// The symbols of one 2.0 request, with what the head knows of each.
#[derive(Default)]
pub struct RequestSymbols<'r> {
    symbols: Vec<RequestSymbol<'r>>,
}

/// Names and values of labels as a request gives them.
pub type Pairs<'r> = Vec<(&'r [u8], &'r [u8])>;

struct RequestSymbol<'r> {
    text: &'r [u8],
    /// Once it was needed.
    hash: u64,
    /// The number that it has in the head, or one of the two below.
    known_as: u32,
}

/// Nothing is known of a symbol.
const UNHASHED: u32 = u32::MAX;
/// A symbol that the head did not have when it was last looked for.
const UNKNOWN: u32 = u32::MAX - 1;

impl RequestSymbol<'_> {
    #[inline]
    fn hash(&mut self, table: &Symbols) -> u64 {
        if self.known_as == UNHASHED {
            self.hash = table.hash(self.text);
            self.known_as = UNKNOWN;
        }
        self.hash
    }

    /// Looks for a symbol in the head; gives whether it is this one.
    #[inline(never)]
    fn is_found(&mut self, table: &Symbols, id: SymbolId) -> bool {
        let hash = self.hash(table);
        self.known_as = table.find(self.text, hash).map_or(UNKNOWN, Place::number);
        self.known_as == id.number()
    }
}

/// Why labels lead to no series.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// They are no label set.
    #[error(transparent)]
    Labels(#[from] LabelError),
    /// A reference points outside the table of symbols.
    #[error("symbol reference {symbol_ref} is outside the request's table of {symbols} symbols")]
    SymbolRef {
        /// The reference.
        symbol_ref: u32,
        /// Length of the table.
        symbols: usize,
    },
    /// References come in pairs of name and value.
    #[error("the list of label references has the odd length {count}")]
    OddRefs {
        /// Its length.
        count: usize,
    },
    /// The head is full.
    #[error("the series is new, and the head has reached the limit of {max} series")]
    SeriesLimit {
        /// The limit.
        max: u64,
    },
    /// Memory is short.
    #[error(
        "the series is new, and memory is short: the head has nearly used its limit of {max} bytes"
    )]
    MemoryLimit {
        /// The head's memory in bytes.
        max: u64,
    },
}

impl<'r> RequestSymbols<'r> {
    /// The symbols of a request. Each is hashed when it is first needed.
    pub fn new(strings: &[&'r [u8]]) -> RequestSymbols<'r> {
        let symbol = |text: &&'r [u8]| RequestSymbol { text, hash: 0, known_as: UNHASHED };
        RequestSymbols { symbols: strings.iter().map(symbol).collect() }
    }

    /// The bytes of a symbol.
    pub fn text(&self, symbol_ref: u32) -> Option<&'r [u8]> {
        self.symbols.get(symbol_ref as usize).map(|symbol| symbol.text)
    }

    /// Names and values that references mean, which come in turn.
    pub fn pairs(&self, refs: &[u32]) -> Result<Pairs<'r>, LookupError> {
        let (pairs, odd) = refs.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(LookupError::OddRefs { count: refs.len() });
        }
        let text = |symbol_ref: u32| {
            let symbols = self.symbols.len();
            self.text(symbol_ref).ok_or(LookupError::SymbolRef { symbol_ref, symbols })
        };
        pairs.iter().map(|[name, value]| Ok((text(*name)?, text(*value)?))).collect()
    }

    /// Whether a reference means a symbol of the head.
    #[inline(always)]
    pub(super) fn is(&mut self, table: &Symbols, symbol_ref: u32, id: SymbolId) -> bool {
        let Some(symbol) = self.symbols.get_mut(symbol_ref as usize) else { return false };
        symbol.known_as == id.number() || symbol.known_as >= UNKNOWN && symbol.is_found(table, id)
    }
}

impl Head {
    /// The series with these labels, given in any order.
    pub fn series_by_pairs(
        &mut self,
        batch: &mut Batch,
        pairs: &[(&[u8], &[u8])],
    ) -> Result<Slot, LookupError> {
        let hash = pairs.iter().fold(self.options.hash_seed, |hash, (name, value)| {
            let hash = hash_word(hash, self.symbols.hash(name));
            hash_word(hash, self.symbols.hash(value))
        });
        let (symbols, all) = (&self.symbols, &self.series);
        let found = self.by_key.find(SeriesKey::of(hash).table_hash(), |slot| {
            let Some(series) = all.get(*slot) else { return false };
            let is = |id, text| bytes_equal(symbols.text(id).as_bytes(), text);
            let mut both = series.labels.iter().zip(pairs);
            series.labels.len() == pairs.len()
                && both.all(|(stored, given)| is(stored.0, given.0) && is(stored.1, given.1))
        });
        match found {
            Some(slot) => Ok(*slot),
            None => self.unusual_series(batch, pairs.iter().copied()),
        }
    }

    /// The series whose labels are these references, name and value in turn.
    pub fn series_by_refs(
        &mut self,
        batch: &mut Batch,
        request: &mut RequestSymbols<'_>,
        refs: &[u32],
    ) -> Result<Slot, LookupError> {
        let mut hash = self.options.hash_seed;
        for symbol_ref in refs {
            let symbols = request.symbols.len();
            let symbol = request
                .symbols
                .get_mut(*symbol_ref as usize)
                .ok_or(LookupError::SymbolRef { symbol_ref: *symbol_ref, symbols })?;
            hash = hash_word(hash, symbol.hash(&self.symbols));
        }
        let (pairs, odd) = refs.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(LookupError::OddRefs { count: refs.len() });
        }
        let (symbols, all) = (&self.symbols, &self.series);
        let found = self.by_key.find(SeriesKey::of(hash).table_hash(), |slot| {
            let Some(series) = all.get(*slot) else { return false };
            let mut is = |id, symbol_ref: &u32| request.is(symbols, *symbol_ref, id);
            let mut both = series.labels.iter().zip(pairs);
            series.labels.len() == pairs.len()
                && both.all(|(stored, [name, value])| is(stored.0, name) && is(stored.1, value))
        });
        if let Some(slot) = found {
            return Ok(*slot);
        }
        let text = |symbol_ref: &u32| request.text(*symbol_ref).unwrap_or_default();
        let pairs: Vec<_> = pairs.iter().map(|[name, value]| (text(name), text(value))).collect();
        self.unusual_series(batch, pairs.into_iter())
    }

    /// The series with a label set that keeps its invariants already.
    pub fn series_by_labels(
        &mut self,
        batch: &mut Batch,
        labels: &Labels,
    ) -> Result<Slot, LookupError> {
        let pairs: Vec<_> =
            labels.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        self.series_by_pairs(batch, &pairs)
    }

    /// Labels that are not stored in this very order: new, unsorted, or no label set at all.
    fn unusual_series<'r>(
        &mut self,
        batch: &mut Batch,
        pairs: impl Iterator<Item = (&'r [u8], &'r [u8])>,
    ) -> Result<Slot, LookupError> {
        let utf8 = |bytes| std::str::from_utf8(bytes).map_err(|_| LabelError::NotUtf8);
        let mut pairs = pairs
            .map(|(name, value)| Ok((utf8(name)?, utf8(value)?)))
            .collect::<Result<Vec<_>, LabelError>>()?;
        sort_and_check(&mut pairs)?;
        if !pairs.iter().any(|(name, _)| *name == LABEL_NAME) {
            return Err(LabelError::NoMetricName.into());
        }
        let mut hash = self.options.hash_seed;
        for (name, value) in &pairs {
            hash = hash_word(hash, self.symbols.hash(name.as_bytes()));
            hash = hash_word(hash, self.symbols.hash(value.as_bytes()));
        }
        let (symbols, all) = (&self.symbols, &self.series);
        let found = self.by_key.find(SeriesKey::of(hash).table_hash(), |slot| {
            let Some(series) = all.get(*slot) else { return false };
            let stored = series.labels.iter().map(|(n, v)| (symbols.text(n), symbols.text(v)));
            stored.eq(pairs.iter().copied())
        });
        if let Some(slot) = found {
            return Ok(*slot);
        }
        // What was acknowledged comes back, whatever the limits are now.
        if !self.is_replaying {
            self.options.label_limits.check(&pairs)?;
            self.check_limits()?;
        }
        let slot = self.insert(hash, &pairs);
        batch.created.push(slot);
        Ok(slot)
    }

    /// Whether there may be one more series.
    fn check_limits(&self) -> Result<(), LookupError> {
        let max = self.options.series_max;
        if max > 0 && self.series_count() as u64 >= max {
            return Err(LookupError::SeriesLimit { max });
        }
        match self.options.memory.refuses_series() {
            true => Err(LookupError::MemoryLimit { max: self.options.memory.bytes_max }),
            false => Ok(()),
        }
    }

    fn insert(&mut self, hash: u64, pairs: &[(&str, &str)]) -> Slot {
        let symbols = &mut self.symbols;
        let names = pairs.iter().map(|(name, _)| symbols.acquire(name)).collect();
        let values = pairs.iter().map(|(_, value)| symbols.acquire(value)).collect();
        let labels = self.name_lists.labels(names, values);
        let key = SeriesKey::of(hash);
        let slot = self.series.insert(Series::new(self.next_ref, key, labels));
        self.next_ref += 1;
        let all = &self.series;
        if let Some(series) = all.get(slot) {
            self.postings.insert(slot, &series.labels);
        }
        let hash_of = |slot: &Slot| all.get(*slot).map_or(0, |series| series.key.table_hash());
        self.by_key.insert_unique(key.table_hash(), slot, hash_of);
        self.counters.series_created += 1;
        slot
    }
}

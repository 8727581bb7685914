//! From a request's labels to a series of the table.
//!
//! Labels arrive as strings (remote write 1.0) or as references into a table of symbols (2.0). A
//! series' hash is folded from the hashes of its names and values, so that both ways lead to the
//! same entry, and 2.0 hashes each symbol at most once a request. A hit is verified label by label
//! against the stored set, which is sorted and valid; only a miss needs sorting and checks.

use super::SeriesTable;
use crate::codec::{bytes_equal, hash_word};
use crate::head::series::{SeriesKey, Slot};
use crate::head::slab::Place;
use crate::head::symbols::{SymbolId, Symbols};
use crate::model::{LabelError, LabelLimits};

/// The symbols of one 2.0 request, with what the head knows of each.
#[derive(Default)]
pub struct RequestSymbols<'r> {
    symbols: Vec<RequestSymbol<'r>>,
    /// The texts of those that were found to be UTF-8; empty until a series asks for one.
    checked: Vec<Option<&'r str>>,
}

/// Names and values of labels as a request gives them.
pub type Pairs<'r> = Vec<(&'r [u8], &'r [u8])>;

/// Names and values that are UTF-8.
pub type TextPairs<'r> = Vec<(&'r str, &'r str)>;

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

    /// Looks for a symbol in the head; returns whether it is this one.
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
    /// The references of the request mean more text than one request may lead to.
    #[error(
        "the labels have {bytes} bytes, and those of this request's new or unsorted series may have \
         {max} together, beyond the usual length; send fewer of them in a request"
    )]
    LabelBytes {
        /// Bytes of these labels.
        bytes: usize,
        /// The limit of a request.
        max: usize,
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
        RequestSymbols { symbols: strings.iter().map(symbol).collect(), checked: Vec::new() }
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

    /// Bytes of the texts that references mean.
    pub fn text_bytes(&self, refs: &[u32]) -> usize {
        let bytes = |symbol_ref: &u32| self.text(*symbol_ref).map_or(0, <[u8]>::len);
        refs.iter().map(bytes).fold(0, usize::saturating_add)
    }

    /// Refuses labels of a new series that are too long by their lengths alone. Those that the head
    /// has as symbols may be of a series that is stored.
    pub(in crate::head) fn check_lengths(
        &mut self,
        table: &Symbols,
        limits: &LabelLimits,
        refs: &[u32],
    ) -> Result<(), LabelError> {
        let (pairs, _) = refs.as_chunks::<2>();
        for [name_ref, value_ref] in pairs {
            let text = |symbol_ref: &u32| self.text(*symbol_ref).unwrap_or_default();
            let (name, value) = (text(name_ref), text(value_ref));
            // A label without a value is none.
            if value.is_empty() || !limits.exceeded_by(name, value) {
                continue;
            }
            if !self.is_held(table, *name_ref) || !self.is_held(table, *value_ref) {
                limits.check(&[(self.checked(*name_ref)?, self.checked(*value_ref)?)])?;
            }
        }
        Ok(())
    }

    /// Texts that references mean which [`SeriesTable::find_by_refs`] has taken.
    pub(in crate::head) fn known_texts(
        &mut self,
        refs: &[u32],
    ) -> Result<TextPairs<'r>, LabelError> {
        let (pairs, _) = refs.as_chunks::<2>();
        let pairs = pairs.iter();
        pairs.map(|[name, value]| Ok((self.checked(*name)?, self.checked(*value)?))).collect()
    }

    /// The text of a symbol, which is validated once.
    fn checked(&mut self, symbol_ref: u32) -> Result<&'r str, LabelError> {
        if self.checked.is_empty() {
            self.checked = vec![None; self.symbols.len()];
        }
        let bytes = self.text(symbol_ref).unwrap_or_default();
        let Some(checked) = self.checked.get_mut(symbol_ref as usize) else { return Ok("") };
        if let Some(text) = checked {
            return Ok(text);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| LabelError::NotUtf8)?;
        *checked = Some(text);
        Ok(text)
    }

    /// Whether the head has a symbol.
    fn is_held(&mut self, table: &Symbols, symbol_ref: u32) -> bool {
        let Some(symbol) = self.symbols.get_mut(symbol_ref as usize) else { return false };
        if symbol.known_as >= UNKNOWN {
            let hash = symbol.hash(table);
            symbol.known_as = table.find(symbol.text, hash).map_or(UNKNOWN, Place::number);
        }
        symbol.known_as < UNKNOWN
    }

    /// Whether a reference means a symbol of the head.
    #[inline(always)]
    pub(in crate::head) fn is(&mut self, table: &Symbols, symbol_ref: u32, id: SymbolId) -> bool {
        let Some(symbol) = self.symbols.get_mut(symbol_ref as usize) else { return false };
        symbol.known_as == id.number() || symbol.known_as >= UNKNOWN && symbol.is_found(table, id)
    }
}

impl SeriesTable {
    /// The series with these labels, if they are stored in this very order.
    #[inline]
    pub fn find_by_pairs(&self, pairs: &[(&[u8], &[u8])]) -> Option<Slot> {
        let hash = pairs.iter().fold(self.symbols.seed(), |hash, (name, value)| {
            let hash = hash_word(hash, self.symbols.hash(name));
            hash_word(hash, self.symbols.hash(value))
        });
        self.find(hash, |slot| {
            let Some(series) = self.series.get(slot) else { return false };
            let is = |id, text| bytes_equal(self.symbols.text(id).as_bytes(), text);
            let mut both = series.labels.iter().zip(pairs);
            series.labels.len() == pairs.len()
                && both.all(|(stored, given)| is(stored.0, given.0) && is(stored.1, given.1))
        })
    }

    /// The series whose labels are these references, name and value in turn, if they are stored in
    /// this very order.
    #[inline]
    pub fn find_by_refs(
        &self,
        request: &mut RequestSymbols<'_>,
        refs: &[u32],
    ) -> Result<Option<Slot>, LookupError> {
        let mut hash = self.symbols.seed();
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
        Ok(self.find(hash, |slot| {
            let Some(series) = self.series.get(slot) else { return false };
            let mut is = |id, symbol_ref: &u32| request.is(&self.symbols, *symbol_ref, id);
            let mut both = series.labels.iter().zip(pairs);
            series.labels.len() == pairs.len()
                && both.all(|(stored, [name, value])| is(stored.0, name) && is(stored.1, value))
        }))
    }

    /// The series with these labels, which are sorted and valid; otherwise their hash, under which
    /// [`SeriesTable::insert`] adds it.
    #[inline]
    pub fn find_sorted(&self, pairs: &[(&str, &str)]) -> Result<Slot, u64> {
        let mut hash = self.symbols.seed();
        for (name, value) in pairs {
            hash = hash_word(hash, self.symbols.hash(name.as_bytes()));
            hash = hash_word(hash, self.symbols.hash(value.as_bytes()));
        }
        let symbols = &self.symbols;
        let found = self.find(hash, |slot| {
            let Some(series) = self.series.get(slot) else { return false };
            let stored = series.labels.iter().map(|(n, v)| (symbols.text(n), symbols.text(v)));
            stored.eq(pairs.iter().copied())
        });
        found.ok_or(hash)
    }

    #[inline]
    fn find(&self, hash: u64, mut is_it: impl FnMut(Slot) -> bool) -> Option<Slot> {
        self.by_key.find(SeriesKey::of(hash).table_hash(), |slot| is_it(*slot)).copied()
    }
}

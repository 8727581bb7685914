//! Finds a series of the table by the labels of a request.
//!
//! Labels arrive as strings (remote write 1.0) or as references into a table of symbols (2.0). The
//! hash of a series is computed from the hashes of its names and values, so that both forms lead to
//! the same entry, and 2.0 hashes each symbol at most once a request. A hit is verified label by
//! label against the stored set, which is sorted and valid; only a miss needs sorting and checks.

use super::SeriesTable;
use crate::codec::{bytes_equal, hash_word};
use crate::head::series::{SeriesKey, Slot};
use crate::head::slab::SlabIndex;
use crate::head::symbols::{SymbolId, Symbols};
use crate::model::{LabelError, LabelLimits};

/// Symbols of a remote write 2.0 request, with their numbers in the head as far as known.
#[derive(Default)]
pub struct RequestSymbols<'r> {
    symbols: Vec<RequestSymbol<'r>>,
    /// Texts of symbols that are known to be valid UTF-8; empty until a text is needed.
    checked: Vec<Option<&'r str>>,
}

/// Label names and values as a request gives them.
pub type Pairs<'r> = Vec<(&'r [u8], &'r [u8])>;

/// Label names and values that are UTF-8.
pub type TextPairs<'r> = Vec<(&'r str, &'r str)>;

struct RequestSymbol<'r> {
    text: &'r [u8],
    /// Hash of the text, unless `known_as` is [`UNHASHED`].
    hash: u64,
    /// Number of the symbol in the head, or one of the two constants below.
    known_as: u32,
}

/// Neither hash nor number are known.
const UNHASHED: u32 = u32::MAX;
/// The head did not have the symbol when it was last looked up.
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

    /// Looks the symbol up in the head; returns whether its number is `id`.
    #[inline(never)]
    fn is_found(&mut self, table: &Symbols, id: SymbolId) -> bool {
        let hash = self.hash(table);
        self.known_as = table.find(self.text, hash).map_or(UNKNOWN, SlabIndex::number);
        self.known_as == id.number()
    }
}

/// Reason why labels lead to no series.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The labels are not a valid label set.
    #[error(transparent)]
    Labels(#[from] LabelError),
    /// A reference points outside the table of symbols.
    #[error("symbol reference {symbol_ref} is outside the request's table of {symbols} symbols")]
    SymbolRef {
        /// The reference that the series contains.
        symbol_ref: u32,
        /// Number of symbols in the table.
        symbols: usize,
    },
    /// The references are not pairs of name and value.
    #[error("the list of label references has the odd length {count}")]
    OddRefs {
        /// Number of references of the series.
        count: usize,
    },
    /// The references mean more label text than one request may use.
    #[error(
        "the labels have {bytes} bytes, and those of this request's new or unsorted series may have \
         {max} together, beyond the usual length; send fewer of them in a request"
    )]
    LabelBytes {
        /// Bytes of the refused labels.
        bytes: usize,
        /// Limit of a request in bytes.
        max: usize,
    },
    /// The head holds as many series as it may.
    #[error("the series is new, and the head has reached the limit of {max} series")]
    SeriesLimit {
        /// Largest number of series allowed.
        max: u64,
    },
    /// Memory is too short for a new series.
    #[error(
        "the series is new, and memory is short: the head has nearly used its limit of {max} bytes"
    )]
    MemoryLimit {
        /// Memory limit of the head in bytes.
        max: u64,
    },
}

impl<'r> RequestSymbols<'r> {
    /// Wraps the symbols of a request. A symbol is hashed when its hash is first needed.
    pub fn new(strings: &[&'r [u8]]) -> RequestSymbols<'r> {
        let symbol = |text: &&'r [u8]| RequestSymbol { text, hash: 0, known_as: UNHASHED };
        RequestSymbols { symbols: strings.iter().map(symbol).collect(), checked: Vec::new() }
    }

    /// Returns the bytes of a symbol; `None` if it is not in the table.
    pub fn text(&self, symbol_ref: u32) -> Option<&'r [u8]> {
        self.symbols.get(symbol_ref as usize).map(|symbol| symbol.text)
    }

    /// Returns the names and values that alternating references mean.
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

    /// Returns the total bytes of the texts that references mean.
    pub fn text_bytes(&self, refs: &[u32]) -> usize {
        let bytes = |symbol_ref: &u32| self.text(*symbol_ref).map_or(0, <[u8]>::len);
        refs.iter().map(bytes).fold(0, usize::saturating_add)
    }

    /// Refuses labels of a new series that are too long, by their lengths alone. A label whose
    /// texts the head has as symbols is accepted, as it may belong to a stored series.
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
            // A label with an empty value is the same as no label.
            if value.is_empty() || !limits.exceeded_by(name, value) {
                continue;
            }
            // A stored series has only texts that the head has.
            if !self.is_held(table, *name_ref) || !self.is_held(table, *value_ref) {
                limits.check(&[(self.checked(*name_ref)?, self.checked(*value_ref)?)])?;
            }
        }
        Ok(())
    }

    /// Returns the texts of references that [`SeriesTable::find_by_refs`] has accepted.
    pub(in crate::head) fn known_texts(
        &mut self,
        refs: &[u32],
    ) -> Result<TextPairs<'r>, LabelError> {
        let (pairs, _) = refs.as_chunks::<2>();
        let pairs = pairs.iter();
        pairs.map(|[name, value]| Ok((self.checked(*name)?, self.checked(*value)?))).collect()
    }

    /// Returns the text of a symbol, which is validated once.
    fn checked(&mut self, symbol_ref: u32) -> Result<&'r str, LabelError> {
        if self.checked.is_empty() {
            // Most requests have no new or unsorted series and never need this list.
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

    fn is_held(&mut self, table: &Symbols, symbol_ref: u32) -> bool {
        let Some(symbol) = self.symbols.get_mut(symbol_ref as usize) else { return false };
        // Looked up again if unknown: an earlier series of the request may have added the symbol.
        if symbol.known_as >= UNKNOWN {
            let hash = symbol.hash(table);
            symbol.known_as = table.find(symbol.text, hash).map_or(UNKNOWN, SlabIndex::number);
        }
        symbol.known_as < UNKNOWN
    }

    /// Returns whether a reference means a symbol of the head.
    #[inline(always)]
    pub(in crate::head) fn is(&mut self, table: &Symbols, symbol_ref: u32, id: SymbolId) -> bool {
        let Some(symbol) = self.symbols.get_mut(symbol_ref as usize) else { return false };
        symbol.known_as == id.number() || symbol.known_as >= UNKNOWN && symbol.is_found(table, id)
    }
}

impl SeriesTable {
    /// Returns the series with these labels, if they are stored in this order.
    #[inline]
    pub fn find_by_pairs(&self, pairs: &[(&[u8], &[u8])]) -> Option<Slot> {
        // Hashes as `find_by_refs` and `find_sorted` do, so that all find the same entry.
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

    /// Returns the series whose labels are these references, in this order.
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
            // Symbols are compared by number, so most texts are never read.
            let mut is = |id, symbol_ref: &u32| request.is(&self.symbols, *symbol_ref, id);
            let mut both = series.labels.iter().zip(pairs);
            series.labels.len() == pairs.len()
                && both.all(|(stored, [name, value])| is(stored.0, name) && is(stored.1, value))
        }))
    }

    /// Returns the series with these sorted and valid labels; otherwise the hash of the labels,
    /// with which [`SeriesTable::insert`] adds the series.
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

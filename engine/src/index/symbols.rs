//! The strings of a new index: collected in a first pass, numbered in a second.
//!
//! Strings live in one buffer each, not one allocation each; an index may have millions.

use super::IndexError;
use crate::codec::{bytes_equal, hash_bytes};
use crate::model::Labels;
use hashbrown::HashTable;

/// Gathers the label names and values of the series that a block will hold.
pub struct SymbolCollector {
    seed: u64,
    text: String,
    spans: HashTable<Span>,
}

/// Place of a string in the collector's text.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    len: usize,
}

/// Strings in ascending order, each once; a string's place is its number.
pub struct SymbolList {
    seed: u64,
    text: String,
    ends: Vec<usize>,
    by_hash: HashTable<u32>,
}

impl SymbolCollector {
    /// Holds only the empty string, which upstream's indexes hold too. The seed keeps senders of
    /// labels from crafting collisions.
    pub fn new(seed: u64) -> SymbolCollector {
        let mut collector = SymbolCollector { seed, text: String::new(), spans: HashTable::new() };
        collector.add_text("");
        collector
    }

    /// Adds a series' label names and values.
    pub fn add(&mut self, labels: &Labels) {
        for (name, value) in labels.iter() {
            self.add_text(name);
            self.add_text(value);
        }
    }

    /// Adds one label name or value.
    pub fn add_text(&mut self, added: &str) {
        let SymbolCollector { seed, text, spans } = self;
        let hash = hash_bytes(*seed, added.as_bytes());
        let is_it = |span: &Span| bytes_equal(span.of(text).as_bytes(), added.as_bytes());
        if spans.find(hash, is_it).is_some() {
            return;
        }
        let span = Span { start: text.len(), len: added.len() };
        text.push_str(added);
        spans.insert_unique(hash, span, |span| hash_bytes(*seed, span.of(text).as_bytes()));
    }

    /// What the strings take, at most, until they are sorted.
    pub fn memory_bytes(&self) -> u64 {
        // Buffers that grow hold up to three times their content, and sorting copies once more.
        let table = self.spans.len() * (size_of::<Span>() + 1);
        4 * (self.text.len() + table) as u64
    }

    /// The strings in order.
    pub fn into_sorted(self) -> SymbolList {
        let SymbolCollector { seed, text, spans } = self;
        let mut spans: Vec<Span> = spans.into_iter().collect();
        spans.sort_unstable_by(|a, b| a.of(&text).cmp(b.of(&text)));
        let mut list = SymbolList::empty(seed);
        list.text.reserve_exact(text.len());
        list.ends.reserve_exact(spans.len());
        for span in spans {
            list.text.push_str(span.of(&text));
            list.ends.push(list.text.len());
        }
        list.number();
        list
    }
}

impl Default for SymbolCollector {
    /// Hashes with a seed that everybody knows: for labels that nobody hostile chose.
    fn default() -> SymbolCollector {
        SymbolCollector::new(0)
    }
}

impl From<SymbolCollector> for SymbolList {
    fn from(collector: SymbolCollector) -> SymbolList {
        collector.into_sorted()
    }
}

impl Span {
    fn of(self, text: &str) -> &str {
        text.get(self.start..self.start + self.len).unwrap_or_default()
    }
}

impl SymbolList {
    /// Takes strings that already ascend strictly.
    pub fn from_sorted<'a>(
        seed: u64,
        symbols: impl IntoIterator<Item = &'a str>,
    ) -> Result<SymbolList, IndexError> {
        let mut list = SymbolList::empty(seed);
        for symbol in symbols {
            if list.len().checked_sub(1).is_some_and(|last| list.text(last) >= symbol) {
                return Err(IndexError::UnsortedSymbols { symbol: symbol.to_owned() });
            }
            list.text.push_str(symbol);
            list.ends.push(list.text.len());
        }
        list.number();
        Ok(list)
    }

    fn empty(seed: u64) -> SymbolList {
        SymbolList { seed, text: String::new(), ends: Vec::new(), by_hash: HashTable::new() }
    }

    fn number(&mut self) {
        let mut by_hash = HashTable::with_capacity(self.ends.len());
        let hash = |number: &u32| hash_bytes(self.seed, self.text(*number as usize).as_bytes());
        for number in 0..self.ends.len() as u32 {
            by_hash.insert_unique(hash(&number), number, hash);
        }
        self.by_hash = by_hash;
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// What the strings take.
    pub fn memory_bytes(&self) -> u64 {
        let numbers = self.ends.len() * size_of::<usize>() + self.by_hash.capacity() * 6;
        (self.text.capacity() + numbers) as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string with this number; empty if there is none.
    pub fn text(&self, number: usize) -> &str {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(number).copied().unwrap_or_default();
        self.text.get(start.unwrap_or_default()..end).unwrap_or_default()
    }

    /// The strings, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|number| self.text(number))
    }

    /// The number of a string.
    #[inline]
    pub fn number_of(&self, text: &str) -> Option<u32> {
        let hash = hash_bytes(self.seed, text.as_bytes());
        let is_it =
            |number: &u32| bytes_equal(self.text(*number as usize).as_bytes(), text.as_bytes());
        self.by_hash.find(hash, is_it).copied()
    }
}

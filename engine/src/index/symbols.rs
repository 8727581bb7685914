//! The strings of a new index: collected in a first pass, numbered in a second.
//!
//! Strings are in pages, since an index may have millions. Pages never move, and sorting moves only
//! the positions of strings, so that the text is in memory once.

use super::IndexError;
use crate::codec::{bytes_equal, hash_bytes};
use crate::model::Labels;
use hashbrown::HashTable;
use tidepool_model::sort;

/// Bytes of a page; small in tests, so that they fill several.
const PAGE_BYTES: usize = if cfg!(test) { 256 } else { 64 * 1024 };

/// Gathers the label names and values of the series that a block will hold.
pub struct SymbolCollector {
    seed: u64,
    text: Pages,
    spans: HashTable<Span>,
}

/// Strings that do not cross pages. A string longer than a page has a long page of its own.
#[derive(Default)]
struct Pages {
    pages: Vec<String>,
    bytes: usize,
}

/// Position of a string: its start, counted as if every page were [`PAGE_BYTES`] long.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    len: u32,
}

/// Strings in ascending order, each once; a string's position is its number.
pub struct SymbolList {
    seed: u64,
    text: Pages,
    spans: Vec<Span>,
    by_hash: HashTable<u32>,
}

impl Pages {
    fn push(&mut self, added: &str) -> Span {
        let has_room = |page: &String| page.len() + added.len() <= PAGE_BYTES;
        if !self.pages.last().is_some_and(has_room) {
            let bytes = added.len().max(PAGE_BYTES);
            self.pages.push(String::with_capacity(bytes));
            self.bytes += bytes;
        }
        let number = self.pages.len().saturating_sub(1);
        let mut span = Span { start: number * PAGE_BYTES, len: added.len() as u32 };
        if let Some(page) = self.pages.last_mut() {
            span.start += page.len();
            page.push_str(added);
        }
        span
    }

    fn text(&self, Span { start, len }: Span) -> &str {
        let page = self.pages.get(start / PAGE_BYTES).map_or("", String::as_str);
        // A long page has one string, which begins at 0.
        let start = start % PAGE_BYTES;
        page.get(start..start + len as usize).unwrap_or_default()
    }
}

impl SymbolCollector {
    /// Makes a collector with the empty string, which Prometheus' indexes have, too. The seed keeps
    /// senders of labels from crafting hash collisions.
    pub fn new(seed: u64) -> SymbolCollector {
        let (text, spans) = (Pages::default(), HashTable::new());
        let mut collector = SymbolCollector { seed, text, spans };
        collector.add_text("");
        collector
    }

    /// Adds the label names and values of a series.
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
        let is_it = |span: &Span| bytes_equal(text.text(*span).as_bytes(), added.as_bytes());
        if spans.find(hash, is_it).is_some() {
            return;
        }
        let span = text.push(added);
        spans.insert_unique(hash, span, |span| hash_bytes(*seed, text.text(*span).as_bytes()));
    }

    /// Maximum memory of the strings until they are sorted and numbered.
    pub fn memory_bytes(&self) -> u64 {
        // A table that grows exists twice, the new one with twice the capacity; that is more than
        // sorting and numbering need in addition to one table.
        let table = 4 * self.spans.len() * (size_of::<Span>() + 1);
        (self.text.bytes + table) as u64
    }

    /// Sorts the strings and numbers them.
    pub fn into_sorted(self) -> SymbolList {
        let SymbolCollector { seed, text, spans } = self;
        let mut spans: Vec<Span> = spans.into_iter().collect();
        sort::sort_by(&mut spans, |a, b| text.text(*a).cmp(text.text(*b)));
        let mut list = SymbolList { seed, text, spans, by_hash: HashTable::new() };
        list.number();
        list
    }
}

impl Default for SymbolCollector {
    /// Hashes with a fixed seed: for labels that come from trusted sources.
    fn default() -> SymbolCollector {
        SymbolCollector::new(0)
    }
}

impl From<SymbolCollector> for SymbolList {
    fn from(collector: SymbolCollector) -> SymbolList {
        collector.into_sorted()
    }
}

impl SymbolList {
    /// Makes a list of strings that must ascend strictly.
    pub fn from_sorted<'a>(
        seed: u64,
        symbols: impl IntoIterator<Item = &'a str>,
    ) -> Result<SymbolList, IndexError> {
        let (text, spans, by_hash) = (Pages::default(), Vec::new(), HashTable::new());
        let mut list = SymbolList { seed, text, spans, by_hash };
        for symbol in symbols {
            if list.len().checked_sub(1).is_some_and(|last| list.text(last) >= symbol) {
                return Err(IndexError::UnsortedSymbols { symbol: symbol.to_owned() });
            }
            let span = list.text.push(symbol);
            list.spans.push(span);
        }
        list.number();
        Ok(list)
    }

    fn number(&mut self) {
        let mut by_hash = HashTable::with_capacity(self.spans.len());
        let hash = |number: &u32| hash_bytes(self.seed, self.text(*number as usize).as_bytes());
        for number in 0..self.spans.len() as u32 {
            by_hash.insert_unique(hash(&number), number, hash);
        }
        self.by_hash = by_hash;
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Memory of strings and tables in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let spans = self.spans.capacity() * size_of::<Span>();
        (self.text.bytes + spans + self.by_hash.allocation_size()) as u64
    }

    /// Returns whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the string with this number; empty if there is none.
    pub fn text(&self, number: usize) -> &str {
        self.spans.get(number).map_or("", |span| self.text.text(*span))
    }

    /// Iterates over the strings, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|number| self.text(number))
    }

    /// Returns the number of a string, if it is listed.
    #[inline]
    pub fn number_of(&self, text: &str) -> Option<u32> {
        let hash = hash_bytes(self.seed, text.as_bytes());
        let is_it =
            |number: &u32| bytes_equal(self.text(*number as usize).as_bytes(), text.as_bytes());
        self.by_hash.find(hash, is_it).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Strings of any length, also beyond a page, come once, in order, and are found by number.
        #[test]
        fn strings_come_back_sorted(
            strings in prop::collection::vec(("[ab]{0,3}", 0usize..3 * PAGE_BYTES), 0..60),
        ) {
            let strings: Vec<String> =
                strings.into_iter().map(|(start, more)| start + &"x".repeat(more)).collect();
            let mut collector = SymbolCollector::new(3);
            strings.iter().for_each(|text| collector.add_text(text));
            let bound = collector.memory_bytes();
            let list = collector.into_sorted();
            prop_assert!(list.memory_bytes() <= bound + 128, "an empty table takes something");
            let expected: BTreeSet<&str> =
                strings.iter().map(String::as_str).chain([""]).collect();
            prop_assert!(list.iter().eq(expected.iter().copied()));
            for (number, text) in (0..).zip(&expected) {
                prop_assert_eq!(list.number_of(text), Some(number));
            }
            prop_assert_eq!(list.number_of("y"), None);
            let again = SymbolList::from_sorted(4, expected.iter().copied());
            prop_assert!(again.is_ok_and(|again| again.iter().eq(expected.iter().copied())));
        }
    }
}

//! The head's label names and values, each stored once.
//!
//! A symbol exists while a series uses it; after that its number is reused.

use super::slab::{Slab, SlabIndex, shrink_above};
use crate::codec::{bytes_equal, hash_bytes};
use hashbrown::HashTable;

/// Number of a string in the head's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub(super) u32);

impl SlabIndex for SymbolId {
    fn of(number: u32) -> SymbolId {
        SymbolId(number)
    }

    fn number(self) -> u32 {
        self.0
    }
}

struct Symbol {
    text: Box<str>,
    hash: u64,
    uses: u32,
}

pub struct Symbols {
    seed: u64,
    symbols: Slab<SymbolId, Symbol>,
    by_hash: HashTable<SymbolId>,
}

impl Symbols {
    /// An empty table whose hashes are mixed with `seed`.
    pub fn new(seed: u64) -> Symbols {
        Symbols { seed, symbols: Slab::default(), by_hash: HashTable::new() }
    }

    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the hash of a string. The hash of a series is computed from such hashes.
    #[inline]
    pub fn hash(&self, text: &[u8]) -> u64 {
        hash_bytes(self.seed, text)
    }

    /// Returns the number of a string, if some series uses it.
    pub fn find(&self, text: &[u8], hash: u64) -> Option<SymbolId> {
        let is_it = |id: &SymbolId| bytes_equal(self.text(*id).as_bytes(), text);
        self.by_hash.find(hash, is_it).copied()
    }

    #[inline]
    pub fn text(&self, id: SymbolId) -> &str {
        self.symbols.get(id).map_or("", |symbol| &symbol.text)
    }

    /// Counts one more use of a string, which is stored if it is new.
    pub fn acquire(&mut self, text: &str) -> SymbolId {
        let hash = self.hash(text.as_bytes());
        if let Some(id) = self.find(text.as_bytes(), hash) {
            if let Some(symbol) = self.symbols.get_mut(id) {
                symbol.uses += 1;
            }
            return id;
        }
        let id = self.symbols.insert(Symbol { text: text.into(), hash, uses: 1 });
        // A table that grows uses the stored hashes, so that no text is read again.
        let symbols = &self.symbols;
        let hash_of = |id: &SymbolId| symbols.get(*id).map_or(0, |symbol| symbol.hash);
        self.by_hash.insert_unique(hash, id, hash_of);
        id
    }

    /// Stores a string that nothing uses yet under the next number; `None` if it is stored already.
    pub fn add_unused(&mut self, text: &str) -> Option<SymbolId> {
        let hash = self.hash(text.as_bytes());
        if self.find(text.as_bytes(), hash).is_some() {
            return None;
        }
        let id = self.symbols.insert(Symbol { text: text.into(), hash, uses: 0 });
        let symbols = &self.symbols;
        let hash_of = |id: &SymbolId| symbols.get(*id).map_or(0, |symbol| symbol.hash);
        self.by_hash.insert_unique(hash, id, hash_of);
        Some(id)
    }

    pub fn use_more(&mut self, id: SymbolId, uses: u32) {
        if let Some(symbol) = self.symbols.get_mut(id) {
            symbol.uses += uses;
        }
    }

    pub fn holds(&self, id: SymbolId) -> bool {
        self.symbols.get(id).is_some()
    }

    pub fn are_all_used(&self) -> bool {
        let mut symbols = self.symbols.iter().filter_map(|id| self.symbols.get(id));
        symbols.all(|symbol| symbol.uses > 0)
    }

    pub fn hash_of(&self, id: SymbolId) -> u64 {
        self.symbols.get(id).map_or(0, |symbol| symbol.hash)
    }

    /// Counts one use less of a string, and drops the string after its last use.
    pub fn release(&mut self, id: SymbolId) {
        let Some(symbol) = self.symbols.get_mut(id) else { return };
        symbol.uses -= 1;
        if symbol.uses > 0 {
            return;
        }
        let hash = symbol.hash;
        self.symbols.remove(id);
        // The text is already removed, so the entry is found by its number.
        if let Ok(entry) = self.by_hash.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
    }

    /// Frees memory of the hash table after many strings were dropped.
    pub fn shrink(&mut self) {
        let symbols = &self.symbols;
        let hash_of = |id: &SymbolId| symbols.get(*id).map_or(0, |symbol| symbol.hash);
        if self.by_hash.capacity() > shrink_above(self.by_hash.len()) {
            self.by_hash.shrink_to(2 * self.by_hash.len(), hash_of);
        }
    }

    /// Upper bound of symbol numbers, exclusive.
    pub fn end(&self) -> u32 {
        self.symbols.end()
    }

    pub fn len(&self) -> usize {
        self.symbols.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_lives_as_long_as_it_is_used() {
        let mut symbols = Symbols::new(3);
        let first = symbols.acquire("job");
        assert_eq!(symbols.acquire("job"), first);
        assert_eq!(symbols.text(first), "job");
        symbols.release(first);
        assert_eq!(symbols.find(b"job", symbols.hash(b"job")), Some(first));
        symbols.release(first);
        assert_eq!((symbols.find(b"job", symbols.hash(b"job")), symbols.len()), (None, 0));
        assert_eq!(symbols.acquire("instance"), first, "numbers are used again");
    }
}

//! The head's label names and values, each stored once.
//!
//! A symbol lives as long as a series uses it; its number is then given to another one.

use crate::codec::{bytes_equal, hash_bytes};
use hashbrown::HashTable;

/// Number of a string in the head's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub(super) u32);

struct Symbol {
    text: Box<str>,
    hash: u64,
    uses: u32,
}

/// The table of symbols.
pub struct Symbols {
    seed: u64,
    symbols: Vec<Symbol>,
    by_hash: HashTable<SymbolId>,
    free: Vec<SymbolId>,
}

impl Symbols {
    /// An empty table whose hashes are mixed with `seed`.
    pub fn new(seed: u64) -> Symbols {
        Symbols { seed, symbols: Vec::new(), by_hash: HashTable::new(), free: Vec::new() }
    }

    /// Hash of a string, of which series hashes are made.
    #[inline]
    pub fn hash(&self, text: &[u8]) -> u64 {
        hash_bytes(self.seed, text)
    }

    /// The number of a string, if some series uses it.
    pub fn find(&self, text: &[u8], hash: u64) -> Option<SymbolId> {
        let is_it = |id: &SymbolId| bytes_equal(self.symbols[id.0 as usize].text.as_bytes(), text);
        self.by_hash.find(hash, is_it).copied()
    }

    /// The string behind a number.
    #[inline]
    pub fn text(&self, id: SymbolId) -> &str {
        &self.symbols[id.0 as usize].text
    }

    /// Counts one more use of a string, storing it if it is new.
    pub fn acquire(&mut self, text: &str) -> SymbolId {
        let hash = self.hash(text.as_bytes());
        if let Some(id) = self.find(text.as_bytes(), hash) {
            self.symbols[id.0 as usize].uses += 1;
            return id;
        }
        let symbol = Symbol { text: text.into(), hash, uses: 1 };
        let id = match self.free.pop() {
            Some(id) => {
                self.symbols[id.0 as usize] = symbol;
                id
            }
            None => {
                self.symbols.push(symbol);
                SymbolId(self.symbols.len() as u32 - 1)
            }
        };
        let symbols = &self.symbols;
        self.by_hash.insert_unique(hash, id, |id| symbols[id.0 as usize].hash);
        id
    }

    /// Counts one use less, forgetting the string after its last.
    pub fn release(&mut self, id: SymbolId) {
        let symbol = &mut self.symbols[id.0 as usize];
        symbol.uses -= 1;
        if symbol.uses > 0 {
            return;
        }
        symbol.text = "".into();
        if let Ok(entry) = self.by_hash.find_entry(symbol.hash, |other| *other == id) {
            entry.remove();
        }
        self.free.push(id);
    }

    /// How many strings are in use.
    pub fn len(&self) -> usize {
        self.symbols.len() - self.free.len()
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

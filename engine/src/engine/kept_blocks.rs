//! Blocks that stay open from one read to the next: to open an index costs more than a narrow read
//! takes from it.
//!
//! What a committed block holds does not change but for its tombstones. A host that may replace
//! these, or delete blocks, while it lets an instance rest must not use the instance again after
//! that; so nothing here has to be read again. What is no longer listed is closed by the next read.

use crate::block::{BlockMeta, BlockReader};
use crate::model::TimeRange;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Most memory of blocks that no read uses.
pub(super) const BYTES_MAX: usize = if cfg!(test) { 64 * 1024 } else { 1536 * 1024 };

/// Most of their files.
const FILES_MAX: usize = 64;

/// Most blocks of which it is known when they begin and end.
const KNOWN_MAX: usize = 1024;

/// Blocks that were opened, and what is known of others.
#[derive(Default)]
pub(super) struct KeptBlocks {
    known: BTreeMap<String, Known>,
    /// Counts reads.
    reads: u64,
}

/// A block.
struct Known {
    range: TimeRange,
    reader: Option<Rc<BlockReader>>,
    /// The read that used it last.
    read: u64,
}

/// What is kept of a block for a read of a range.
pub(super) enum Kept {
    /// It is open.
    Open(Rc<BlockReader>),
    /// It holds nothing of the range.
    Elsewhere,
    /// Nothing that helps.
    Nothing,
}

impl KeptBlocks {
    /// Begins a read: what is not listed is forgotten, and what takes too much room is closed, that
    /// which was not used for the longest time first.
    pub fn begin(&mut self, listed: &[String]) {
        self.reads += 1;
        // The list ascends.
        self.known.retain(|id, _| listed.binary_search(id).is_ok());
        let mut by_use: Vec<&mut Known> =
            self.known.values_mut().filter(|known| known.reader.is_some()).collect();
        by_use.sort_by_key(|known| std::cmp::Reverse(known.read));
        let (mut bytes, mut files) = (0, 0);
        for known in by_use {
            let Some(reader) = &known.reader else { continue };
            reader.rest();
            bytes += reader.memory_bytes();
            files += reader.file_count();
            if bytes > BYTES_MAX || files > FILES_MAX {
                known.reader = None;
            }
        }
    }

    /// What is kept of a block.
    pub fn get(&mut self, id: &str, range: TimeRange) -> Kept {
        let Some(known) = self.known.get_mut(id) else { return Kept::Nothing };
        if !range.overlaps(&known.range) {
            return Kept::Elsewhere;
        }
        known.read = self.reads;
        known.reader.clone().map_or(Kept::Nothing, Kept::Open)
    }

    /// All that are open.
    #[cfg(test)]
    pub fn readers(&self) -> impl Iterator<Item = &Rc<BlockReader>> {
        self.known.values().filter_map(|known| known.reader.as_ref())
    }

    /// Keeps what was found out about a block.
    pub fn put(&mut self, id: &str, meta: &BlockMeta, reader: Option<&Rc<BlockReader>>) {
        if self.known.len() < KNOWN_MAX || self.known.contains_key(id) {
            let (range, reader) = (meta.time_range(), reader.cloned());
            self.known.insert(id.to_owned(), Known { range, reader, read: self.reads });
        }
    }
}

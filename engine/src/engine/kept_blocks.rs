//! Blocks that stay open between reads, because opening an index costs more than a narrow read.
//!
//! The content of a committed block does not change, except for its tombstones. A host that may
//! replace tombstones or delete blocks between two reads must not use the same instance for both.
//! So an open block is never read again. The next read closes blocks that are no longer listed.

use crate::block::{BlockMeta, BlockReader};
use crate::model::TimeRange;
use std::collections::BTreeMap;
use std::rc::Rc;
use tidepool_model::sort;

/// Largest memory of open blocks that no read uses, in bytes.
pub(super) const BYTES_MAX: usize = if cfg!(test) { 64 * 1024 } else { 1536 * 1024 };

/// Largest number of open files of blocks that no read uses.
const FILES_MAX: usize = 64;

/// Largest number of blocks whose time ranges are kept.
const KNOWN_MAX: usize = 1024;

/// Open blocks, and the time ranges of known blocks that are closed.
#[derive(Default)]
pub(super) struct KeptBlocks {
    known: BTreeMap<String, Known>,
    reads: u64,
}

struct Known {
    range: TimeRange,
    reader: Option<Rc<BlockReader>>,
    /// Number of the last read that used the block.
    read: u64,
}

/// State of a block for a read of a range.
pub(super) enum CachedBlock {
    Open(Rc<BlockReader>),
    /// The block holds nothing of the range.
    Elsewhere,
    Nothing,
}

impl KeptBlocks {
    /// Begins a read: drops unlisted blocks, and closes the least recently used beyond the limits.
    pub fn begin(&mut self, listed: &[String]) {
        self.reads += 1;
        // Storage lists blocks in ascending order, as `binary_search` needs.
        self.known.retain(|id, _| listed.binary_search(id).is_ok());
        let mut by_use: Vec<&mut Known> =
            self.known.values_mut().filter(|known| known.reader.is_some()).collect();
        sort::sort_by_key(&mut by_use, |known| std::cmp::Reverse(known.read));
        let (mut bytes, mut files) = (0, 0);
        for known in by_use {
            let Some(reader) = &known.reader else { continue };
            // Frees read-ahead buffers, which would otherwise count towards the limit.
            reader.rest();
            bytes += reader.memory_bytes();
            files += reader.file_count();
            if bytes > BYTES_MAX || files > FILES_MAX {
                known.reader = None;
            }
        }
    }

    /// Returns the state of a block, and notes that the running read uses it.
    pub fn get(&mut self, id: &str, range: TimeRange) -> CachedBlock {
        let Some(known) = self.known.get_mut(id) else { return CachedBlock::Nothing };
        if !range.overlaps(&known.range) {
            return CachedBlock::Elsewhere;
        }
        known.read = self.reads;
        known.reader.clone().map_or(CachedBlock::Nothing, CachedBlock::Open)
    }

    #[cfg(test)]
    pub fn readers(&self) -> impl Iterator<Item = &Rc<BlockReader>> {
        self.known.values().filter_map(|known| known.reader.as_ref())
    }

    /// Keeps the range of a block, and its reader if it is open.
    pub fn put(&mut self, id: &str, meta: &BlockMeta, reader: Option<&Rc<BlockReader>>) {
        if self.known.len() < KNOWN_MAX || self.known.contains_key(id) {
            let (range, reader) = (meta.time_range(), reader.cloned());
            self.known.insert(id.to_owned(), Known { range, reader, read: self.reads });
        }
    }
}

//! Lookups of labels, and the blocks that reads need.

use super::kept_blocks::CachedBlock;
use super::{Engine, Owned, Role};
use crate::block::{BlockError, BlockReader, read_meta};
use crate::compact::BadBlock;
use crate::error::{Error, Result};
use crate::model::TimeRange;
use crate::select::{
    AllRead, BlockLabels, BlockNames, BlockValues, Cursor, Lookup, Merge, Mergeable, SeriesSource,
    StringCursor,
};
use crate::storage::StorageError;
use std::collections::BTreeMap;
use std::rc::Rc;
use tidepool_model::sort;

/// Number of times that the list of blocks is read if a listed block is deleted before it is
/// opened. Each try has fewer blocks left to open.
const LIST_TRIES: usize = 100;

/// A block, if it overlaps a range.
type Opened = std::result::Result<Option<Rc<BlockReader>>, BlockError>;

/// Blocks for a read of a range.
#[derive(Default)]
pub(super) struct BlocksIn {
    /// Blocks that overlap the range, newest samples first: the first block takes precedence.
    pub open: Vec<Rc<BlockReader>>,
    /// Damaged blocks that may hold samples of the range, with their errors.
    pub damaged: Vec<(String, BlockError)>,
}

impl Engine {
    /// Returns the label names of the series that a lookup selects, ascending.
    pub fn label_names(&self, lookup: &Lookup) -> Result<StringCursor> {
        self.check_replayed()?;
        let sets = lookup.sets()?;
        // The head is opened before blocks are listed; `sources` in `mod.rs` has the reason.
        let mut sources = vec![self.head.label_names(lookup)?];
        for block in self.blocks_in(lookup.range)?.open {
            sources.push(Box::new(BlockNames::select(&block, &sets)?));
        }
        StringCursor::new(sources, lookup.limit)
    }

    /// Returns the values of a label name in the series that a lookup selects, ascending.
    pub fn label_values(&self, name: &str, lookup: &Lookup) -> Result<StringCursor> {
        self.check_replayed()?;
        let sets = Rc::new(lookup.sets()?);
        let mut sources = vec![self.head.label_values(name, lookup)?];
        for block in self.blocks_in(lookup.range)?.open {
            sources.push(Box::new(BlockValues::select(block, name, Rc::clone(&sets))?));
        }
        StringCursor::new(sources, lookup.limit)
    }

    /// Returns the series that a lookup selects, in label order, without chunks.
    pub fn series(&self, lookup: &Lookup) -> Result<Cursor> {
        self.check_replayed()?;
        let sets = lookup.sets()?;
        let range = lookup.range;
        let mut sources = vec![self.head.series(lookup)?];
        for block in self.blocks_in(range)?.open {
            sources.push(Box::new(BlockLabels::select(block, &sets, range)?));
        }
        Ok(Cursor::of_labels(Box::new(AllRead(merged(sources)?)), range, lookup.limit))
    }

    /// Returns whether a cut was planned during replay, so that reads of the head for this cut are
    /// allowed. Only the role `Head` allows them: reads in the role `All` must see the whole head.
    pub(super) fn is_cut_while_replaying(&self) -> bool {
        let planned = |owned: &Owned| !owned.replayed && owned.head.borrow().has_plan();
        self.role == Role::Head && self.owned.as_ref().is_some_and(planned)
    }

    pub(super) fn check_replayed(&self) -> Result<()> {
        match &self.owned {
            Some(owned) if !owned.replayed => Err(Error::NotOpen),
            _ => Ok(()),
        }
    }

    /// Returns the blocks that overlap a range. A damaged block is left out, so that other blocks
    /// can still be read; [`Engine::take_damaged`] returns it.
    pub(super) fn blocks_in(&self, range: TimeRange) -> Result<BlocksIn> {
        let mut found = BlocksIn::default();
        if self.upkeep.is_none() || range.end_ms < range.start_ms {
            return Ok(found);
        }
        // A block may be merged between listing and opening; then the list is read again. Opened
        // blocks stay open, so that each try has less to do.
        let mut opened: BTreeMap<String, Opened> = BTreeMap::new();
        let mut tries_left = LIST_TRIES;
        'list: loop {
            tries_left -= 1;
            let listed = self.blocks.list()?;
            if opened.is_empty() {
                self.kept_blocks.borrow_mut().begin(&listed);
            }
            for id in &listed {
                if opened.contains_key(id) {
                    continue;
                }
                let block = match self.open_if_in(id, range) {
                    // A block that is missing but still listed is damaged, not merged.
                    Err(error) if is_not_found(&error) && !self.blocks.list()?.contains(id) => {
                        match tries_left {
                            0 => return Err(StorageError::NotFound { what: id.clone() }.into()),
                            _ => continue 'list,
                        }
                    }
                    Err(error) if error.is_unread() => return Err(error.into()),
                    block => block,
                };
                opened.insert(id.clone(), block);
            }
            let mut damaged = self.damaged_blocks.borrow_mut();
            // Damage of a block that was deleted need not be reported.
            damaged.retain(|id, _| listed.contains(id));
            for (id, block) in opened.into_iter().filter(|(id, _)| listed.contains(id)) {
                match block {
                    Ok(block) => found.open.extend(block),
                    Err(error) => {
                        damaged.entry(id.clone()).or_insert_with(|| BadBlock::of(&id, &error));
                        found.damaged.push((id, error));
                    }
                }
            }
            sort::sort_by(&mut found.open, |a, b| {
                b.meta().newest_source().cmp(a.meta().newest_source())
            });
            return Ok(found);
        }
    }

    /// Returns the damaged blocks that reads left out since the last call.
    pub fn take_damaged(&self) -> Vec<BadBlock> {
        std::mem::take(&mut *self.damaged_blocks.borrow_mut()).into_values().collect()
    }

    fn open_if_in(&self, id: &str, range: TimeRange) -> Opened {
        let mut kept = self.kept_blocks.borrow_mut();
        match kept.get(id, range) {
            CachedBlock::Open(block) => return Ok(Some(block)),
            CachedBlock::Elsewhere => return Ok(None),
            CachedBlock::Nothing => {}
        }
        // `meta.json` is cheaper to read than the index, and shows whether the index is needed.
        let meta = read_meta(&*self.blocks, id)?;
        let block = match range.overlaps(&meta.time_range()) {
            true => Some(Rc::new(BlockReader::reopen(&*self.blocks, id)?)),
            false => None,
        };
        // Other roles may replace tombstones between two reads, so they keep no block open.
        if self.role == Role::Query {
            kept.put(id, &meta, block.as_ref());
        }
        Ok(block)
    }
}

/// Merges sources; a single source is returned as it is.
pub(super) fn merged<C: Mergeable + 'static>(
    mut sources: Vec<Box<dyn SeriesSource<C>>>,
) -> Result<Box<dyn SeriesSource<C>>> {
    match sources.len() {
        1 => Ok(sources.remove(0)),
        _ => Ok(Box::new(Merge::new(sources)?)),
    }
}

fn is_not_found(error: &BlockError) -> bool {
    matches!(error.storage(), Some(StorageError::NotFound { .. }))
}

//! Reads of the head: series, label names and values, cardinality, metadata.
//!
//! The work is done by `cursor`, `labels`, `cardinality` and `metadata`; this file passes the parts
//! of the head to them.

use super::cardinality::WalkedIndex;
use super::metadata::Families;
use super::postings::HeadIndex;
use super::{
    CardinalityList, CardinalityWalk, Head, HeadCursor, HeadSeries, HeadStrings, Labels, Metadata,
    NotNow, Slice, Slot, WorkLeft,
};
use crate::chunk::ChunkError;
use crate::index::select_any;
use crate::model::{MatcherSets, TimeRange, Value};
use std::rc::Rc;

impl Head {
    /// Selects the series that any of the sets of matchers selects, and adds external labels. The
    /// returned cursor skips series without samples in the range.
    pub fn select(
        &mut self,
        sets: &MatcherSets,
        range: TimeRange,
        external: &Labels,
        work: &WorkLeft,
    ) -> Result<HeadCursor, NotNow> {
        // The index needs ascending lists, and new series may have broken their order.
        self.postings.sort(work)?;
        let mut slots = Vec::new();
        if self.window.touches(range) {
            let index = self.index(work);
            if sets.select_all() {
                slots = index.by_labels()?.to_vec();
            } else {
                slots = select_any(&index, sets.sets())?;
                index.sort_by_labels(&mut slots)?;
            }
        }
        // Samples that arrive after the cursor is opened are not part of the answer.
        let newest_ms = self.window.newest_ms();
        let range = TimeRange { end_ms: range.end_ms.min(newest_ms), ..range };
        let Head { table, observers, .. } = self;
        Ok(HeadCursor::open(slots, range, external, newest_ms, table, observers))
    }

    /// Returns the index, for one read that may do the given work.
    fn index<'h>(&'h self, work: &'h WorkLeft) -> HeadIndex<'h> {
        let Head { postings, table, .. } = self;
        HeadIndex { postings, symbols: table.symbols(), series: table.places(), work }
    }

    /// Number of open cursors; while there are any, nothing may be truncated.
    pub fn open_cursors(&self) -> u64 {
        self.observers.open_cursors()
    }

    /// Returns whether open cursors take more memory than they may.
    pub fn has_too_many_cursors(&self) -> bool {
        self.observers.take_too_much(self.memory_bytes_max())
    }

    /// Returns the next series with chunks that overlap the range.
    pub fn next(&self, cursor: &mut HeadCursor) -> Result<Slice<HeadSeries>, (Labels, ChunkError)> {
        cursor.next(&self.table)
    }

    /// Returns the labels of the next series, without external labels. If `only_in_range`, series
    /// without chunks that overlap the range are skipped.
    pub fn next_labels(&self, cursor: &mut HeadCursor, only_in_range: bool) -> Slice<Labels> {
        cursor.next_labels(&self.table, only_in_range)
    }

    /// Returns the label names of the selected series, if the head has samples in the range.
    pub fn label_names(
        &mut self,
        sets: &MatcherSets,
        range: TimeRange,
        work: &WorkLeft,
    ) -> Result<HeadStrings, NotNow> {
        self.postings.sort(work)?;
        // The index has no times, so it answers for all samples of the head or for none.
        let names = match self.window.touches(range) {
            true => Rc::new(self.index(work).names_where(sets)?),
            false => Rc::default(),
        };
        Ok(HeadStrings::new(names, &self.observers))
    }

    /// Returns the values of a label name in the selected series, if the head has samples in the
    /// range.
    pub fn label_values(
        &mut self,
        name: &str,
        sets: &MatcherSets,
        range: TimeRange,
        work: &WorkLeft,
    ) -> Result<HeadStrings, NotNow> {
        self.postings.sort(work)?;
        let values = match self.window.touches(range) {
            true => self.index(work).values_where(name, sets)?,
            false => Rc::default(),
        };
        Ok(HeadStrings::new(values, &self.observers))
    }

    /// Returns the next name or value; `None` at the end.
    pub fn next_string(&self, strings: &mut HeadStrings) -> Option<&str> {
        strings.next(self.table.symbols())
    }

    /// Returns the out-of-order samples of a series, by time.
    pub fn out_of_order_values(
        &self,
        slot: Slot,
    ) -> Result<impl Iterator<Item = (i64, Value)>, ChunkError> {
        Ok(self.table.at(slot).out_of_order_values()?.into_iter())
    }

    /// Begins a walk whose lists have at most `items_max` items.
    pub fn cardinality(&self, items_max: usize) -> CardinalityWalk {
        self.walked().begin(items_max)
    }

    /// Does the next slice of a walk; returns the number of distinct labels once it is done.
    pub fn walk_cardinality(&self, walk: &mut CardinalityWalk) -> Option<u64> {
        self.walked().walk(walk)
    }

    /// Returns the next items of a list of a finished walk, about `bytes_max` bytes; `None` if
    /// series were dropped since the walk began.
    pub fn next_of_cardinality(
        &self,
        walk: &mut CardinalityWalk,
        list: CardinalityList,
        bytes_max: usize,
    ) -> Option<Vec<(String, u64)>> {
        self.walked().next_items(walk, list, bytes_max)
    }

    fn walked(&self) -> WalkedIndex<'_> {
        WalkedIndex {
            postings: &self.postings,
            symbols: self.table.symbols(),
            series_removed: self.counters.series_removed,
        }
    }

    /// Returns the metadata that is not logged yet, each with a series of its family.
    pub fn unlogged_metadata(&self) -> Vec<(Slot, &str, &Metadata)> {
        self.metadata.unlogged(self.families())
    }

    /// Notes that the result of [`Head::unlogged_metadata`] is logged, except for families without
    /// a series; these are returned again after a sender has repeated their metadata.
    pub fn metadata_is_logged(&mut self) {
        let Head { metadata, postings, table, .. } = self;
        metadata.note_logged(Families { postings, symbols: table.symbols() });
    }

    /// Returns the metadata of all families that have a series, for a checkpoint of the log.
    /// Metadata of other families is lost from the log.
    pub fn metadata_of_living(&self) -> Vec<(Slot, &str, &Metadata)> {
        self.metadata.checkpoint(self.families())
    }

    fn families(&self) -> Families<'_> {
        Families { postings: &self.postings, symbols: self.table.symbols() }
    }
}

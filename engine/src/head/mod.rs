//! Recent samples in memory, and the rules by which new ones are accepted.
//!
//! [`Head`] consists of parts that own their state and reach each other only through arguments. The
//! head does not know the log or blocks: the engine writes the log between [`Head::check`] and
//! [`Head::apply`].
//!
//! | part | owns | files |
//! | --- | --- | --- |
//! | series table | series by place, by labels and by number; symbols | `series_table` with `lookup`, `series`, `symbols`, `label_names`, `slab`; how many there may be: `limits` |
//! | postings | which series carry which label, and their order | `postings`, `sorted` |
//! | window | the times that are held and accepted | `window`; the out-of-order rule is `window/out_of_order_rule` |
//! | cuts | when a block is due, the plan of a cut | `cuts` |
//! | observers | open cursors, the search after a deletion | `observers`, `cursor`, `deletion` |
//! | replay | state while the log is read | `replay`, `waiting` |
//! | metadata, exemplars, counters | as their names say | `metadata`, `exemplars`, `counters` |
//!
//! A method of [`Head`] that changes several parts borrows each of them: `write` finds series
//! (`next_series`), checks rows (`check`) and applies them; `removal` cuts, deletes and truncates;
//! `replay` restores rows from the log; `read` answers reads (`cursor`, `labels`, `cardinality`);
//! `saved` encodes everything.

mod batch;
mod cardinality;
mod check;
mod counters;
mod cursor;
mod cuts;
mod deletion;
mod exemplars;
mod label_budget;
mod label_names;
mod labels;
mod limits;
mod metadata;
mod next_series;
mod observers;
mod options;
mod postings;
mod read;
mod removal;
mod replay;
mod saved;
mod series;
mod series_table;
mod slab;
mod sorted;
mod symbols;
mod waiting;
mod window;
mod work;
mod write;

pub use batch::{Batch, REFUSAL_DETAIL_BYTES_MAX, Refusal, RefusalReason, WriteOutcome};
pub use cardinality::{CardinalityList, CardinalityWalk};
pub use counters::HeadCounters;
pub use cursor::{HeadCursor, HeadSeries, Slice};
pub use deletion::DeletedSpan;
pub use exemplars::{
    EXEMPLAR_LABELS_CHARS_MAX, Exemplar, ExemplarScan, Exemplars, SeriesExemplars,
};
pub use labels::HeadStrings;
pub use metadata::{METADATA_FAMILIES_MAX, Metadata, MetadataTable};
pub use next_series::NextSeriesPredictor;
pub use options::HeadOptions;
pub use replay::FloatReplay;
pub use saved::{Bytes, HeadLoader, HeadSaver, SavedHeadError};
pub use series::Slot;
pub use series_table::{LookupError, RequestSymbols};
pub use work::{NotNow, WorkLeft};

use crate::model::{Labels, TimeRange};
use cuts::Cuts;
use observers::Observers;
use postings::Postings;
use replay::Replay;
use series_table::SeriesTable;
use std::cell::Cell;
use window::Window;

/// Recent samples in memory, with an index over their labels.
pub struct Head {
    options: HeadOptions,
    table: SeriesTable,
    postings: Postings,
    window: Window,
    cuts: Cuts,
    observers: Observers,
    /// Present while the log is read, from its first series to its end.
    replay: Option<Box<Replay>>,
    /// Type, help and unit of metric families.
    pub metadata: MetadataTable,
    /// Newest exemplars of all series together.
    pub exemplars: Exemplars,
    /// Counts since the head was made.
    pub counters: HeadCounters,
    /// Oldest time stored since [`Head::take_oldest_stored_ms`] was last called, or `i64::MAX`.
    oldest_stored_ms: Cell<i64>,
}

impl Head {
    /// Creates an empty head that leaves everything before `min_valid_ms` to blocks.
    pub fn new(options: HeadOptions, min_valid_ms: i64) -> Head {
        Head {
            options,
            table: SeriesTable::new(options.hash_seed),
            postings: Postings::default(),
            window: Window::new(&options, min_valid_ms),
            cuts: Cuts::new(options.memory),
            observers: Observers::new(options.hash_seed),
            replay: None,
            metadata: MetadataTable::default(),
            exemplars: Exemplars::new(options.exemplars_max, options.hash_seed),
            counters: HeadCounters::default(),
            oldest_stored_ms: Cell::new(i64::MAX),
        }
    }

    /// Returns the options that the head was made with.
    pub fn options(&self) -> &HeadOptions {
        &self.options
    }

    /// Number of series in the head.
    pub fn series_count(&self) -> usize {
        self.table.len()
    }

    /// Number of in-order chunks of all series.
    pub fn chunk_count(&self) -> usize {
        self.table.chunk_count()
    }

    /// Number of distinct label names and values.
    pub fn symbol_count(&self) -> usize {
        self.table.symbols().len()
    }

    /// Returns the times of the oldest in-order sample and of the newest sample. If the head is
    /// empty, the range ends before it starts.
    pub fn range(&self) -> TimeRange {
        let held = self.window.held();
        TimeRange { start_ms: held.oldest_ms, end_ms: held.newest_ms }
    }

    /// Returns the newest time that the head or a block holds, or `i64::MIN` if there is no sample.
    pub fn newest_time_ms(&self) -> i64 {
        self.window.newest_ms()
    }

    /// Returns the oldest time stored since the last call, or `i64::MAX` if nothing was stored.
    pub fn take_oldest_stored_ms(&self) -> i64 {
        self.oldest_stored_ms.replace(i64::MAX)
    }

    /// Returns whether neither the head nor any block holds samples.
    pub fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// Returns the clock at the last write, or `i64::MAX` before the first write.
    pub fn now_ms(&self) -> i64 {
        self.window.now_ms()
    }

    /// Returns the slots in use, ascending.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.table.places().iter()
    }

    /// Returns the number of a series' labels, and the labels by ascending name.
    pub fn labels(&self, slot: Slot) -> (usize, impl Iterator<Item = (&str, &str)>) {
        self.table.labels(slot)
    }

    /// Returns a series' labels in packed form.
    pub fn packed_labels(&self, slot: Slot) -> Labels {
        self.table.packed_labels(slot)
    }

    /// Returns the number by which the log refers to a series.
    pub fn series_ref(&self, slot: Slot) -> u64 {
        self.table.at(slot).series_ref
    }

    /// Returns the slot of a series for which [`Head::remember_ref`] was called.
    pub fn by_ref(&self, series_ref: u64) -> Option<Slot> {
        self.table.by_ref(series_ref)
    }

    /// Makes a series available to [`Head::by_ref`].
    pub fn remember_ref(&mut self, slot: Slot) {
        self.table.remember_ref(slot);
    }

    /// Keeps new series from getting a number that log records of a dropped series still use.
    pub fn retire_ref(&mut self, series_ref: u64) {
        self.table.retire_ref(series_ref);
    }

    pub(super) fn slot_of(&self, labels: &Labels) -> Option<Slot> {
        let pairs: Vec<_> = labels.iter().collect();
        self.table.find_sorted(&pairs).ok()
    }

    /// Returns the number of the series with these labels, or a new number that no series will get.
    pub fn ref_by_labels(&mut self, labels: &Labels) -> u64 {
        match self.slot_of(labels) {
            Some(slot) => self.series_ref(slot),
            None => {
                // A series that was dropped may still have exemplars, whose records need a number
                // of their own.
                let series_ref = self.table.next_ref();
                self.table.retire_ref(series_ref);
                series_ref
            }
        }
    }

    /// Returns the largest number that a series has or had.
    pub fn last_ref(&self) -> u64 {
        self.table.next_ref().saturating_sub(1)
    }

    /// Bytes of memory that may be in use; 0 is no limit.
    pub fn memory_bytes_max(&self) -> u64 {
        self.options.memory.bytes_max
    }

    /// Bytes of memory in use.
    pub fn memory_used_bytes(&self) -> u64 {
        (self.options.memory.used_bytes)()
    }

    /// Returns whether memory is too short to log floats as column records.
    pub fn columns_go(&self) -> bool {
        self.options.memory.columns_go()
    }

    /// Returns whether memory is so short that writes are refused until a cut frees some.
    pub fn is_out_of_memory(&self) -> bool {
        self.options.memory.refuses_writes()
    }
}

#[cfg(test)]
mod tests;

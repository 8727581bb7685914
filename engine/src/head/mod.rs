//! Recent samples in memory, and the rules by which new ones are accepted.
//!
//! [`Head`] is made of parts that own their state and know nothing of each other, but for what they
//! are given in a call. It knows nothing of the log or of blocks: the engine writes the log between
//! [`Head::check`] and [`Head::apply`].
//!
//! | part | owns | files |
//! | --- | --- | --- |
//! | series table | series by place, by labels and by number; symbols | `series_table` with `lookup`, `series`, `symbols`, `label_names`, `slab`; how many there may be: `limits` |
//! | postings | which series carry which label, and their order | `postings`, `sorted` |
//! | window | the times that are held and accepted | `window`; the out-of-order rule is `window/out_of_order_rule` |
//! | cuts | when a block is due, the plan of a cut | `cuts` |
//! | observers | open cursors, the search after a deletion | `observers`, `cursor`, `deletion` |
//! | replay | what is known while the log is read | `replay`, `waiting` |
//! | metadata, exemplars, counters | what their names say | `metadata`, `exemplars`, `counters` |
//!
//! Where several parts change together, a method of [`Head`] borrows each of them: `write` finds
//! series (`next_series`), checks rows (`check`) and applies them; `removal` cuts, deletes
//! and truncates; `replay` takes rows back from the log; `read` answers (`cursor`, `labels`,
//! `cardinality`); `saved` makes bytes of it all.

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

/// The head.
pub struct Head {
    options: HeadOptions,
    table: SeriesTable,
    postings: Postings,
    window: Window,
    cuts: Cuts,
    observers: Observers,
    /// Until the log is read to its end, from its first series on.
    replay: Option<Box<Replay>>,
    /// What is known of metric families.
    pub metadata: MetadataTable,
    /// The newest exemplars.
    pub exemplars: Exemplars,
    /// Counts since the head was made.
    pub counters: HeadCounters,
    /// Time of the oldest sample that was stored since that was asked; the largest time without.
    oldest_stored_ms: Cell<i64>,
}

impl Head {
    /// An empty head that leaves everything before `min_valid_ms` to blocks.
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

    /// The bounds that it was given.
    pub fn options(&self) -> &HeadOptions {
        &self.options
    }

    /// Number of series.
    pub fn series_count(&self) -> usize {
        self.table.len()
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.table.chunk_count()
    }

    /// Number of distinct label names and values.
    pub fn symbol_count(&self) -> usize {
        self.table.symbols().len()
    }

    /// Times of the oldest and newest in-order sample; without any, the range ends before it
    /// starts.
    pub fn range(&self) -> TimeRange {
        let held = self.window.held();
        TimeRange { start_ms: held.oldest_ms, end_ms: held.newest_ms }
    }

    /// Time of the newest sample that the head or a block holds; the smallest time without any.
    pub fn newest_time_ms(&self) -> i64 {
        self.window.newest_ms()
    }

    /// Time of the oldest sample that batches stored since the last call; the largest time if none
    /// did.
    pub fn take_oldest_stored_ms(&self) -> i64 {
        self.oldest_stored_ms.replace(i64::MAX)
    }

    /// Whether neither the head nor a block holds anything.
    pub fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// The clock at the last write.
    pub fn now_ms(&self) -> i64 {
        self.window.now_ms()
    }

    /// Slots in use, ascending.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.table.places().iter()
    }

    /// How many labels a series has, and what they are, by ascending name.
    pub fn labels(&self, slot: Slot) -> (usize, impl Iterator<Item = (&str, &str)>) {
        self.table.labels(slot)
    }

    /// A series' labels in packed form.
    pub fn packed_labels(&self, slot: Slot) -> Labels {
        self.table.packed_labels(slot)
    }

    /// The number by which the log knows a series.
    pub fn series_ref(&self, slot: Slot) -> u64 {
        self.table.at(slot).series_ref
    }

    /// The slot of a series that [`Head::remember_ref`] was given.
    pub fn by_ref(&self, series_ref: u64) -> Option<Slot> {
        self.table.by_ref(series_ref)
    }

    /// Makes a series known by its number.
    pub fn remember_ref(&mut self, slot: Slot) {
        self.table.remember_ref(slot);
    }

    /// Makes sure that no new series gets a number that records of a dropped series still carry.
    pub fn retire_ref(&mut self, series_ref: u64) {
        self.table.retire_ref(series_ref);
    }

    /// The series with these labels.
    pub(super) fn slot_of(&self, labels: &Labels) -> Option<Slot> {
        let pairs: Vec<_> = labels.iter().collect();
        self.table.find_sorted(&pairs).ok()
    }

    /// The number of the series with these labels; a new one, retired at once, if there is none.
    pub fn ref_by_labels(&mut self, labels: &Labels) -> u64 {
        match self.slot_of(labels) {
            Some(slot) => self.series_ref(slot),
            None => {
                let series_ref = self.table.next_ref();
                self.table.retire_ref(series_ref);
                series_ref
            }
        }
    }

    /// The largest number that a series has, or had.
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

    /// Whether memory is so short that floats go to the log without columns.
    pub fn columns_go(&self) -> bool {
        self.options.memory.columns_go()
    }

    /// Whether memory is so short that no write can be taken before a cut frees some.
    pub fn is_out_of_memory(&self) -> bool {
        self.options.memory.refuses_writes()
    }
}

#[cfg(test)]
mod tests;

//! Forwarding: turns rows of the logs into requests to other receivers, each row once.
//!
//! ```text
//! records ─▶ feed ─▶ rows of series ─▶ shard 0 ▒▒▒▒▒▒ ─▶ take ─▶ body … done
//! blocks, head ─▶ feed_store ─────▶  ─▶ shard 1 ▒▒      ─▶ take ─▶ body … done
//! ```
//!
//! Rows are read in the log's order. The labels of a series select its queue (*shard*), and each
//! queue is delivered in order, so the rows of a series stay in order. Delivery is tracked as one
//! *position* for each queue and source: all rows before it are delivered, later rows perhaps not.
//! After a restart, rows before the saved positions are skipped. Rows that must be read from a log
//! while the queues have no room are noted in a *gap*, and read from the store later.
//!
//! Reading order: `series` (labels as they are sent), `row`, `shard` (a queue), `read` (of
//! records), `gap`, `stored` (of blocks and head), `request`, `place` (positions of delivery),
//! `metadata`. Sockets, compression, clocks and files are the host's.
//!
//! Invariants: a queue exceeds its capacity by the rows of one record or stored series at most; a
//! row is in one queue or gap, or delivered, or counted as dropped.

mod gap;
mod metadata;
mod place;
mod read;
mod request;
mod row;
mod series;
mod shard;
mod stored;
#[cfg(test)]
mod tests;

pub use gap::{Gap, StorePlace, WINDOW_MS, window_of};
pub use request::Batch;
pub use row::{RowPosition, Source};

use crate::engine::RemoteWriteVersion;
use crate::model::Labels;
use crate::relabel::{Rule, RuleError, RuleSpec};
use crate::storage::LogKind;
use crate::wal::ColumnReader;
use crate::wire::WireError;
use place::Mark;
use request::RequestBuilder;
use row::{Extras, SOURCES};
use series::SeriesTable;
use shard::Shard;
use std::collections::{BTreeMap, VecDeque};

/// Largest number of queues of a destination.
pub const SHARDS_MAX: u32 = 10_000;

/// Settings of a destination: the rows that are sent, and their labels.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Labels that each series gets unless it has a label of that name.
    pub external_labels: Labels,
    /// The relabelling rules, applied before series are sent.
    pub rules: Vec<RuleSpec>,
    /// Whether exemplars are sent along with samples.
    pub exemplars: bool,
    /// Whether native histograms are sent.
    pub histograms: bool,
}

/// Errors of settings, calls and stored data.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// A call with invalid arguments, or a call that came too early.
    #[error("{0}")]
    Invalid(String),
    /// A relabelling rule that cannot be used.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A frame of the store that does not decode.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// A chunk of the store that does not decode.
    #[error("a chunk of series {series} is damaged: {reason}")]
    Chunk {
        /// Labels of the chunk's series as text.
        series: String,
        /// The decoder's description of the fault.
        reason: String,
    },
}

/// Counts of one call that reads records or frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// Number of records read; fewer than given if a queue is full.
    pub records: u32,
    /// Number of bytes read of the store's frames.
    pub bytes: u64,
    /// Samples and histograms that were queued or noted in a gap.
    pub rows: u64,
    /// Number of rows, of those in `rows`, that were added to a gap.
    pub in_gap: u64,
    /// Rows of series that the relabelling rules drop.
    pub dropped: u64,
    /// Rows of series that no record introduced, and of records that do not decode.
    pub unknown: u64,
    /// Exemplars that were dropped, since the row of their sample is not queued.
    pub exemplars_dropped: u64,
    /// Out-of-order rows for which the gap had no room.
    pub no_room: u64,
    /// Time of the newest row in milliseconds since the epoch.
    pub newest_ms: i64,
    /// Whether reading stopped because a queue is full.
    pub is_full: bool,
}

/// Position of the delivery of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardPosition {
    /// First undelivered row of the in-order log.
    pub in_order: RowPosition,
    /// First undelivered row of the out-of-order log.
    pub out_of_order: RowPosition,
    /// First undelivered row of the store's current window.
    pub store: StorePlace,
}

/// The forwarder of one destination.
pub struct Forwarder {
    settings: Settings,
    series: SeriesTable,
    shards: Vec<Shard>,
    extras: Extras,
    /// Position after the last row that was read, for each log.
    tails: [RowPosition; 2],
    store_tail: StorePlace,
    log_marks: [VecDeque<Mark<RowPosition>>; 2],
    store_marks: VecDeque<Mark<StorePlace>>,
    /// Number that the next row of each source gets.
    numbers: [u64; SOURCES],
    columns: ColumnReader,
    builder: RequestBuilder,
    /// Whether rows of the logs are noted in a gap instead of queued.
    is_detached: bool,
    /// Whether in-order rows were queued since the last gap began.
    has_queued: bool,
    gaps: VecDeque<Gap>,
    families: BTreeMap<String, (u8, String, String)>,
}

impl Forwarder {
    /// Makes a forwarder that has read nothing. Fails if a rule or the number of shards is invalid.
    pub fn new(settings: Settings, shards: u32) -> Result<Forwarder, ForwardError> {
        let rules = settings.rules.iter().cloned().map(Rule::new).collect::<Result<_, _>>()?;
        let series = SeriesTable::new(settings.external_labels.clone(), rules);
        let mut forwarder = Forwarder {
            settings,
            series,
            shards: Vec::new(),
            extras: Extras::default(),
            tails: [RowPosition::default(); 2],
            store_tail: StorePlace::default(),
            log_marks: [VecDeque::new(), VecDeque::new()],
            store_marks: VecDeque::new(),
            numbers: [0; SOURCES],
            columns: ColumnReader::default(),
            builder: RequestBuilder::default(),
            is_detached: false,
            // Not known after a restart; a saved gap must not grow over rows delivered since.
            has_queued: true,
            gaps: VecDeque::new(),
            families: BTreeMap::new(),
        };
        forwarder.reshard(shards)?;
        Ok(forwarder)
    }

    /// Sets the positions and gaps of an earlier run. Must be called before anything is read.
    pub fn resume(&mut self, positions: &[ShardPosition], gaps: &[u8]) -> Result<(), ForwardError> {
        let count = u32::try_from(positions.len()).unwrap_or(u32::MAX);
        self.reshard(count)?;
        for (shard, position) in self.shards.iter_mut().zip(positions) {
            shard.resume = [position.in_order, position.out_of_order];
            shard.resume_store = position.store.clone();
        }
        let damaged = || ForwardError::Invalid("the list of gaps is damaged".into());
        let mut rest = gaps;
        while !rest.is_empty() {
            let (gap, after) = Gap::decode(rest).ok_or_else(damaged)?;
            self.gaps.push_back(gap);
            rest = after;
        }
        // Positions in other windows than the current one have no meaning.
        let window_ms = self.store_window().map(|(window_ms, _)| window_ms);
        for shard in &mut self.shards {
            if Some(shard.resume_store.window_ms) != window_ms {
                shard.resume_store = StorePlace::default();
            }
        }
        Ok(())
    }

    /// Changes the number of queues. All queues must be empty; they begin at the reading position.
    pub fn reshard(&mut self, shards: u32) -> Result<(), ForwardError> {
        if shards == 0 || shards > SHARDS_MAX {
            return Err(ForwardError::Invalid(format!(
                "{shards} shards are not possible; expected 1 to {SHARDS_MAX}"
            )));
        }
        if self.shards.iter().any(|shard| !shard.queue.is_empty()) {
            return Err(ForwardError::Invalid(
                "the number of shards cannot change while their queues are not empty".into(),
            ));
        }
        // Rows that some queues delivered ahead of the reading position must be skipped first.
        let ahead = self.shards.iter().any(|shard| {
            shard.resume[0] > self.tails[0]
                || shard.resume[1] > self.tails[1]
                || shard.resume_store > self.store_tail
        });
        if ahead {
            return Err(ForwardError::Invalid(
                "the number of shards cannot change before the log was read up to the stored \
                 positions"
                    .into(),
            ));
        }
        // Row numbers continue from the highest, so no old number finds a row of a new queue.
        let left = self.shards.iter().map(|shard| shard.left).max().unwrap_or(0);
        self.shards = (0..shards).map(|_| Shard { left, ..Shard::default() }).collect();
        Ok(())
    }

    /// Returns whether [`Forwarder::reshard`] may be called.
    pub fn can_reshard(&self) -> bool {
        self.shards.iter().all(|shard| {
            shard.queue.is_empty()
                && shard.resume[0] <= self.tails[0]
                && shard.resume[1] <= self.tails[1]
                && shard.resume_store <= self.store_tail
        })
    }

    /// Notes the end of a segment: the position of an empty queue moves past the segment.
    pub fn end_segment(&mut self, log: LogKind, segment: u32) {
        let which = if log == LogKind::InOrder { 0 } else { 1 };
        let after = RowPosition { segment: segment.saturating_add(1), record: 0, row: 0 };
        self.tails[which] = self.tails[which].max(after);
    }

    /// Returns whether any queue holds at least `capacity` rows.
    pub fn is_full(&self, capacity: usize) -> bool {
        self.shards.iter().any(|shard| shard.queue.len() >= capacity)
    }

    /// Returns a request of the first rows of a queue, at most `rows_max`; `None` if the queue is
    /// empty. Repeated calls return the same rows until [`Forwarder::done`].
    pub fn take(
        &mut self,
        shard: u32,
        version: RemoteWriteVersion,
        rows_max: usize,
        not_before_ms: i64,
    ) -> Option<Batch> {
        let shard = self.shards.get_mut(shard as usize)?;
        if shard.queue.is_empty() {
            return None;
        }
        // A retry sends the same rows again, even if the queue has grown since.
        if shard.in_flight == 0 {
            shard.in_flight = shard.queue.len().min(rows_max.max(1));
        }
        let rows = shard.queue.range(..shard.in_flight);
        Some(self.builder.build(version, rows, not_before_ms, &self.series, &self.extras))
    }

    /// Removes the rows of the last [`Forwarder::take`], which are delivered or given up.
    pub fn done(&mut self, shard: u32) {
        let Some(shard) = self.shards.get_mut(shard as usize) else { return };
        for _ in 0..std::mem::take(&mut shard.in_flight) {
            let Some(row) = shard.pop() else { break };
            self.extras.free(&row);
            self.series.release(row.series);
        }
    }

    /// Returns the number of queued rows of each queue.
    pub fn pending(&self) -> impl Iterator<Item = u32> {
        self.shards.iter().map(|shard| shard.queue.len() as u32)
    }

    /// Number of series that are known at present.
    pub fn series_count(&self) -> usize {
        self.series.len()
    }
}

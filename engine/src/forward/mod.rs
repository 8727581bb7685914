//! Forwarding: the log's rows to requests for other receivers, each row once.
//!
//! ```text
//! records ─▶ feed ─▶ rows of series ─▶ shard 0 ▒▒▒▒▒▒ ─▶ take ─▶ body … done
//! blocks, head ─▶ feed_store ─────▶  ─▶ shard 1 ▒▒      ─▶ take ─▶ body … done
//! ```
//!
//! Rows are read in the log's order. Each belongs to the queue that its series' labels select, and
//! is delivered in the queue's order, so that the order of a series is kept. Where delivery stands
//! is one *place* for each queue and source: all before it is delivered, nothing behind it is known
//! to be. The positions of an earlier run let the same rows be skipped. What must be read from the
//! log although there is no room for it in queues is noted in a *gap*, and comes from the store
//! later.
//!
//! Reading order: `series` (labels as they are sent), `row`, `shard` (a queue), `read` (of
//! records), `gap`, `stored` (of blocks and head), `request`, `place` (where delivery stands),
//! `metadata`. Sockets, compression, clocks and files are the host's.
//!
//! Invariants: queues hold no more than the rows asked for and those of one record or stored
//! series; a row is in one queue or gap, or delivered, or counted as dropped.

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
pub use row::{Place, Source};

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

/// Most queues of a destination.
pub const SHARDS_MAX: u32 = 10_000;

/// Where rows go, and what of them.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Labels that each series gets unless it has one of that name.
    pub external_labels: Labels,
    /// The relabelling rules, applied before series are sent.
    pub rules: Vec<RuleSpec>,
    /// Whether exemplars are sent.
    pub exemplars: bool,
    /// Whether native histograms are sent.
    pub histograms: bool,
}

/// Why forwarding cannot go on as asked.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The caller's mistake.
    #[error("{0}")]
    Invalid(String),
    /// A rule cannot be used.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A chunk from the store does not decode.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// A chunk of the store does not decode.
    #[error("a chunk of series {series} is damaged: {reason}")]
    Chunk {
        /// Its labels.
        series: String,
        /// What is wrong.
        reason: String,
    },
}

/// What reading did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// Records taken; fewer than given if a queue is full.
    pub records: u32,
    /// Bytes taken, of what the store gave.
    pub bytes: u64,
    /// Samples and histograms that were queued or noted in a gap.
    pub rows: u64,
    /// The rows among these that were added to a gap.
    pub in_gap: u64,
    /// Rows that the rules drop.
    pub dropped: u64,
    /// Rows of series that no record introduced, and of records that do not decode.
    pub unknown: u64,
    /// Exemplars that could not be sent along with a sample.
    pub exemplars_dropped: u64,
    /// Out-of-order rows for which a gap had no room.
    pub no_room: u64,
    /// Time of the newest row.
    pub newest_ms: i64,
    /// Whether it ended because a queue is full.
    pub is_full: bool,
}

/// Where delivery of one queue stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardPosition {
    /// First undelivered row of the in-order log.
    pub in_order: Place,
    /// First undelivered row of the out-of-order log.
    pub out_of_order: Place,
    /// First undelivered row of the store's window that is being taken.
    pub store: StorePlace,
}

/// The forwarder of one destination.
pub struct Forwarder {
    settings: Settings,
    series: SeriesTable,
    shards: Vec<Shard>,
    extras: Extras,
    /// Where reading stands.
    tails: [Place; 2],
    store_tail: StorePlace,
    log_marks: [VecDeque<Mark<Place>>; 2],
    store_marks: VecDeque<Mark<StorePlace>>,
    /// Number that the next row of each source gets.
    numbers: [u64; SOURCES],
    columns: ColumnReader,
    builder: RequestBuilder,
    /// Whether rows of the logs are noted in a gap, not queued.
    is_detached: bool,
    /// Whether rows of the log were queued since the last gap.
    has_queued: bool,
    gaps: VecDeque<Gap>,
    families: BTreeMap<String, (u8, String, String)>,
}

impl Forwarder {
    /// Nothing is read or queued yet.
    pub fn new(settings: Settings, shards: u32) -> Result<Forwarder, ForwardError> {
        let rules = settings.rules.iter().cloned().map(Rule::new).collect::<Result<_, _>>()?;
        let series = SeriesTable::new(settings.external_labels.clone(), rules);
        let mut forwarder = Forwarder {
            settings,
            series,
            shards: Vec::new(),
            extras: Extras::default(),
            tails: [Place::default(); 2],
            store_tail: StorePlace::default(),
            log_marks: [VecDeque::new(), VecDeque::new()],
            store_marks: VecDeque::new(),
            numbers: [0; SOURCES],
            columns: ColumnReader::default(),
            builder: RequestBuilder::default(),
            is_detached: false,
            has_queued: true,
            gaps: VecDeque::new(),
            families: BTreeMap::new(),
        };
        forwarder.reshard(shards)?;
        Ok(forwarder)
    }

    /// Skips rows that an earlier run delivered. Nothing may have been read yet.
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
        // A place in a window that is taken no more says nothing.
        let window_ms = self.store_window().map(|(window_ms, _)| window_ms);
        for shard in &mut self.shards {
            if Some(shard.resume_store.window_ms) != window_ms {
                shard.resume_store = StorePlace::default();
            }
        }
        Ok(())
    }

    /// Changes the number of queues, which must all be empty: then all stand where reading does.
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
        // What was delivered of some queues beyond where reading stands is skipped first.
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
        let left = self.shards.iter().map(|shard| shard.left).max().unwrap_or(0);
        self.shards = (0..shards).map(|_| Shard { left, ..Shard::default() }).collect();
        Ok(())
    }

    /// Whether [`Forwarder::reshard`] may be called.
    pub fn can_reshard(&self) -> bool {
        self.shards.iter().all(|shard| {
            shard.queue.is_empty()
                && shard.resume[0] <= self.tails[0]
                && shard.resume[1] <= self.tails[1]
                && shard.resume_store <= self.store_tail
        })
    }

    /// All of a segment was read: delivery of an empty queue stands behind it.
    pub fn end_segment(&mut self, log: LogKind, segment: u32) {
        let which = if log == LogKind::InOrder { 0 } else { 1 };
        let after = Place { segment: segment.saturating_add(1), record: 0, row: 0 };
        self.tails[which] = self.tails[which].max(after);
    }

    /// Whether any queue holds so many rows.
    pub fn is_full(&self, capacity: usize) -> bool {
        self.shards.iter().any(|shard| shard.queue.len() >= capacity)
    }

    /// The request of the rows at the front of a queue, at most so many; `None` if it is empty.
    /// They stay there until [`Forwarder::done`]; until then the same ones are given again.
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
        if shard.in_flight == 0 {
            shard.in_flight = shard.queue.len().min(rows_max.max(1));
        }
        let rows = shard.queue.range(..shard.in_flight);
        Some(self.builder.build(version, rows, not_before_ms, &self.series, &self.extras))
    }

    /// The rows that were taken last are delivered, or given up.
    pub fn done(&mut self, shard: u32) {
        let Some(shard) = self.shards.get_mut(shard as usize) else { return };
        for _ in 0..std::mem::take(&mut shard.in_flight) {
            let Some(row) = shard.pop() else { break };
            self.extras.free(&row);
            self.series.release(row.series);
        }
    }

    /// Rows queued, by queue.
    pub fn pending(&self) -> impl Iterator<Item = u32> {
        self.shards.iter().map(|shard| shard.queue.len() as u32)
    }

    /// Series known now.
    pub fn series_count(&self) -> usize {
        self.series.len()
    }
}

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
//! to be. An earlier life's places let the same rows be skipped. What must be read from the log
//! although there is no room for it in queues is noted in a *gap*, and comes from the store later.
//!
//! Reading order: `series` (labels as they are sent), `row`, `shard` (a queue), `gap`, `request`.
//! Sockets, compression, clocks and files are the host's.
//!
//! Invariants: queues hold no more than the rows asked for and those of one record or stored series;
//! a row is in one queue or gap, or delivered, or counted as dropped.

mod gap;
mod request;
mod row;
mod series;
mod shard;
#[cfg(test)]
mod tests;

pub use gap::{Gap, StorePlace, WINDOW_MS, window_of};
pub use request::Batch;
pub use row::{Place, Source};

use crate::chunk::values;
use crate::engine::RemoteWriteVersion;
use crate::model::{Labels, Value};
use crate::relabel::{Rule, RuleError, RuleSpec};
use crate::storage::LogKind;
use crate::wal::{ColumnReader, Record, RecordError, decode};
use crate::wire::{WireError, put_family_metadata, split_chunked_series};
use request::RequestBuilder;
use row::{Extras, Row, RowExemplar, SOURCES};
use series::{Metadata, SeriesTable, labels_hash};
use shard::Shard;
use std::collections::{BTreeMap, VecDeque};

/// Most queues of a destination.
pub const SHARDS_MAX: u32 = 10_000;

/// Most gaps; beyond, the oldest two are joined.
const GAPS_MAX: usize = 16;

/// Most families of which metadata is sent.
const FAMILIES_MAX: usize = 100_000;

/// Where rows go, and what of them.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Labels that each series gets unless it has one of that name.
    pub external_labels: Labels,
    /// What is done to labels before they are sent.
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
    /// What the store gave does not decode.
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
    /// Of these, those noted in a gap.
    pub in_gap: u64,
    /// Rows that the rules drop.
    pub dropped: u64,
    /// Rows of series that no record introduced, and of records that do not decode.
    pub unknown: u64,
    /// Exemplars that could not be sent along with a sample.
    pub exemplars_dropped: u64,
    /// Late rows for which a gap had no room.
    pub no_room: u64,
    /// Time of the newest row.
    pub newest_ms: i64,
    /// Whether it ended because a queue is full.
    pub is_full: bool,
}

/// Where delivery of one queue stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardPosition {
    /// First undelivered row of the ordered log.
    pub ordered: Place,
    /// First undelivered row of the late log.
    pub late: Place,
    /// First undelivered row of the store's window that is being taken.
    pub store: StorePlace,
}

/// Rows of one record, or of one series of the store, by their numbers.
#[derive(Clone, Debug)]
struct Mark<P> {
    first_number: u64,
    place: P,
}

/// What one destination is sent.
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

    /// Skips what an earlier life delivered. Nothing may have been read yet.
    pub fn resume(&mut self, positions: &[ShardPosition], gaps: &[u8]) -> Result<(), ForwardError> {
        let count = u32::try_from(positions.len()).unwrap_or(u32::MAX);
        self.reshard(count)?;
        for (shard, position) in self.shards.iter_mut().zip(positions) {
            shard.resume = [position.ordered, position.late];
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
                "{shards} queues; 1 to {SHARDS_MAX} can be"
            )));
        }
        if self.shards.iter().any(|shard| !shard.queue.is_empty()) {
            return Err(ForwardError::Invalid(
                "the number of queues is to change, and they are \
                 not empty"
                    .into(),
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
                "the number of queues is to change before the log was read to where delivery stood"
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

    /// Takes the series of records, and nothing else of them.
    pub fn note_series<'r>(&mut self, segment: u32, records: impl Iterator<Item = &'r [u8]>) {
        for record in records {
            match decode(record) {
                Ok(Record::Series(series)) => {
                    for series in series.flatten() {
                        // What does not make a label set was never stored.
                        let _ = self.series.note(segment, series.series_ref, &series.labels);
                    }
                }
                Ok(Record::Metadata(rows)) => self.take_metadata(rows.flatten()),
                _ => {}
            }
        }
    }

    /// Forgets series that no segment from this one on has introduced.
    pub fn forget_series(&mut self, before_segment: u32) {
        self.series.forget(before_segment);
        self.builder.symbols_changed();
    }

    /// Takes records of a log, the first of which is its segment's record of this number, until a
    /// queue holds `capacity` rows.
    pub fn feed<'r>(
        &mut self,
        log: LogKind,
        segment: u32,
        first_record: u32,
        records: impl Iterator<Item = &'r [u8]>,
        capacity: usize,
    ) -> Fed {
        let mut fed = Fed { newest_ms: i64::MIN, ..Fed::default() };
        let which = if log == LogKind::Ordered { 0 } else { 1 };
        for (record_number, record) in (first_record..).zip(records) {
            fed.is_full = !self.is_detached && self.is_full(capacity);
            if fed.is_full {
                break;
            }
            let mut reader = RecordReader {
                forwarder: self,
                which,
                place: Place { segment, record: record_number, row: 0 },
                fed: &mut fed,
            };
            reader.read(record);
            let rows = reader.place.row;
            if rows > 0 {
                let place = Place { segment, record: record_number, row: 0 };
                let first_number = self.numbers[which];
                self.log_marks[which].push_back(Mark { first_number, place });
                self.numbers[which] += u64::from(rows);
            }
            let after = Place { segment, record: record_number.saturating_add(1), row: 0 };
            self.tails[which] = self.tails[which].max(after);
            fed.records += 1;
        }
        fed
    }

    /// All of a segment was read: delivery of an empty queue stands behind it.
    pub fn end_segment(&mut self, log: LogKind, segment: u32) {
        let which = if log == LogKind::Ordered { 0 } else { 1 };
        let after = Place { segment: segment.saturating_add(1), record: 0, row: 0 };
        self.tails[which] = self.tails[which].max(after);
    }

    /// Whether any queue holds so many rows.
    pub fn is_full(&self, capacity: usize) -> bool {
        self.shards.iter().any(|shard| shard.queue.len() >= capacity)
    }

    /// From now on rows of the logs are noted in a gap. Those that are queued are moved there, too;
    /// what was on its way counts as undelivered. Gives how many rows were moved.
    pub fn detach(&mut self) -> u64 {
        self.is_detached = true;
        let extends = self.gaps.back().is_some_and(|gap| !gap.has_begun()) && !self.has_queued;
        if !extends {
            self.gaps.push_back(Gap::default());
            if self.gaps.len() > GAPS_MAX
                && let Some(oldest) = self.gaps.pop_front()
                && let Some(next) = self.gaps.front_mut()
            {
                next.join(oldest);
            }
        }
        self.has_queued = false;
        let Some(gap) = self.gaps.back_mut() else { return 0 };
        let mut moved = 0;
        for shard in &mut self.shards {
            shard.in_flight = 0;
            let queue = std::mem::take(&mut shard.queue);
            // Ordinals of rows that stay change: no exemplar may find another row by them.
            shard.left += queue.len() as u64;
            shard.counts = [0; SOURCES];
            // Ordered rows first: late ones between them come with them.
            for row in queue.iter().filter(|row| row.source() == Source::Ordered) {
                let Some(series) = self.series.get(row.series) else { continue };
                gap.add_ordered(series.hash, row.time_ms);
            }
            for row in queue {
                let hash = self.series.get(row.series).map_or(0, |series| series.hash);
                let goes = match row.source() {
                    Source::Ordered => true,
                    Source::Late => gap.add_late(hash, row.time_ms),
                    Source::Store => false,
                };
                if goes {
                    moved += 1;
                    self.extras.free(&row);
                    self.series.release(row.series);
                } else {
                    shard.push(row);
                }
            }
        }
        moved
    }

    /// Ends what [`Forwarder::detach`] began: rows of the logs are queued again.
    pub fn attach(&mut self) {
        self.is_detached = false;
        self.end_gaps();
        self.prune_marks();
    }

    /// Takes series of the store as `chunked-series` frames have them, those of the oldest gap's
    /// oldest window; until a queue holds `capacity` rows.
    pub fn feed_store(&mut self, frames: &[u8], capacity: usize) -> Result<Fed, ForwardError> {
        let mut fed = Fed { newest_ms: i64::MIN, ..Fed::default() };
        let gap_at = self.gaps.iter().position(|gap| gap.first_window().is_some());
        let Some((window_ms, _)) = self.store_window() else {
            fed.bytes = frames.len() as u64;
            return Ok(fed);
        };
        let window_end_ms = window_ms.saturating_add(WINDOW_MS);
        let mut rest = frames;
        while !rest.is_empty() {
            fed.is_full = self.is_full(capacity);
            if fed.is_full {
                break;
            }
            let (stored, after) = split_chunked_series(rest)?;
            rest = after;
            let hash = labels_hash(&stored.labels);
            let shard_at = (hash % self.shards.len().max(1) as u64) as usize;
            let has = gap_at.and_then(|at| self.gaps.get(at)).map(|gap| gap.of(hash));
            let (Some(has), Some(shard)) = (has, self.shards.get_mut(shard_at)) else { continue };
            let place = StorePlace { window_ms, labels: stored.labels, time_ms: i64::MIN };
            let mut at = None;
            let mut row_count = 0u64;
            for chunk in &stored.chunks {
                if chunk.max_time_ms < window_ms || chunk.min_time_ms >= window_end_ms {
                    continue;
                }
                let damaged = |error: crate::chunk::ChunkError| ForwardError::Chunk {
                    series: place.labels.to_string(),
                    reason: error.to_string(),
                };
                for row in values(chunk).map_err(damaged)? {
                    let (time_ms, value) = row.map_err(damaged)?;
                    if time_ms < window_ms || time_ms >= window_end_ms || !has(time_ms) {
                        continue;
                    }
                    if place.window_ms == shard.resume_store.window_ms
                        && (&place.labels, time_ms)
                            < (&shard.resume_store.labels, shard.resume_store.time_ms)
                    {
                        continue;
                    }
                    let histogram = match &value {
                        Value::Float(_) => None,
                        _ if !self.settings.histograms => continue,
                        histogram => Some(histogram.clone()),
                    };
                    let at =
                        *at.get_or_insert_with(|| self.series.note_stored(&place.labels, hash));
                    let Some(series) = self.series.get_mut(at) else { continue };
                    if series.labels.is_empty() {
                        fed.dropped += 1;
                        continue;
                    }
                    let number = self.numbers[Source::Store as usize] + row_count;
                    let mut row = Row::new(Source::Store, number, time_ms, at);
                    match (histogram, value) {
                        (None, Value::Float(value)) => row.value = value,
                        (histogram, _) => {
                            if let Some(extra) = self.extras.of(&mut row) {
                                extra.histogram = histogram;
                            }
                        }
                    }
                    series.queued += 1;
                    shard.push(row);
                    row_count += 1;
                    fed.rows += 1;
                    fed.newest_ms = fed.newest_ms.max(time_ms);
                }
            }
            if let Some(at) = at {
                self.series.drop_if_unused(at);
            }
            if row_count > 0 {
                let first_number = self.numbers[Source::Store as usize];
                self.store_marks.push_back(Mark { first_number, place: place.clone() });
                self.numbers[Source::Store as usize] += row_count;
            }
            self.store_tail = StorePlace { time_ms: i64::MAX, ..place };
        }
        fed.bytes = (frames.len() - rest.len()) as u64;
        Ok(fed)
    }

    /// The oldest window that is still to be taken from the store, and the rows it should have.
    pub fn store_window(&self) -> Option<(i64, u64)> {
        self.gaps.iter().find_map(Gap::first_window)
    }

    /// Begins to take the oldest window; the late log ends here, as far as it may be in the store.
    pub fn begin_store_window(&mut self, late_end: Place) {
        if let Some(gap) = self.active_gap() {
            gap.begin_window(late_end);
        }
    }

    /// Ends the oldest window: all of it was delivered, or it is given up.
    pub fn end_store_window(&mut self) {
        if let Some(gap) = self.active_gap() {
            gap.end_window();
        }
        self.end_gaps();
        // The next window may be one further back, of another gap.
        let window_ms = self.store_window().map_or(i64::MIN, |(window_ms, _)| window_ms);
        self.store_tail = StorePlace { window_ms, ..StorePlace::default() };
        for shard in &mut self.shards {
            shard.resume_store = StorePlace::default();
        }
    }

    /// The oldest gap of which something is left to be taken.
    fn active_gap(&mut self) -> Option<&mut Gap> {
        self.gaps.iter_mut().find(|gap| gap.first_window().is_some())
    }

    /// Forgets gaps that say nothing any more.
    fn end_gaps(&mut self) {
        let late = self.tails[1];
        let is_skipping = self.shards.iter().any(|shard| shard.resume[1] > late);
        self.gaps.retain(|gap| is_skipping || !gap.is_over(late));
    }

    /// Whether rows of the store are queued.
    pub fn has_store_rows(&self) -> bool {
        self.shards.iter().any(|shard| shard.counts[Source::Store as usize] > 0)
    }

    /// Rows in gaps.
    pub fn gap_rows(&self) -> u64 {
        self.gaps.iter().map(Gap::rows).sum()
    }

    /// The gaps as bytes, for [`Forwarder::resume`].
    pub fn encode_gaps(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.gaps.iter().for_each(|gap| gap.encode(&mut out));
        out
    }

    /// The request of the rows at the front of a queue, at most so many; `None` if it is empty. They
    /// stay there until [`Forwarder::done`]; until then the same ones are given again.
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

    /// Where delivery of each queue stands.
    pub fn positions(&mut self) -> Vec<ShardPosition> {
        self.prune_marks();
        let log_place = |shard: &Shard, which: usize, source: Source| match shard.first_of(source) {
            None => self.tails[which].max(shard.resume[which]),
            Some(row) => {
                let marks = &self.log_marks[which];
                let after = marks.partition_point(|mark| mark.first_number <= row.number());
                match marks.get(after.wrapping_sub(1)) {
                    Some(mark) => {
                        let row = row.number() - mark.first_number;
                        Place { row: u32::try_from(row).unwrap_or(u32::MAX), ..mark.place }
                    }
                    None => shard.resume[which],
                }
            }
        };
        let store_place = |shard: &Shard| match shard.first_of(Source::Store) {
            None => self.store_tail.clone().max(shard.resume_store.clone()),
            Some(row) => {
                let marks = &self.store_marks;
                let after = marks.partition_point(|mark| mark.first_number <= row.number());
                match marks.get(after.wrapping_sub(1)) {
                    Some(mark) => StorePlace { time_ms: row.time_ms, ..mark.place.clone() },
                    None => shard.resume_store.clone(),
                }
            }
        };
        let position = |shard: &Shard| ShardPosition {
            ordered: log_place(shard, 0, Source::Ordered),
            late: log_place(shard, 1, Source::Late),
            store: store_place(shard),
        };
        self.shards.iter().map(position).collect()
    }

    /// Forgets where rows came from that are delivered.
    fn prune_marks(&mut self) {
        for (which, source) in [(0, Source::Ordered), (1, Source::Late)] {
            let first = first_number(&self.shards, source);
            let marks = &mut self.log_marks[which];
            prune(marks, first);
        }
        let first = first_number(&self.shards, Source::Store);
        prune(&mut self.store_marks, first);
    }

    fn take_metadata<'m>(&mut self, rows: impl Iterator<Item = crate::wal::MetadataRecord<'m>>) {
        for row in rows {
            let (help, unit) =
                (self.series.symbols.intern(row.help), self.series.symbols.intern(row.unit));
            if let Some(at) = self.series.by_ref(row.series_ref)
                && let Some(series) = self.series.get_mut(at)
            {
                series.metadata = Some(Metadata { kind: row.kind, help, unit });
            }
            let is_known = self.families.contains_key(row.family);
            if !row.family.is_empty() && (is_known || self.families.len() < FAMILIES_MAX) {
                let said = (row.kind, row.help.to_owned(), row.unit.to_owned());
                self.families.insert(row.family.to_owned(), said);
            }
        }
    }

    /// Metadata of families from the one behind `after` on, by name, as a 1.0 request; and the name
    /// of the last. `None` behind the last.
    pub fn metadata_request(&self, after: &str, families_max: usize) -> Option<(Vec<u8>, String)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let mut body = Vec::new();
        let mut last = None;
        let families = self.families.range::<str, _>((Excluded(after), Unbounded));
        for (family, (kind, help, unit)) in families.take(families_max.max(1)) {
            put_family_metadata(&mut body, *kind, family, help, unit);
            last = Some(family.clone());
        }
        Some((body, last?))
    }

    /// Series known now.
    pub fn series_count(&self) -> usize {
        self.series.len()
    }
}

fn first_number(shards: &[Shard], source: Source) -> Option<u64> {
    shards.iter().filter_map(|shard| shard.first_of(source)).map(Row::number).min()
}

/// Forgets all marks before the one that a row lies in; all if there is no row.
fn prune<P>(marks: &mut VecDeque<Mark<P>>, first: Option<u64>) {
    let Some(first) = first else { return marks.clear() };
    let after = marks.partition_point(|mark| mark.first_number <= first);
    marks.drain(..after.saturating_sub(1));
}

/// Reads one record.
struct RecordReader<'f> {
    forwarder: &'f mut Forwarder,
    which: usize,
    /// Of the next row.
    place: Place,
    fed: &'f mut Fed,
}

impl RecordReader<'_> {
    fn read(&mut self, record: &[u8]) {
        let read = match decode(record) {
            Ok(Record::Series(series)) => self.read_series(series),
            Ok(Record::Samples(rows)) => rows.each(|series_ref, sample| {
                self.row(series_ref, sample.timestamp_ms, sample.value, None);
            }),
            Ok(Record::Columns(record)) => {
                let mut columns = std::mem::take(&mut self.forwarder.columns);
                match columns.read(&record, self.place.segment) {
                    Ok(rows) => {
                        for (series_ref, sample) in rows {
                            self.row(*series_ref, sample.timestamp_ms, sample.value, None);
                        }
                    }
                    // What the record before it held is lost to replay, too.
                    Err(_) => self.fed.unknown += 1,
                }
                self.forwarder.columns = columns;
                Ok(())
            }
            Ok(Record::SamplesV2(rows)) => each(rows, |(series_ref, sample)| {
                self.row(series_ref, sample.timestamp_ms, sample.value, None);
            }),
            Ok(Record::Histograms(rows)) => each(rows, |row| {
                self.row(row.series_ref, row.timestamp_ms, 0.0, Some(row.histogram.into()));
            }),
            Ok(Record::FloatHistograms(rows)) => each(rows, |row| {
                self.row(row.series_ref, row.timestamp_ms, 0.0, Some(row.histogram.into()));
            }),
            Ok(Record::Exemplars(rows)) => each(rows, |row| {
                let labels = row.labels.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
                let (value, timestamp_ms) = (row.value, row.timestamp_ms);
                self.exemplar(row.series_ref, RowExemplar { labels, value, timestamp_ms });
            }),
            Ok(Record::Metadata(rows)) => {
                self.forwarder.take_metadata(rows.flatten());
                Ok(())
            }
            Ok(
                Record::Tombstones(_)
                | Record::MmapMarkers(_)
                | Record::Settled(_)
                | Record::Unknown(_),
            ) => Ok(()),
            Err(error) => Err(error),
        };
        if read.is_err() {
            self.fed.unknown += 1;
        }
    }

    fn read_series(&mut self, series: crate::wal::SeriesRecords<'_>) -> Result<(), RecordError> {
        for series in series {
            let series = series?;
            let segment = self.place.segment;
            // What does not make a label set was never stored.
            let _ = self.forwarder.series.note(segment, series.series_ref, &series.labels);
        }
        Ok(())
    }

    #[inline]
    fn row(&mut self, series_ref: u64, time_ms: i64, value: f64, histogram: Option<Value>) {
        let place = self.place;
        self.place.row += 1;
        let number = self.forwarder.numbers[self.which] + u64::from(place.row);
        let Forwarder { series, shards, settings, gaps, extras, is_detached, has_queued, .. } =
            &mut *self.forwarder;
        let at = series.by_ref(series_ref);
        let Some((at, series)) = at.and_then(|at| Some((at, series.get_mut(at)?))) else {
            self.fed.unknown += 1;
            return;
        };
        let shard_at = (series.hash % shards.len().max(1) as u64) as usize;
        let Some(shard) = shards.get_mut(shard_at) else { return };
        if shard.resume.get(self.which).is_some_and(|resume| place < *resume) {
            return;
        }
        if histogram.is_some() && !settings.histograms {
            return;
        }
        if series.labels.is_empty() {
            self.fed.dropped += 1;
            return;
        }
        let source = if self.which == 0 { Source::Ordered } else { Source::Late };
        if source == Source::Late && gaps.iter().any(|gap| gap.gives(series.hash, time_ms, place)) {
            return;
        }
        self.fed.newest_ms = self.fed.newest_ms.max(time_ms);
        if *is_detached {
            let Some(gap) = gaps.back_mut() else { return };
            match source {
                Source::Late if !gap.add_late(series.hash, time_ms) => {
                    self.fed.no_room += 1;
                    return;
                }
                Source::Late => {}
                _ => gap.add_ordered(series.hash, time_ms),
            }
            self.fed.rows += 1;
            self.fed.in_gap += 1;
            return;
        }
        let mut row = Row::new(source, number, time_ms, at);
        row.value = value;
        if histogram.is_some()
            && let Some(extra) = extras.of(&mut row)
        {
            extra.histogram = histogram;
        }
        series.queued += 1;
        series.newest_ordinal = shard.next_ordinal();
        shard.push(row);
        *has_queued |= source == Source::Ordered;
        self.fed.rows += 1;
    }

    /// Sends an exemplar along with the newest row of its series, which stands right before it.
    fn exemplar(&mut self, series_ref: u64, exemplar: RowExemplar) {
        let Forwarder { series, shards, settings, extras, is_detached, .. } = &mut *self.forwarder;
        if !settings.exemplars || *is_detached {
            return;
        }
        let at = series.by_ref(series_ref);
        let Some((at, series)) = at.and_then(|at| Some((at, series.get(at)?))) else { return };
        let shards_len = shards.len().max(1) as u64;
        let shard = shards.get_mut((series.hash % shards_len) as usize);
        let row = shard.and_then(|shard| shard.find(series.newest_ordinal));
        let Some(row) = row.filter(|row| row.series == at) else {
            self.fed.exemplars_dropped += 1;
            return;
        };
        if let Some(extra) = extras.of(row) {
            extra.exemplars.push(exemplar);
        }
    }
}

/// Hands over the rows of a record up to where it does not decode.
fn each<R>(
    rows: impl Iterator<Item = Result<R, RecordError>>,
    mut take: impl FnMut(R),
) -> Result<(), RecordError> {
    for row in rows {
        take(row?);
    }
    Ok(())
}

//! One series of the head: its labels and its chunks, sealed ones and the one being filled.

mod deletion;
mod disjoint_chunks;
pub(super) mod out_of_order_samples;
mod state;

use super::cursor::Visibility;
use super::label_names::SeriesLabels;
use super::slab::SlabIndex;
use crate::chunk::{Chunk, ChunkError, Encoding, SAMPLES_PER_CHUNK, ValueAppender, without};
use crate::codec::hash_word;
use crate::model::{TimeRange, Value};
use out_of_order_samples::{Arrival, OutOfOrderSamples, value_in};

/// Place of a series in the head, reused after the series is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// Returns the place after this one.
    #[inline]
    pub fn next(self) -> Option<Slot> {
        self.0.checked_add(1).map(Slot)
    }
}

impl SlabIndex for Slot {
    fn of(number: u32) -> Slot {
        Slot(number)
    }

    fn number(self) -> u32 {
        self.0
    }
}

/// Marks that a series has no row in the running batch.
pub(super) const NO_ROW: u32 = u32::MAX;

/// Half of a hash of labels, enough to find a series, as labels are compared anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeriesKey(u32);

impl SeriesKey {
    #[inline]
    pub fn of(hash: u64) -> SeriesKey {
        SeriesKey((hash >> 32) as u32)
    }

    /// Returns a hash for the table of series, well mixed in its highest and lowest bits.
    #[inline]
    pub fn table_hash(self) -> u64 {
        hash_word(0, u64::from(self.0))
    }
}

/// A series with recent samples.
pub struct Series {
    /// Number by which the log refers to the series; never used for another series.
    pub(super) series_ref: u64,
    pub(super) key: SeriesKey,
    pub(super) labels: SeriesLabels,
    /// Latest row of the running batch for this series, or [`NO_ROW`].
    pub(super) pending_row: u32,
    /// Full chunks, in time order.
    sealed: Vec<Chunk>,
    open: Option<Box<OpenChunk>>,
    /// Time of the newest in-order value, even if a truncation dropped the value, or `i64::MIN`.
    /// While a chunk is open, this is the time of its last value.
    newest_ms: i64,
    out_of_order: Option<Box<OutOfOrderSamples>>,
}

struct OpenChunk {
    appender: ValueAppender,
    /// First millisecond of the next block: no chunk spans two blocks, so that a block is cut
    /// without decoding chunks.
    block_end_ms: i64,
}

impl Series {
    pub(super) fn new(series_ref: u64, key: SeriesKey, labels: SeriesLabels) -> Series {
        Series {
            series_ref,
            key,
            labels,
            pending_row: NO_ROW,
            sealed: Vec::new(),
            open: None,
            newest_ms: i64::MIN,
            out_of_order: None,
        }
    }

    /// Returns the time of the newest in-order value.
    #[inline]
    pub(super) fn newest_ms(&self) -> Option<i64> {
        Some(self.newest_ms).filter(|newest_ms| *newest_ms != i64::MIN)
    }

    /// Returns the encoding of the chunk being filled, if any.
    pub(super) fn open_encoding(&self) -> Option<Encoding> {
        self.open.as_ref().map(|open| open.appender.encoding())
    }

    /// Adds a value newer than all in-order values; returns whether the value began a new chunk.
    pub(super) fn append(
        &mut self,
        timestamp_ms: i64,
        value: &Value,
        block_duration_ms: i64,
    ) -> bool {
        self.newest_ms = timestamp_ms;
        if let Some(open) = &mut self.open
            && !open.appender.is_full()
            && timestamp_ms < open.block_end_ms
        {
            // Within a block a histogram needs a new chunk after a reset or for another layout.
            let Some(next) = open.appender.append(timestamp_ms, value) else { return false };
            let full = std::mem::replace(&mut open.appender, next);
            self.sealed.extend(full.to_chunk());
            return true;
        }
        self.begin_chunk(timestamp_ms, value, block_duration_ms);
        true
    }

    /// Like [`Series::append`], but faster, for a float: nearly all values are floats.
    #[inline]
    pub(super) fn append_float(
        &mut self,
        timestamp_ms: i64,
        value: f64,
        block_duration_ms: i64,
    ) -> bool {
        if let Some(open) = &mut self.open
            && timestamp_ms < open.block_end_ms
            && let Some(floats) = open.appender.open_floats()
        {
            self.newest_ms = timestamp_ms;
            floats.append(timestamp_ms, value);
            return false;
        }
        self.append(timestamp_ms, &Value::Float(value), block_duration_ms)
    }

    /// Adds floats to the open chunk up to the first that is not newer than the one before it, or
    /// does not fit into the chunk; returns their number.
    #[inline]
    pub(super) fn append_floats(&mut self, rows: &[(i64, f64)]) -> usize {
        let Some(open) = &mut self.open else { return 0 };
        let ValueAppender::Float(xor) = &mut open.appender else { return 0 };
        // A full chunk ends the run; the caller appends the next row, which begins a chunk.
        let room = SAMPLES_PER_CHUNK.saturating_sub(usize::from(xor.count()));
        let (mut newest_ms, block_end_ms) = (self.newest_ms, open.block_end_ms);
        let mut fitting = 0;
        for (timestamp_ms, _) in &rows[..rows.len().min(room)] {
            if *timestamp_ms <= newest_ms || *timestamp_ms >= block_end_ms {
                // Such a row needs the caller's checks, or a chunk of the next block.
                break;
            }
            newest_ms = *timestamp_ms;
            fitting += 1;
        }
        xor.append_all(&rows[..fitting]);
        self.newest_ms = newest_ms;
        fitting
    }

    fn begin_chunk(&mut self, timestamp_ms: i64, value: &Value, block_duration_ms: i64) {
        // The full chunk is sealed last: its last histogram decides the header of the new chunk.
        let full = self.open.take();
        let before = full.as_ref().map(|open| &open.appender);
        let appender = ValueAppender::new(timestamp_ms, value, before);
        let block_end_ms = block_end(timestamp_ms, block_duration_ms);
        self.open = Some(Box::new(OpenChunk { appender, block_end_ms }));
        self.sealed.extend(full.and_then(|open| open.appender.to_chunk()));
    }

    /// Adds a value that is not newer than its series, or is in the range of a block.
    pub(super) fn append_out_of_order(
        &mut self,
        timestamp_ms: i64,
        value: Value,
        arrival: Arrival<'_>,
    ) {
        self.out_of_order.get_or_insert_default().insert(timestamp_ms, value, arrival);
    }

    /// Adds several out-of-order values, ascending by time.
    pub(super) fn append_all_out_of_order(
        &mut self,
        samples: Vec<(i64, Value)>,
        arrival: Arrival<'_>,
    ) {
        self.out_of_order.get_or_insert_default().insert_all(samples, arrival);
    }

    /// Returns the value stored at exactly this time, if any.
    pub(super) fn value_at(&self, timestamp_ms: i64) -> Result<Option<Value>, ChunkError> {
        // Sealed chunks are disjoint and ascend, so only one of them can hold the time.
        let at = self.sealed.partition_point(|chunk| chunk.max_time_ms < timestamp_ms);
        let in_order = match (self.sealed.get(at), &self.open) {
            (Some(chunk), _) => value_in(chunk, timestamp_ms)?,
            (None, Some(open)) => open.appender.value_at(timestamp_ms)?,
            (None, None) => None,
        };
        match (in_order, &self.out_of_order) {
            (None, Some(out_of_order)) => out_of_order.value_at(timestamp_ms),
            (in_order, _) => Ok(in_order),
        }
    }

    /// Returns whether an out-of-order sample may be held at this time or a later one.
    #[inline]
    pub(super) fn out_of_order_may_reach(&self, timestamp_ms: i64) -> bool {
        self.out_of_order.as_ref().is_some_and(|out_of_order| out_of_order.may_reach(timestamp_ms))
    }

    /// Returns whether out-of-order samples are held, so that [`Series::chunks`] may overlap.
    pub(super) fn has_out_of_order(&self) -> bool {
        self.out_of_order.is_some()
    }

    /// Returns the chunks that overlap the range, without samples newer than the cursor: in-order
    /// chunks in time order, then out-of-order chunks, which may overlap any other. Of several
    /// samples at one time, the first listed is valid. Samples before the range may remain.
    pub(super) fn chunks(
        &self,
        range: TimeRange,
        seen: Visibility,
    ) -> Result<Vec<Chunk>, ChunkError> {
        let until_ms = range.end_ms.min(seen.newest_ms);
        let from = self.sealed.partition_point(|chunk| chunk.max_time_ms < range.start_ms);
        let sealed = self.sealed[from..].iter().take_while(|c| c.min_time_ms <= until_ms);
        let mut chunks: Vec<Chunk> = sealed.cloned().collect();
        if let Some(open) = &self.open
            && self.newest_ms >= range.start_ms
        {
            let chunk = open.appender.to_chunk();
            chunks.extend(chunk.filter(|chunk| chunk.min_time_ms <= until_ms));
        }
        // Chunks that began later are left out above, so only the last one can hold newer samples.
        if let Some(grown) = chunks.pop_if(|last| last.max_time_ms > seen.newest_ms) {
            let start_ms = seen.newest_ms.saturating_add(1);
            chunks.extend(without(&grown, &[TimeRange { start_ms, end_ms: i64::MAX }])?);
        }
        chunks.extend(
            self.out_of_order
                .iter()
                .flat_map(|out_of_order| out_of_order.chunks(range, seen.epoch)),
        );
        Ok(chunks)
    }

    /// Returns whether the series has chunks that overlap the range.
    pub(super) fn touches(&self, range: TimeRange) -> bool {
        let from = self.sealed.partition_point(|chunk| chunk.max_time_ms < range.start_ms);
        let sealed = self.sealed.get(from).is_some_and(|c| c.min_time_ms <= range.end_ms);
        let open = || {
            let first_ms = self.open.as_ref().and_then(|open| open.appender.first_timestamp_ms());
            first_ms.is_some_and(|ms| ms <= range.end_ms) && self.newest_ms >= range.start_ms
        };
        sealed
            || open()
            || self.out_of_order.as_ref().is_some_and(|out_of_order| out_of_order.touches(range))
    }

    /// Drops samples before a time; of out-of-order samples, only those of generations before
    /// `generation`. Returns the number of in-order chunks dropped.
    pub(super) fn truncate(
        &mut self,
        before_ms: i64,
        generation: u64,
    ) -> Result<usize, ChunkError> {
        if let Some(out_of_order) = &mut self.out_of_order {
            out_of_order.truncate(before_ms, generation)?;
            if out_of_order.min_time_ms().is_none() {
                self.out_of_order = None;
            }
        }
        let gone = self.sealed.partition_point(|chunk| chunk.max_time_ms < before_ms);
        self.sealed.drain(..gone);
        if self.sealed.is_empty() {
            // A series stays after a cut, so its empty list should take no memory.
            self.sealed.shrink_to_fit();
        }
        let open_is_old = self.open.is_some() && self.newest_ms < before_ms;
        if open_is_old {
            self.open = None;
        }
        // Chunks end with their block, so only a cut within a block has to divide a chunk.
        if self.min_time_ms().is_some_and(|min_ms| min_ms < before_ms)
            && let Some(end_ms) = before_ms.checked_sub(1)
        {
            self.delete_in_order(TimeRange { start_ms: i64::MIN, end_ms })?;
        }
        Ok(gone + usize::from(open_is_old))
    }

    pub(super) fn out_of_order_min_time_ms(&self) -> Option<i64> {
        self.out_of_order.as_ref()?.min_time_ms()
    }

    pub(super) fn min_time_ms(&self) -> Option<i64> {
        let sealed = self.sealed.first().map(|chunk| chunk.min_time_ms);
        sealed.or_else(|| self.open.as_ref()?.appender.first_timestamp_ms())
    }

    /// Number of in-order chunks, the open one included.
    pub(super) fn chunk_count(&self) -> usize {
        self.sealed.len() + usize::from(self.open.is_some())
    }
}

/// Returns the first millisecond after the block that a time belongs to.
pub(super) fn block_end(timestamp_ms: i64, block_duration_ms: i64) -> i64 {
    block_start(timestamp_ms, block_duration_ms).saturating_add(block_duration_ms)
}

/// Returns the first millisecond of a time's block. Blocks are aligned to the epoch.
pub(super) fn block_start(timestamp_ms: i64, block_duration_ms: i64) -> i64 {
    timestamp_ms.saturating_sub(timestamp_ms.rem_euclid(block_duration_ms))
}

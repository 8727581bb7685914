//! One series of the head: its labels and its chunks, sealed ones and the one being filled.

use super::symbols::SymbolId;
use crate::chunk::{Chunk, ChunkError, SAMPLES_PER_CHUNK, XorAppender, XorIter};
use crate::model::{Sample, TimeRange};

/// Place of a series in the head. Given to another series once this one is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub(super) u32);

/// Marks that no row of the running batch belongs to a series.
pub(super) const NO_ROW: u32 = u32::MAX;

/// A series with recent samples.
pub struct Series {
    /// The number by which the log knows it; never used again.
    pub(super) series_ref: u64,
    /// Hash of its labels.
    pub(super) hash: u64,
    /// (name, value) by ascending name.
    pub(super) labels: Box<[(SymbolId, SymbolId)]>,
    /// Latest row of the running batch that is meant for this series, or [`NO_ROW`].
    pub(super) pending_row: u32,
    /// Full chunks, in time order.
    sealed: Vec<Chunk>,
    open: Option<Box<OpenChunk>>,
    /// The newest sample ever appended; while a chunk is open, its last one.
    newest: Option<Sample>,
}

struct OpenChunk {
    appender: XorAppender,
    min_time_ms: i64,
    /// First millisecond of the next block: no chunk reaches across, so that a block is cut
    /// without taking chunks apart.
    block_end_ms: i64,
}

impl Series {
    pub(super) fn new(series_ref: u64, hash: u64, labels: Box<[(SymbolId, SymbolId)]>) -> Series {
        let (sealed, open, newest) = (Vec::new(), None, None);
        Series { series_ref, hash, labels, pending_row: NO_ROW, sealed, open, newest }
    }

    /// The newest sample.
    pub(super) fn newest(&self) -> Option<Sample> {
        self.newest
    }

    /// Adds a sample newer than all before; gives whether that began a chunk.
    pub(super) fn append(&mut self, sample: Sample, block_duration_ms: i64) -> bool {
        self.newest = Some(sample);
        let Sample { timestamp_ms, value } = sample;
        if let Some(open) = &mut self.open
            && usize::from(open.appender.count()) < SAMPLES_PER_CHUNK
            && timestamp_ms < open.block_end_ms
        {
            open.appender.append(timestamp_ms, value);
            return false;
        }
        self.seal();
        let mut appender = XorAppender::new();
        appender.append(timestamp_ms, value);
        let block_end_ms = block_end(timestamp_ms, block_duration_ms);
        self.open = Some(Box::new(OpenChunk { appender, min_time_ms: timestamp_ms, block_end_ms }));
        true
    }

    fn seal(&mut self) {
        if let Some(open) = self.open.take() {
            self.sealed.extend(open.appender.to_chunk());
        }
    }

    /// The value stored at exactly this time, if there is one.
    pub(super) fn value_at(&self, timestamp_ms: i64) -> Result<Option<f64>, ChunkError> {
        let find = |data: &[u8]| -> Result<Option<f64>, ChunkError> {
            for sample in XorIter::new(data)? {
                let sample = sample?;
                if sample.timestamp_ms >= timestamp_ms {
                    return Ok((sample.timestamp_ms == timestamp_ms).then_some(sample.value));
                }
            }
            Ok(None)
        };
        if let Some(open) = &self.open
            && timestamp_ms >= open.min_time_ms
        {
            return find(open.appender.data());
        }
        let at = self.sealed.partition_point(|chunk| chunk.max_time_ms < timestamp_ms);
        match self.sealed.get(at) {
            Some(chunk) if chunk.min_time_ms <= timestamp_ms => find(&chunk.data),
            _ => Ok(None),
        }
    }

    /// Chunks that share some time with the range, whole, in time order.
    pub(super) fn chunks(&self, range: TimeRange) -> Vec<Chunk> {
        let from = self.sealed.partition_point(|chunk| chunk.max_time_ms < range.start_ms);
        let sealed = self.sealed[from..].iter().take_while(|c| c.min_time_ms <= range.end_ms);
        let mut chunks: Vec<Chunk> = sealed.cloned().collect();
        if let (Some(open), Some(newest)) = (&self.open, self.newest) {
            let span = TimeRange { start_ms: open.min_time_ms, end_ms: newest.timestamp_ms };
            if span.overlaps(&range) {
                chunks.extend(open.appender.to_chunk());
            }
        }
        chunks
    }

    /// Drops chunks that end before this time; gives how many.
    pub(super) fn forget(&mut self, before_ms: i64) -> usize {
        let gone = self.sealed.partition_point(|chunk| chunk.max_time_ms < before_ms);
        self.sealed.drain(..gone);
        if self.sealed.is_empty() {
            self.sealed.shrink_to_fit();
        }
        let is_old = |newest: Sample| newest.timestamp_ms < before_ms;
        let open_is_old = self.open.is_some() && self.newest.is_some_and(is_old);
        if open_is_old {
            self.open = None;
        }
        gone + usize::from(open_is_old)
    }

    /// Time of the oldest sample that is still held.
    pub(super) fn min_time_ms(&self) -> Option<i64> {
        let sealed = self.sealed.first().map(|chunk| chunk.min_time_ms);
        sealed.or_else(|| self.open.as_ref().map(|open| open.min_time_ms))
    }

    /// How many chunks are held.
    pub(super) fn chunk_count(&self) -> usize {
        self.sealed.len() + usize::from(self.open.is_some())
    }
}

/// First millisecond after the block that a time belongs to.
pub(super) fn block_end(timestamp_ms: i64, block_duration_ms: i64) -> i64 {
    block_start(timestamp_ms, block_duration_ms).saturating_add(block_duration_ms)
}

/// First millisecond of the block that a time belongs to. Blocks are aligned to the epoch.
pub(super) fn block_start(timestamp_ms: i64, block_duration_ms: i64) -> i64 {
    timestamp_ms.saturating_sub(timestamp_ms.rem_euclid(block_duration_ms))
}

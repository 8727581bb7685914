//! Samples of one series that came out of order: older than its newest, or than what blocks already
//! hold.
//!
//! They are kept apart from the in-order chunks, so that in-order appends stay cheap, and merged
//! with them when read. Parts may overlap in time; where two hold the same time, the later part
//! has the word. That happens only after a restart: the log still has what was cut and dropped,
//! and what was written after that.
//!
//! A cut reads out-of-order samples while more of them arrive. Each part therefore knows its
//! generation: the number of cuts that were planned when its last sample came. Truncating a cut's
//! range drops only parts of earlier generations; newer parts wait for the next cut of that range.
//!
//! In the same way each part knows the epoch of its samples, so that a cursor sees those only that
//! were there when it was opened.

use crate::chunk::{Chunk, ChunkError, SAMPLES_PER_CHUNK, encode, values, without};
use crate::model::{TimeRange, Value};
use std::collections::BTreeMap;

/// When an out-of-order sample came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// How many cuts were planned before.
    pub generation: u64,
    /// How many cursors were opened before.
    pub epoch: u64,
    /// Whether some of these cursors are open, and must not see the sample.
    pub is_watched: bool,
}

/// Out-of-order samples of one series.
#[derive(Default)]
pub struct OutOfOrderSamples {
    /// By time. Sealed when full.
    open: Vec<(i64, Value)>,
    open_generation: u64,
    open_epoch: u64,
    sealed: Vec<OutOfOrderChunk>,
    /// Nothing is newer; it may be that nothing is that new any more.
    newest_ms: i64,
}

struct OutOfOrderChunk {
    chunk: Chunk,
    generation: u64,
    epoch: u64,
}

impl OutOfOrderSamples {
    /// Adds a value, which from now on is the one of its time.
    pub fn insert(&mut self, timestamp_ms: i64, value: Value, arrival: Arrival) {
        let is_seen = arrival.is_watched && self.open_epoch < arrival.epoch;
        if self.open.len() >= SAMPLES_PER_CHUNK || (is_seen && !self.open.is_empty()) {
            self.seal();
        }
        match self.open.binary_search_by_key(&timestamp_ms, |(held_ms, _)| *held_ms) {
            Ok(at) => self.open[at].1 = value,
            Err(at) => self.open.insert(at, (timestamp_ms, value)),
        }
        self.open_generation = arrival.generation;
        self.open_epoch = arrival.epoch;
        self.newest_ms = self.newest_ms.max(timestamp_ms);
    }

    /// Whether there may be a sample at this time, or a newer one.
    #[inline]
    pub fn may_reach(&self, timestamp_ms: i64) -> bool {
        timestamp_ms <= self.newest_ms
    }

    fn seal(&mut self) {
        let (generation, epoch) = (self.open_generation, self.open_epoch);
        let chunks = encode(self.open.drain(..)).into_iter();
        self.sealed.extend(chunks.map(|chunk| OutOfOrderChunk { chunk, generation, epoch }));
    }

    /// The value held at exactly this time, if there is one.
    pub fn value_at(&self, timestamp_ms: i64) -> Result<Option<Value>, ChunkError> {
        if let Ok(at) = self.open.binary_search_by_key(&timestamp_ms, |(held_ms, _)| *held_ms) {
            return Ok(Some(self.open[at].1.clone()));
        }
        for OutOfOrderChunk { chunk, .. } in self.sealed.iter().rev() {
            if chunk.min_time_ms <= timestamp_ms
                && timestamp_ms <= chunk.max_time_ms
                && let Some(value) = value_in(chunk, timestamp_ms)?
            {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Chunks that share some time with the range, of parts from before an epoch, the latest part
    /// first; they may overlap.
    pub fn chunks(&self, range: TimeRange, before: u64) -> impl Iterator<Item = Chunk> + '_ {
        let is_seen = move |out_of_order: &&OutOfOrderChunk| out_of_order.epoch < before;
        let sealed =
            self.sealed.iter().rev().filter(is_seen).map(|out_of_order| out_of_order.chunk.clone());
        let open = if self.open_epoch < before { self.open.as_slice() } else { &[] };
        encode(open.iter().cloned()).into_iter().chain(sealed).filter(move |chunk| {
            let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
            span.overlaps(&range)
        })
    }

    /// All chunks, the oldest part first. [`OutOfOrderSamples::from_parts`] makes the same samples
    /// of them, of the first generation.
    pub fn parts(&self) -> Vec<Chunk> {
        let sealed = self.sealed.iter().map(|out_of_order| out_of_order.chunk.clone());
        sealed.chain(encode(self.open.iter().cloned())).collect()
    }

    /// Samples of these chunks; of the same time, what is listed last counts.
    pub fn from_parts(parts: Vec<Chunk>) -> OutOfOrderSamples {
        let newest_ms = parts.iter().map(|chunk| chunk.max_time_ms).max().unwrap_or(0);
        let out_of_order = |chunk| OutOfOrderChunk { chunk, generation: 0, epoch: 0 };
        let sealed = parts.into_iter().map(out_of_order).collect();
        OutOfOrderSamples { sealed, newest_ms, ..OutOfOrderSamples::default() }
    }

    /// Whether [`OutOfOrderSamples::chunks`] returns any (where kinds of values alternate, it may
    /// not).
    pub fn touches(&self, range: TimeRange) -> bool {
        let ends = |held: &[(i64, Value)]| {
            let ((start_ms, _), (end_ms, _)) = (held.first()?, held.last()?);
            Some(TimeRange { start_ms: *start_ms, end_ms: *end_ms })
        };
        let sealed = self.sealed.iter().map(|OutOfOrderChunk { chunk, .. }| TimeRange {
            start_ms: chunk.min_time_ms,
            end_ms: chunk.max_time_ms,
        });
        sealed.chain(ends(&self.open)).any(|span| span.overlaps(&range))
    }

    /// Drops samples before a time from parts that are older than a generation.
    pub fn truncate(&mut self, before_ms: i64, generation: u64) -> Result<(), ChunkError> {
        if self.open_generation < generation {
            self.open.retain(|(held_ms, _)| *held_ms >= before_ms);
        }
        let mut kept = Vec::new();
        for out_of_order in self.sealed.drain(..) {
            if out_of_order.generation >= generation || out_of_order.chunk.min_time_ms >= before_ms
            {
                kept.push(out_of_order);
            } else if out_of_order.chunk.max_time_ms >= before_ms {
                let mut held = values(&out_of_order.chunk)?.collect::<Result<Vec<_>, _>>()?;
                held.retain(|(held_ms, _)| *held_ms >= before_ms);
                let chunks = encode(held.into_iter()).into_iter();
                kept.extend(chunks.map(|chunk| OutOfOrderChunk { chunk, ..out_of_order }));
            }
        }
        self.sealed = kept;
        Ok(())
    }

    /// Takes the samples of a span of time out.
    pub fn delete(&mut self, range: TimeRange) -> Result<(), ChunkError> {
        self.open.retain(|(held_ms, _)| !range.contains(*held_ms));
        let mut kept = Vec::with_capacity(self.sealed.len());
        for out_of_order in self.sealed.drain(..) {
            let rest = without(&out_of_order.chunk, &[range])?.into_iter();
            kept.extend(rest.map(|chunk| OutOfOrderChunk { chunk, ..out_of_order }));
        }
        self.sealed = kept;
        Ok(())
    }

    /// All samples by time, of each time the one that counts.
    pub fn all(&self) -> Result<BTreeMap<i64, Value>, ChunkError> {
        let mut all = BTreeMap::new();
        for out_of_order in &self.sealed {
            for next in values(&out_of_order.chunk)? {
                all.extend([next?]);
            }
        }
        all.extend(self.open.iter().cloned());
        Ok(all)
    }

    /// Time of the newest sample.
    pub fn max_time_ms(&self) -> Option<i64> {
        let open = self.open.last().map(|(held_ms, _)| *held_ms);
        self.sealed.iter().map(|out_of_order| out_of_order.chunk.max_time_ms).chain(open).max()
    }

    /// Time of the oldest sample.
    pub fn min_time_ms(&self) -> Option<i64> {
        let open = self.open.first().map(|(held_ms, _)| *held_ms);
        self.sealed.iter().map(|out_of_order| out_of_order.chunk.min_time_ms).chain(open).min()
    }
}

/// The value that a chunk holds at exactly this time.
pub fn value_in(chunk: &Chunk, timestamp_ms: i64) -> Result<Option<Value>, ChunkError> {
    values(chunk)?.at(timestamp_ms)
}

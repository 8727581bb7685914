//! Out-of-order samples of one series: older than its newest sample, or in the range of a block.
//!
//! Out-of-order samples are kept apart from the in-order chunks, so that in-order appends stay
//! cheap; reads merge both. Samples gather in a short list, `open`. A full list is merged into the
//! latest *part*, a set of chunks in which samples are found by time. So a sample costs the same
//! whatever the number and order of samples. Parts may overlap in time; where two parts have a
//! sample at the same time, the later part is valid. This happens only after a restart: the log
//! still has samples that were cut and dropped, and samples written after that.
//!
//! A cut reads out-of-order samples while more of them arrive. Each part therefore has a
//! generation: the number of cuts planned when its last sample arrived. Truncating the range of a
//! cut drops only parts of earlier generations; newer parts wait for the next cut of that range.
//!
//! Each part also has an epoch, the number of cursors opened before its last sample arrived, so
//! that a cursor sees only samples from before it was opened. Parts are joined unless an open
//! cursor sees just one of them, so the open cursors and a few generations bound their number.

use super::disjoint_chunks::DisjointChunks;
use crate::chunk::{Chunk, ChunkError, SAMPLES_PER_CHUNK, encode, values};
use crate::head::cursor::OpenCursors;
use crate::model::{TimeRange, Value};
use std::collections::BTreeMap;

/// Number of parts above which parts of different generations are joined, too. Samples of the older
/// generation are then dropped one cut later than possible.
const PARTS_MAX: usize = 8;

/// Arrival of out-of-order samples, in numbers of cuts and cursors before it.
#[derive(Clone, Copy)]
pub struct Arrival<'a> {
    /// Number of cuts planned before the arrival.
    pub generation: u64,
    /// Number of cursors opened before the arrival.
    pub epoch: u64,
    /// Open cursors, which must not see the samples.
    pub cursors: &'a OpenCursors,
}

/// Out-of-order samples of one series.
#[derive(Default)]
pub struct OutOfOrderSamples {
    open: Vec<(i64, Value)>,
    open_generation: u64,
    open_epoch: u64,
    /// The oldest part comes first.
    parts: Vec<Part>,
    /// Upper bound of all times; the newest sample may have been dropped since.
    newest_ms: i64,
}

#[derive(Default)]
struct Part {
    chunks: DisjointChunks,
    generation: u64,
    epoch: u64,
}

impl OutOfOrderSamples {
    /// Adds a value, which replaces one of the same time.
    pub fn insert(&mut self, timestamp_ms: i64, value: Value, arrival: Arrival<'_>) {
        let is_seen = arrival.cursors.separate(self.open_epoch, arrival.epoch);
        // If a cursor sees the gathered samples but must not see this one, they become a part.
        if self.open.len() >= SAMPLES_PER_CHUNK || (is_seen && !self.open.is_empty()) {
            self.seal(arrival.cursors);
        }
        match self.open.binary_search_by_key(&timestamp_ms, |(held_ms, _)| *held_ms) {
            Ok(at) => self.open[at].1 = value,
            Err(at) => self.open.insert(at, (timestamp_ms, value)),
        }
        self.open_generation = arrival.generation;
        self.open_epoch = arrival.epoch;
        self.newest_ms = self.newest_ms.max(timestamp_ms);
    }

    /// Adds values that ascend by time.
    pub fn insert_all(&mut self, samples: Vec<(i64, Value)>, arrival: Arrival<'_>) {
        if samples.len() < SAMPLES_PER_CHUNK {
            // A merge encodes whole chunks again, so a few samples are gathered first.
            let samples = samples.into_iter();
            return samples.for_each(|(time_ms, value)| self.insert(time_ms, value, arrival));
        }
        self.seal(arrival.cursors);
        let newest_ms = samples.last().map_or(self.newest_ms, |(time_ms, _)| *time_ms);
        self.newest_ms = self.newest_ms.max(newest_ms);
        self.add_part(&samples, arrival.generation, arrival.epoch, arrival.cursors);
    }

    #[inline]
    pub fn may_reach(&self, timestamp_ms: i64) -> bool {
        timestamp_ms <= self.newest_ms
    }

    fn seal(&mut self, cursors: &OpenCursors) {
        let samples = std::mem::take(&mut self.open);
        // Cursors that kept parts separate may be closed by now.
        self.join_parts(cursors);
        self.add_part(&samples, self.open_generation, self.open_epoch, cursors);
    }

    fn add_part(
        &mut self,
        samples: &[(i64, Value)],
        generation: u64,
        epoch: u64,
        cursors: &OpenCursors,
    ) {
        if samples.is_empty() {
            return;
        }
        let has_many = self.parts.len() > PARTS_MAX;
        if let Some(last) = self.parts.last_mut()
            && (last.generation == generation || has_many)
            && !cursors.separate(last.epoch, epoch)
            && last.chunks.merge(samples).is_ok()
        {
            (last.generation, last.epoch) = (generation, epoch);
            return;
        }
        // Damaged chunks cannot be merged; the samples then form a part of their own.
        let mut part = Part { generation, epoch, ..Part::default() };
        if part.chunks.merge(samples).is_ok() {
            self.parts.push(part);
        }
    }

    /// Joins neighbouring parts, unless an open cursor sees only the older of them.
    fn join_parts(&mut self, cursors: &OpenCursors) {
        let mut at = 1;
        while at < self.parts.len() {
            let has_many = self.parts.len() > PARTS_MAX;
            let (before, from) = self.parts.split_at_mut(at);
            if let (Some(older), Some(newer)) = (before.last_mut(), from.first())
                && (older.generation == newer.generation || has_many)
                && !cursors.separate(older.epoch, newer.epoch)
                && older.chunks.absorb(&newer.chunks).is_ok()
            {
                (older.generation, older.epoch) = (newer.generation, newer.epoch);
                self.parts.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Returns the value held at exactly this time, if any.
    pub fn value_at(&self, timestamp_ms: i64) -> Result<Option<Value>, ChunkError> {
        if let Ok(at) = self.open.binary_search_by_key(&timestamp_ms, |(held_ms, _)| *held_ms) {
            return Ok(Some(self.open[at].1.clone()));
        }
        // Of several parts that hold the time, the latest is valid.
        for Part { chunks, .. } in self.parts.iter().rev() {
            if let Some(value) = chunks.value_at(timestamp_ms)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Returns the chunks that overlap the range, from parts of epochs before `before`, the latest
    /// part first. The chunks may overlap each other.
    pub fn chunks(&self, range: TimeRange, before: u64) -> impl Iterator<Item = Chunk> + '_ {
        let parts = self.parts.iter().rev().filter(move |part| part.epoch < before);
        let sealed = parts.flat_map(move |part| part.chunks.within(range)).cloned();
        let open = if self.open_epoch < before { self.open.as_slice() } else { &[] };
        let open = open_chunks(open).filter(move |chunk| {
            let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
            span.overlaps(&range)
        });
        open.chain(sealed)
    }

    /// Returns all chunks, the oldest part first. [`OutOfOrderSamples::from_parts`] restores the
    /// same samples from the chunks, with generation 0.
    pub fn parts(&self) -> Vec<Chunk> {
        let sealed = self.parts.iter().flat_map(|part| part.chunks.iter()).cloned();
        sealed.chain(open_chunks(&self.open)).collect()
    }

    /// Restores samples from chunks; of several samples at one time, the last listed is valid.
    pub fn from_parts(chunks: Vec<Chunk>) -> OutOfOrderSamples {
        let newest_ms = chunks.iter().map(|chunk| chunk.max_time_ms).max().unwrap_or(0);
        let mut parts = vec![Part::default()];
        for chunk in chunks {
            let overlapping = match parts.last_mut() {
                Some(last) => last.chunks.put(chunk),
                None => Some(chunk),
            };
            // A part has disjoint chunks; a later part has precedence, as it had when it was saved.
            if let Some(chunk) = overlapping {
                let mut next = Part::default();
                next.chunks.put(chunk);
                parts.push(next);
            }
        }
        OutOfOrderSamples { parts, newest_ms, ..OutOfOrderSamples::default() }
    }

    /// Returns whether samples may overlap the range. If kinds of values alternate, the result may
    /// be true although [`OutOfOrderSamples::chunks`] returns no chunk.
    pub fn touches(&self, range: TimeRange) -> bool {
        let is_open = || {
            let ((start_ms, _), (end_ms, _)) = (self.open.first()?, self.open.last()?);
            Some(TimeRange { start_ms: *start_ms, end_ms: *end_ms }.overlaps(&range))
        };
        let mut parts = self.parts.iter();
        parts.any(|part| part.chunks.within(range).next().is_some()) || is_open() == Some(true)
    }

    /// Drops samples before a time from parts that are older than a generation.
    pub fn truncate(&mut self, before_ms: i64, generation: u64) -> Result<(), ChunkError> {
        let Some(end_ms) = before_ms.checked_sub(1) else { return Ok(()) };
        let range = TimeRange { start_ms: i64::MIN, end_ms };
        if self.open_generation < generation {
            self.open.retain(|(held_ms, _)| *held_ms >= before_ms);
        }
        let mut old = self.parts.iter_mut().filter(|part| part.generation < generation);
        old.try_for_each(|part| part.chunks.delete(range))?;
        self.parts.retain(|part| !part.chunks.is_empty());
        Ok(())
    }

    /// Removes the samples of a range.
    pub fn delete(&mut self, range: TimeRange) -> Result<(), ChunkError> {
        self.open.retain(|(held_ms, _)| !range.contains(*held_ms));
        self.parts.iter_mut().try_for_each(|part| part.chunks.delete(range))?;
        self.parts.retain(|part| !part.chunks.is_empty());
        Ok(())
    }

    /// Returns all samples by time, for each time only the valid sample.
    pub fn all(&self) -> Result<BTreeMap<i64, Value>, ChunkError> {
        let mut all = BTreeMap::new();
        // Later parts overwrite earlier ones, and gathered samples overwrite both.
        for chunk in self.parts.iter().flat_map(|part| part.chunks.iter()) {
            for next in values(chunk)? {
                all.extend([next?]);
            }
        }
        all.extend(self.open.iter().cloned());
        Ok(all)
    }

    pub fn max_time_ms(&self) -> Option<i64> {
        let open = self.open.last().map(|(held_ms, _)| *held_ms);
        self.parts.iter().filter_map(|part| part.chunks.max_time_ms()).chain(open).max()
    }

    pub fn min_time_ms(&self) -> Option<i64> {
        let open = self.open.first().map(|(held_ms, _)| *held_ms);
        self.parts.iter().filter_map(|part| part.chunks.min_time_ms()).chain(open).min()
    }
}

/// Encodes the gathered samples as chunks, floats and histograms separately, as in parts.
fn open_chunks(open: &[(i64, Value)]) -> impl Iterator<Item = Chunk> {
    let is_float = |value: &Value| matches!(value, Value::Float(_));
    let (floats, others): (Vec<_>, Vec<_>) =
        open.iter().cloned().partition(|(_, value)| is_float(value));
    encode(floats.into_iter()).into_iter().chain(encode(others.into_iter()))
}

/// Returns the value that a chunk holds at exactly this time.
pub fn value_in(chunk: &Chunk, timestamp_ms: i64) -> Result<Option<Value>, ChunkError> {
    values(chunk)?.at(timestamp_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::cursor::OpenCursor;
    use std::rc::Rc;

    /// Every open read once sealed the samples before it, so a lagging sender whose series were
    /// read often got a chunk for each sample.
    #[test]
    fn reads_divide_samples_only_while_they_are_open() -> Result<(), ChunkError> {
        let cursors = Rc::<OpenCursors>::default();
        let mut samples = OutOfOrderSamples::default();
        let mut open = Vec::new();
        for epoch in 0..1000u64 {
            let arrival = Arrival { generation: 0, epoch, cursors: &cursors };
            samples.insert(5000 - epoch as i64, Value::Float(epoch as f64), arrival);
            // It sees what came so far; two others are open still.
            open.push((epoch + 1, OpenCursor::new(&cursors, 0, Some(epoch + 1))));
            if open.len() > 3 {
                open.remove(0);
            }
            for (before, _) in &open {
                let mut count = 0;
                for chunk in samples.chunks(TimeRange::ALL, *before) {
                    count += values(&chunk)?.count() as u64;
                }
                assert_eq!(count, *before);
            }
            assert!(samples.parts.len() <= open.len() + 1, "{} parts", samples.parts.len());
        }
        assert!(samples.parts().len() < 30, "{} chunks", samples.parts().len());
        Ok(())
    }

    #[test]
    fn samples_come_back_from_their_chunks_and_later_ones_count() -> Result<(), ChunkError> {
        let float = |time_ms: i64, value: f64| (time_ms, Value::Float(value));
        let first = encode((0..200).map(|time_ms| float(time_ms, 1.0)));
        let later = encode((100..300).map(|time_ms| float(2 * time_ms, 2.0)));
        let samples = OutOfOrderSamples::from_parts([first, later].concat());
        assert_eq!((samples.min_time_ms(), samples.max_time_ms()), (Some(0), Some(598)));
        let again = OutOfOrderSamples::from_parts(samples.parts());
        for samples in [&samples, &again] {
            assert_eq!(samples.all()?.len(), 200 + 200);
            assert_eq!(samples.value_at(198)?, Some(Value::Float(1.0)));
            assert_eq!(samples.value_at(200)?, Some(Value::Float(2.0)));
            assert_eq!(samples.value_at(201)?, None);
        }
        Ok(())
    }
}

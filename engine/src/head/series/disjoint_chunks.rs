//! Chunks that overlap no others of the same kind in time, so that a binary search finds a sample.
//!
//! Samples arrive in any order, and floats and native histograms may alternate. So each kind of
//! value has its own list of chunks, ascending by time; new samples go into the chunk that they
//! overlap, or into a small neighbour. A chunk that becomes too large is divided evenly, so no
//! order of arrival makes many small chunks, and adding a sample encodes about one chunk.

use super::out_of_order_samples::value_in;
use crate::chunk::without;
use crate::chunk::{Chunk, ChunkError, Encoding, SAMPLES_PER_CHUNK, encode, sample_count, values};
use crate::model::{TimeRange, Value};
use std::ops::Range;

type Samples = Vec<(i64, Value)>;

/// The chunks of one series; each time has one sample.
#[derive(Default)]
pub struct DisjointChunks {
    /// Floats, native histograms with integer counts, and those with float counts.
    kinds: [Vec<Chunk>; 3],
}

impl DisjointChunks {
    /// Returns the chunks of each kind in turn, by time.
    pub fn iter(&self) -> impl Iterator<Item = &Chunk> {
        self.kinds.iter().flatten()
    }

    pub fn is_empty(&self) -> bool {
        self.kinds.iter().all(Vec::is_empty)
    }

    /// Returns the chunks that overlap a range.
    pub fn within(&self, range: TimeRange) -> impl Iterator<Item = &Chunk> {
        self.kinds.iter().flat_map(move |chunks| &chunks[overlapping(chunks, range)])
    }

    pub fn min_time_ms(&self) -> Option<i64> {
        self.kinds.iter().filter_map(|chunks| Some(chunks.first()?.min_time_ms)).min()
    }

    pub fn max_time_ms(&self) -> Option<i64> {
        self.kinds.iter().filter_map(|chunks| Some(chunks.last()?.max_time_ms)).max()
    }

    /// Returns the value at exactly this time, if any.
    pub fn value_at(&self, timestamp_ms: i64) -> Result<Option<Value>, ChunkError> {
        for chunk in self.within(TimeRange { start_ms: timestamp_ms, end_ms: timestamp_ms }) {
            if let Some(value) = value_in(chunk, timestamp_ms)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Adds the chunk, unless it overlaps another of its kind: then returns it.
    pub fn put(&mut self, chunk: Chunk) -> Option<Chunk> {
        let chunks = &mut self.kinds[kind_of(chunk.encoding)];
        let TimeRange { start_ms, end_ms } = span(&chunk);
        let at = overlapping(chunks, span(&chunk));
        if start_ms > end_ms || !at.is_empty() {
            return Some(chunk);
        }
        chunks.insert(at.start, chunk);
        None
    }

    /// Adds samples, ascending by time, which replace samples of the same time. After an error some
    /// may be added, and no other samples are lost.
    pub fn merge(&mut self, samples: &[(i64, Value)]) -> Result<(), ChunkError> {
        let mut by_kind: [Samples; 3] = Default::default();
        for (timestamp_ms, value) in samples {
            by_kind[kind_of_value(value)].push((*timestamp_ms, value.clone()));
        }
        for (kind, samples) in by_kind.iter().enumerate() {
            // A time has one sample of any kind, so a new sample replaces those of other kinds.
            for (other, chunks) in self.kinds.iter_mut().enumerate() {
                if other != kind && !chunks.is_empty() {
                    remove_times(chunks, samples)?;
                }
            }
            merge_kind(&mut self.kinds[kind], samples)?;
        }
        Ok(())
    }

    /// Adds all samples of `newer`, which replace samples of the same time.
    pub fn absorb(&mut self, newer: &DisjointChunks) -> Result<(), ChunkError> {
        for chunks in &newer.kinds {
            let mut samples = Samples::new();
            for chunk in chunks {
                read_into(chunk, &mut samples)?;
            }
            self.merge(&samples)?;
        }
        Ok(())
    }

    /// Removes the samples of a range.
    pub fn delete(&mut self, range: TimeRange) -> Result<(), ChunkError> {
        for chunks in &mut self.kinds {
            let touched = overlapping(chunks, range);
            let mut kept = Vec::new();
            for chunk in &chunks[touched.clone()] {
                kept.extend(without(chunk, &[range])?);
            }
            chunks.splice(touched, kept);
        }
        Ok(())
    }
}

fn kind_of(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Xor | Encoding::Xor2 => 0,
        Encoding::Histogram | Encoding::HistogramSt => 1,
        Encoding::FloatHistogram | Encoding::FloatHistogramSt => 2,
    }
}

fn kind_of_value(value: &Value) -> usize {
    match value {
        Value::Float(_) => 0,
        Value::Histogram(_) => 1,
        Value::FloatHistogram(_) => 2,
    }
}

fn span(chunk: &Chunk) -> TimeRange {
    TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms }
}

/// Returns the indices of the chunks that overlap a range; if none, the index to insert one at.
fn overlapping(chunks: &[Chunk], range: TimeRange) -> Range<usize> {
    let from = chunks.partition_point(|chunk| chunk.max_time_ms < range.start_ms);
    let count = chunks[from..].partition_point(|chunk| chunk.min_time_ms <= range.end_ms);
    from..from + count
}

fn read_into(chunk: &Chunk, samples: &mut Samples) -> Result<(), ChunkError> {
    for next in values(chunk)? {
        let (timestamp_ms, value) = next?;
        // A reset hint refers to the previous sample, which may be another one after the merge.
        samples.push((timestamp_ms, value.without_reset_hint()));
    }
    Ok(())
}

fn is_smaller(chunk: &Chunk, count: usize) -> bool {
    sample_count(chunk).is_ok_and(|held| usize::from(held) < count)
}

/// Adds samples of one kind, in groups that belong to the same chunk.
fn merge_kind(chunks: &mut Vec<Chunk>, mut samples: &[(i64, Value)]) -> Result<(), ChunkError> {
    while let Some((first_ms, _)) = samples.first() {
        let target = target(chunks, *first_ms);
        let end = match chunks.get(target.end) {
            Some(next) => samples.partition_point(|(time_ms, _)| *time_ms < next.min_time_ms),
            None => samples.len(),
        };
        // At least one sample, so that damaged times cannot make the loop endless.
        let (group, rest) = samples.split_at(end.max(1));
        let mut held = Samples::new();
        for chunk in &chunks[target.clone()] {
            read_into(chunk, &mut held)?;
        }
        chunks.splice(target, encode_evenly(merged(held, group)));
        samples = rest;
    }
    Ok(())
}

/// Returns the chunks to merge a sample into: the chunk that contains its time, or a small one
/// before it, and a small one after that. If there are none, the range is that of a new chunk.
fn target(chunks: &[Chunk], time_ms: i64) -> Range<usize> {
    let at = chunks.partition_point(|chunk| chunk.max_time_ms < time_ms);
    let is_small = |at: usize, count| chunks.get(at).is_some_and(|chunk| is_smaller(chunk, count));
    let is_inside = chunks.get(at).is_some_and(|chunk| chunk.min_time_ms <= time_ms);
    // Without filling small chunks, descending times would make a chunk of each sample.
    let mut target = if is_inside {
        at..at + 1
    } else if at > 0 && is_small(at - 1, SAMPLES_PER_CHUNK / 2) {
        at - 1..at
    } else {
        at..at
    };
    if is_small(target.end, SAMPLES_PER_CHUNK / 2) {
        target.end += 1;
    }
    target
}

/// Merges both lists by time; of two samples at the same time, the newer one is kept.
fn merged(held: Samples, newer: &[(i64, Value)]) -> Samples {
    let mut all = Samples::with_capacity(held.len() + newer.len());
    let mut newer = newer.iter().peekable();
    for (time_ms, value) in held {
        while let Some(next) = newer.next_if(|(newer_ms, _)| *newer_ms < time_ms) {
            all.push(next.clone());
        }
        if newer.peek().is_none_or(|(newer_ms, _)| *newer_ms != time_ms) {
            all.push((time_ms, value));
        }
    }
    all.extend(newer.cloned());
    all
}

/// Encodes samples as few chunks of about equal size.
fn encode_evenly(samples: Samples) -> Vec<Chunk> {
    let pieces = samples.len().div_ceil(SAMPLES_PER_CHUNK).max(1);
    // Not 0, on which `slice::chunks` panics.
    let per_chunk = samples.len().div_ceil(pieces).max(1);
    samples.chunks(per_chunk).flat_map(|piece| encode(piece.iter().cloned())).collect()
}

/// Removes from `chunks` the samples at the times of `samples`.
fn remove_times(chunks: &mut Vec<Chunk>, samples: &[(i64, Value)]) -> Result<(), ChunkError> {
    let mut rest = samples;
    while let Some((first_ms, _)) = rest.first() {
        let at = chunks.partition_point(|chunk| chunk.max_time_ms < *first_ms);
        let Some(chunk) = chunks.get(at) else { return Ok(()) };
        let before = rest.partition_point(|(time_ms, _)| *time_ms < chunk.min_time_ms);
        let until = rest.partition_point(|(time_ms, _)| *time_ms <= chunk.max_time_ms);
        let inside = &rest[before..until.max(before)];
        // Each turn consumes a sample, so that damaged times cannot make the loop endless.
        rest = &rest[until.max(before).max(1)..];
        if inside.is_empty() {
            continue;
        }
        let mut taken = Vec::new();
        for next in values(chunk)? {
            let (time_ms, _) = next?;
            if inside.binary_search_by_key(&time_ms, |(inside_ms, _)| *inside_ms).is_ok() {
                taken.push(TimeRange { start_ms: time_ms, end_ms: time_ms });
            }
        }
        // A chunk that loses nothing is not encoded again.
        if !taken.is_empty() {
            let kept = without(chunk, &taken)?;
            chunks.splice(at..at + 1, kept);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Histogram;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn value(kind: usize, number: i64) -> Value {
        match kind {
            0 => Value::Float(number as f64),
            _ => Histogram::stale().into(),
        }
    }

    fn all(chunks: &DisjointChunks) -> BTreeMap<i64, Value> {
        let mut all = Vec::new();
        for chunk in chunks.iter() {
            read_into(chunk, &mut all).expect("own chunks");
        }
        let count = all.len();
        let all: BTreeMap<i64, Value> = all.into_iter().collect();
        assert_eq!(all.len(), count, "a time twice");
        all
    }

    /// Out-of-order samples once lay in chunks by arrival, and each sample was looked for in all of
    /// them: newest first, 1.5 million took a minute. Alternating floats and histograms made a
    /// chunk of each sample.
    #[test]
    fn no_order_of_arrival_makes_many_small_chunks() {
        const COUNT: i64 = 6000;
        let shuffled = |i: i64| i * 2_521 % COUNT;
        let orders: [&dyn Fn(i64) -> i64; 3] = [&|i| i, &|i| COUNT - 1 - i, &shuffled];
        for (number, order) in orders.iter().enumerate() {
            for (kinds, group) in [(1, 1), (1, 120), (2, 1), (2, 120)] {
                let mut chunks = DisjointChunks::default();
                let samples: Samples = (0..COUNT)
                    .map(|i| (order(i), value((order(i) % kinds) as usize, order(i))))
                    .collect();
                for group in samples.chunks(group) {
                    let mut group = group.to_vec();
                    group.sort_by_key(|(time_ms, _)| *time_ms);
                    chunks.merge(&group).expect("own chunks");
                }
                assert_eq!(all(&chunks).len(), COUNT as usize);
                let count = chunks.iter().count();
                let what = format!("order {number}, {kinds} kinds, by {group}: {count} chunks");
                assert!(count <= 2 * kinds as usize + COUNT as usize / 30, "{what}");
            }
        }
    }

    proptest! {
        #[test]
        fn is_a_map_by_time(
            groups in proptest::collection::vec(
                proptest::collection::btree_map(0i64..400, (0usize..2, 0i64..5), 1..150),
                1..12,
            ),
            deleted in (0i64..400, 0i64..60),
        ) {
            let mut chunks = DisjointChunks::default();
            let mut model = BTreeMap::new();
            for group in groups {
                let group: Samples =
                    group.into_iter().map(|(at, (kind, number))| (at, value(kind, number))).collect();
                chunks.merge(&group).expect("own chunks");
                model.extend(group);
            }
            let range = TimeRange { start_ms: deleted.0, end_ms: deleted.0 + deleted.1 };
            chunks.delete(range).expect("own chunks");
            model.retain(|at, _| !range.contains(*at));
            let same = |a: &Value, b: &Value| a.same_observations(b);
            let held = all(&chunks);
            prop_assert!(held.keys().eq(model.keys()));
            prop_assert!(held.values().zip(model.values()).all(|(a, b)| same(a, b)));
            for at in -1..402 {
                let found = chunks.value_at(at).expect("own chunks");
                prop_assert_eq!(found.is_some(), model.contains_key(&at));
            }
            for kind in &chunks.kinds {
                prop_assert!(kind.windows(2).all(|two| two[0].max_time_ms < two[1].min_time_ms));
            }
            prop_assert_eq!(chunks.min_time_ms(), model.keys().next().copied());
            prop_assert_eq!(chunks.max_time_ms(), model.keys().last().copied());
        }
    }
}

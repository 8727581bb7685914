//! Merges sources into one: series in label order, chunks without overlap.

use super::SeriesSource;
use crate::chunk::{Chunk, ChunkError, StartedValue, encode_started, started_values};
use crate::error::{Error, Result};
use crate::model::{Labels, TimeRange};
use crate::wire::ChunkedSeries;
use std::cmp::Ordering;
use tidepool_model::sort;

/// A chunk that can be merged with others.
pub trait Mergeable: Clone + From<Chunk> {
    /// Returns the times of the chunk's first and last sample.
    fn span(&self) -> TimeRange;

    /// Returns the chunk with its bytes, read if need be.
    fn into_chunk(self) -> Result<Chunk>;
}

impl Mergeable for Chunk {
    #[inline]
    fn span(&self) -> TimeRange {
        TimeRange { start_ms: self.min_time_ms, end_ms: self.max_time_ms }
    }

    fn into_chunk(self) -> Result<Chunk> {
        Ok(self)
    }
}

/// Merges sources; of samples at the same time, the one of the source listed first is kept.
pub struct Merge<C = Chunk> {
    sources: Vec<Peeked<C>>,
    /// Numbers of the sources that have the next series; kept to reuse the memory.
    holders: Vec<usize>,
}

struct Peeked<C> {
    source: Box<dyn SeriesSource<C>>,
    next: Option<ChunkedSeries<C>>,
}

impl<C> Merge<C> {
    /// Merges sources, given in the order of their precedence.
    pub fn new(sources: Vec<Box<dyn SeriesSource<C>>>) -> Result<Merge<C>> {
        let peek = |mut source: Box<dyn SeriesSource<C>>| {
            let next = source.next_series()?;
            Ok(Peeked { source, next })
        };
        let sources = sources.into_iter().map(peek).collect::<Result<_>>()?;
        Ok(Merge { sources, holders: Vec::new() })
    }

    fn find_holders(&mut self) {
        let Merge { sources, holders } = self;
        holders.clear();
        let mut first: Option<&Labels> = None;
        for (number, peeked) in sources.iter().enumerate() {
            let Some(ChunkedSeries { labels, .. }) = &peeked.next else { continue };
            // Sources mostly have the same series, and equality is tested faster than order.
            let order = |first: &Labels| match labels == first {
                true => Ordering::Equal,
                false => labels.cmp(first),
            };
            match first.map_or(Ordering::Less, order) {
                Ordering::Greater => {}
                Ordering::Equal => holders.push(number),
                Ordering::Less => {
                    holders.clear();
                    holders.push(number);
                    first = Some(labels);
                }
            }
        }
    }
}

impl<C> Peeked<C> {
    fn take(&mut self) -> Result<Option<ChunkedSeries<C>>> {
        let taken = self.next.take();
        // Only a source that had a series is asked again: the end stays the end.
        if taken.is_some() {
            self.next = self.source.next_series()?;
        }
        Ok(taken)
    }
}

impl<C: Mergeable> SeriesSource<C> for Merge<C> {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries<C>>> {
        self.find_holders();
        let mut merged: Option<ChunkedSeries<C>> = None;
        let mut has_several = false;
        for number in &self.holders {
            let Some(peeked) = self.sources.get_mut(*number) else { continue };
            while let Some(series) = peeked.take()? {
                match &mut merged {
                    None => merged = Some(series),
                    Some(merged) => {
                        merged.chunks.extend(series.chunks);
                        has_several = true;
                    }
                }
                // With external labels, several series of a source may have become equal.
                let is_same = |next: &ChunkedSeries<C>| {
                    merged.as_ref().is_some_and(|merged| merged.labels == next.labels)
                };
                if !peeked.next.as_ref().is_some_and(is_same) {
                    break;
                }
            }
        }
        let Some(ChunkedSeries { labels, chunks }) = merged else { return Ok(None) };
        let chunks = if has_several { merge_chunks(&labels, chunks)? } else { chunks };
        Ok(Some(ChunkedSeries { labels, chunks }))
    }

    fn rewind(&mut self) -> Result<()> {
        for peeked in &mut self.sources {
            peeked.source.rewind()?;
            peeked.next = peeked.source.next_series()?;
        }
        Ok(())
    }

    fn estimate(&mut self) -> Result<usize> {
        // Sources mostly have the same series, so the largest estimate is used, not the sum.
        self.sources
            .iter_mut()
            .map(|peeked| peeked.source.estimate())
            .try_fold(0, |most, estimate| Ok(estimate?.max(most)))
    }
}

/// Brings chunks of one series into time order without overlap. Chunks that overlap no other stay
/// as they are; other chunks are decoded. Of samples at the same time, the one from the chunk that
/// was listed first is kept.
pub fn merge_chunks<C: Mergeable>(labels: &Labels, chunks: Vec<C>) -> Result<Vec<C>> {
    // In the usual case the chunks of sources do not overlap, and the newest source is the first.
    let follows = |a: &C, b: &C| a.span().end_ms < b.span().start_ms;
    let runs: Vec<&[C]> = chunks.chunk_by(follows).collect();
    let is_before = |later: &[C], earlier: &[C]| match (earlier.last(), later.first()) {
        (Some(last), Some(first)) => follows(last, first),
        _ => false,
    };
    if runs.is_sorted_by(|later, earlier| is_before(later, earlier)) {
        return Ok(runs.into_iter().rev().flatten().cloned().collect());
    }
    // The position in the list is the rank that decides between equal times.
    let mut by_time: Vec<(usize, C)> = chunks.into_iter().enumerate().collect();
    sort::sort_by_key(&mut by_time, |(_, chunk)| chunk.span().start_ms);
    if by_time.is_sorted_by(|(_, a), (_, b)| a.span().end_ms < b.span().start_ms) {
        return Ok(by_time.into_iter().map(|(_, chunk)| chunk).collect());
    }
    let mut merged = Vec::with_capacity(by_time.len());
    let mut rest = by_time.as_slice();
    while let Some((_, first)) = rest.first() {
        let mut end_ms = first.span().end_ms;
        let mut count = 1;
        while let Some((_, chunk)) = rest.get(count)
            && chunk.span().start_ms <= end_ms
        {
            end_ms = end_ms.max(chunk.span().end_ms);
            count += 1;
        }
        let (group, later) = rest.split_at(count);
        match group {
            // Kept unread: its bytes may not be needed.
            [(_, alone)] => merged.push(alone.clone()),
            overlapping => merge_overlapping(labels, overlapping, &mut merged)?,
        }
        rest = later;
    }
    Ok(merged)
}

fn merge_overlapping<C: Mergeable>(
    labels: &Labels,
    group: &[(usize, C)],
    merged: &mut Vec<C>,
) -> Result<()> {
    let mut chunks = Vec::with_capacity(group.len());
    for (rank, chunk) in group {
        chunks.push((*rank, chunk.clone().into_chunk()?));
    }
    merged.extend(encode_merged(labels, &chunks)?.into_iter().map(C::from));
    Ok(())
}

/// Encodes overlapping chunks; of samples at the same time, the one of the lowest rank is kept.
fn encode_merged(labels: &Labels, group: &[(usize, Chunk)]) -> Result<Vec<Chunk>> {
    let mut ranked: Vec<(usize, StartedValue)> = Vec::new();
    for (rank, chunk) in group {
        ranked.extend(decoded(labels, chunk)?.into_iter().map(|sample| (*rank, sample)));
    }
    ranked.sort_by_key(|(rank, sample)| (sample.timestamp_ms, *rank));
    // Keeps the first of equal times, which has the lowest rank.
    ranked.dedup_by_key(|(_, sample)| sample.timestamp_ms);
    let mut rank_before = None;
    let samples = ranked.into_iter().map(|(rank, sample)| {
        // A reset hint refers to the previous histogram of the same chunk only.
        let follows = rank_before.replace(rank).is_none_or(|before| before == rank);
        let StartedValue { timestamp_ms, start_ms, value } = sample;
        let value = if follows { value } else { value.without_reset_hint() };
        StartedValue { timestamp_ms, start_ms, value }
    });
    encode_started(samples).map_err(in_series(labels))
}

/// Removes samples outside of a range; chunks that are partly outside are decoded.
pub fn clip_chunks(labels: &Labels, chunks: Vec<Chunk>, range: TimeRange) -> Result<Vec<Chunk>> {
    let mut clipped = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
        if range.covers(&span) {
            clipped.push(chunk);
        } else if range.overlaps(&span) {
            let samples = decoded(labels, &chunk)?.into_iter();
            let inside = samples.filter(|sample| range.contains(sample.timestamp_ms));
            clipped.extend(encode_started(inside).map_err(in_series(labels))?);
        }
    }
    Ok(clipped)
}

/// Decodes the values of a chunk, with times and start timestamps.
pub(super) fn decoded(labels: &Labels, chunk: &Chunk) -> Result<Vec<StartedValue>> {
    started_values(chunk).and_then(Iterator::collect).map_err(in_series(labels))
}

fn in_series(labels: &Labels) -> impl Fn(ChunkError) -> Error + '_ {
    |source| Error::Chunk { series: labels.to_string(), source }
}

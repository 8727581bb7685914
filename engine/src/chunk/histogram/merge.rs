//! Merges the bucket layouts of a chunk and of the sample that is to follow.

use crate::model::histogram::{Count, NativeHistogram, Side, Span, SpanBuilder};

/// Difference between one side of a chunk's layout and the same side of a sample's.
#[derive(Debug)]
pub struct SideMerge {
    pub chunk_lacks: bool,
    pub sample_lacks: bool,
    /// Spans of the buckets of both; `None` if both have the same spans.
    pub union: Option<Box<[Span]>>,
}

impl SideMerge {
    pub const SAME: SideMerge = SideMerge { chunk_lacks: false, sample_lacks: false, union: None };
}

/// Reason why layouts cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// A bucket's count decreased, or a bucket that was not empty is missing.
    CounterReset,
    /// A gap between buckets of the union is too wide for a span.
    TooWide,
}

/// Merges the buckets of a chunk's last sample and of the sample to follow, given as indices and
/// counts. Counts of counters must not decrease; those of gauges may.
pub fn merge_sides<C: Count>(
    chunk: impl Iterator<Item = (i64, C::Bucket)>,
    sample: impl Iterator<Item = (i64, C::Bucket)>,
    is_gauge: bool,
) -> Result<SideMerge, Mismatch> {
    let (mut chunk, mut sample) = (chunk.peekable(), sample.peekable());
    let mut union = SpanBuilder::default();
    let (mut chunk_lacks, mut sample_lacks) = (false, false);
    loop {
        let (before, after) = (chunk.peek().copied(), sample.peek().copied());
        let index = match (before, after) {
            (None, None) => break,
            (Some((i, before)), Some((j, after))) if i == j => {
                if !is_gauge && before > after {
                    return Err(Mismatch::CounterReset);
                }
                chunk.next();
                sample.next();
                i
            }
            (Some((i, before)), after) if after.is_none_or(|(j, _)| i < j) => {
                // A bucket may disappear if it was empty: its count did not decrease.
                if !is_gauge && before != C::Bucket::default() {
                    return Err(Mismatch::CounterReset);
                }
                sample_lacks = true;
                chunk.next();
                i
            }
            (_, Some((j, _))) => {
                chunk_lacks = true;
                sample.next();
                j
            }
            // Unreachable, as the guard above holds whenever the sample is at its end.
            (Some(_), None) => break,
        };
        union.push(index).ok_or(Mismatch::TooWide)?;
    }
    Ok(SideMerge { chunk_lacks, sample_lacks, union: Some(union.finish()) })
}

/// Returns whether no count decreases between two samples with the same buckets.
pub fn goes_on<B: PartialOrd>(
    chunk: impl Iterator<Item = B>,
    mut sample: impl Iterator<Item = B>,
) -> bool {
    // NaN is neither above nor below any number, so it is no reset here.
    !chunk.into_iter().any(|before| sample.next().is_some_and(|after| before > after))
}

/// Returns one side's buckets in the layout of wider spans, with empty buckets added.
pub fn widened<C: Count>(
    histogram: &NativeHistogram<C>,
    side: Side,
    spans: &[Span],
) -> Vec<C::Bucket> {
    let mut counts = histogram.counts(side).peekable();
    let mut before = C::Bucket::default();
    let mut buckets = Vec::new();
    let mut next = 0i64;
    for span in spans {
        let start = next.saturating_add(i64::from(span.offset));
        next = start.saturating_add(i64::from(span.length));
        for index in start..next {
            let count = counts.next_if(|(i, _)| *i == index);
            let count = count.map_or(C::Bucket::default(), |(_, count)| count);
            // Integer buckets are differences to the one before, so an added one changes the next.
            buckets.push(C::kept(before, count));
            before = count;
        }
    }
    buckets
}

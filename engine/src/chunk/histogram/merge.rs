//! Bucket layouts of a chunk and of a sample that is to follow, made one.

use crate::model::histogram::{Count, NativeHistogram, Side, Span, SpanBuilder};

/// What one side of a chunk's layout and of a sample's have that the other lacks.
#[derive(Debug)]
pub struct SideMerge {
    /// The sample has buckets that the chunk lacks.
    pub chunk_lacks: bool,
    /// The chunk has buckets that the sample lacks.
    pub sample_lacks: bool,
    /// The buckets of both, unless their spans are the same.
    pub union: Option<Box<[Span]>>,
}

impl SideMerge {
    /// Both have the same buckets.
    pub const SAME: SideMerge = SideMerge { chunk_lacks: false, sample_lacks: false, union: None };
}

/// Why layouts cannot be made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// A bucket holds less than it did, or one that held something is gone.
    CounterReset,
    /// The union's gaps are too wide for spans.
    TooWide,
}

/// Walks over bucket indices and counts of a chunk's last sample and of the one to follow. Counts
/// of gauges may go down, those of counters not.
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
            (Some(_), None) => break,
        };
        union.push(index).ok_or(Mismatch::TooWide)?;
    }
    Ok(SideMerge { chunk_lacks, sample_lacks, union: Some(union.finish()) })
}

/// Whether no count goes down, of two samples with the same buckets.
pub fn goes_on<B: PartialOrd>(
    chunk: impl Iterator<Item = B>,
    mut sample: impl Iterator<Item = B>,
) -> bool {
    // Written so that NaN, which compares with nothing, does not count as a reset.
    !chunk.into_iter().any(|before| sample.next().is_some_and(|after| before > after))
}

/// A side's buckets in the order of wider spans, empty ones added.
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
            buckets.push(C::kept(before, count));
            before = count;
        }
    }
    buckets
}

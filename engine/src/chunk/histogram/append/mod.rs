//! Appender that compresses histograms of one series into a chunk.

mod resume;

use super::cells::{Cell, ChunkCount, StepCell, XorCell};
use super::layout::put_layout;
use super::merge::{Mismatch, SideMerge, goes_on, merge_sides, widened};
use super::{CounterHeader, HEADER_BYTES, HistogramIter};
use crate::chunk::varbit::BitBuffer;
use crate::chunk::{Chunk, SAMPLES_PER_CHUNK_MAX};
use crate::model::histogram::{
    BucketLayout, NativeHistogram, ResetHint, Side, fewest_spans, indices, is_stale_nan,
};
use std::rc::Rc;

/// Bits beyond which a chunk takes no further sample, so that positions fit 32 bits.
const CHUNK_BITS_MAX: u32 = 1 << 30;

/// A histogram chunk under construction, with at least one sample. Histograms must have passed
/// [`NativeHistogram::validate`] before they are appended.
#[derive(Clone, Debug)]
pub struct HistogramAppender<C: ChunkCount> {
    layout: Rc<BucketLayout>,
    header: CounterHeader,
    samples: u16,
    first_timestamp_ms: i64,
    time: StepCell,
    count: C::TotalCell,
    zero_count: C::TotalCell,
    sum: XorCell,
    positive: Vec<C::BucketCell>,
    negative: Vec<C::BucketCell>,
    out: BitBuffer,
}

/// Outcome of an append: stored, or to be stored in a new chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Appended {
    /// The histogram is in the chunk.
    Yes,
    /// The histogram must begin a new chunk, which has this header.
    NeedsNewChunk(CounterHeader),
}

/// Changes of the chunk's layout and of the sample that an append needs.
struct Change {
    positive: SideMerge,
    negative: SideMerge,
}

impl<C: ChunkCount> HistogramAppender<C> {
    /// Creates a chunk that begins with this histogram.
    ///
    /// # Panics
    ///
    /// If the buckets do not match the spans; [`NativeHistogram::validate`] would have found that.
    pub fn new(
        timestamp_ms: i64,
        histogram: &NativeHistogram<C>,
        header: CounterHeader,
    ) -> HistogramAppender<C> {
        // A stale histogram may arrive with buckets and counts; a stale marker in a chunk has none.
        let stale;
        let histogram = match histogram.is_stale() {
            true => {
                stale = NativeHistogram::stale();
                &stale
            }
            false => histogram,
        };
        assert_eq!(histogram.check_shape(), Ok(()), "only checked histograms are appended");
        let mut out = BitBuffer::default();
        out.put(0, 8 * HEADER_BYTES as u32);
        put_layout(&mut out, &histogram.layout);
        let NativeHistogram { count, zero_count, sum, .. } = *histogram;
        let time = Cell::first(&mut out, timestamp_ms);
        let count = Cell::first(&mut out, count);
        let zero_count = Cell::first(&mut out, zero_count);
        let sum = Cell::first(&mut out, sum);
        let mut first = |bucket: &C::Bucket| C::BucketCell::first(&mut out, *bucket);
        let positive = histogram.positive_buckets.iter().map(&mut first).collect();
        let negative = histogram.negative_buckets.iter().map(&mut first).collect();
        let mut appender = HistogramAppender {
            layout: Rc::clone(&histogram.layout),
            header,
            samples: 1,
            first_timestamp_ms: timestamp_ms,
            time,
            count,
            zero_count,
            sum,
            positive,
            negative,
            out,
        };
        appender.write_header();
        appender
    }

    /// Adds a histogram, which must be later than the one before, or reports that it needs a new
    /// chunk: the counter was reset, the layout or the kind differs, or the chunk is full. If the
    /// histogram only has additional buckets, these are added to the whole chunk.
    pub fn append(&mut self, timestamp_ms: i64, histogram: &NativeHistogram<C>) -> Appended {
        let change = match self.fit(histogram) {
            // A histogram that does not fit decides the header, even if the chunk is also full.
            Ok(_) if self.is_full() => {
                return Appended::NeedsNewChunk(self.header_of_next(histogram));
            }
            Ok(change) => change,
            Err(header) => return Appended::NeedsNewChunk(header),
        };
        let Change { positive, negative } = &change;
        if positive.chunk_lacks || negative.chunk_lacks {
            // All samples share one layout, so the earlier ones are re-encoded.
            let layout = self.widened_layout(histogram, &change);
            let Some(recoded) = self.recoded(layout) else {
                return Appended::NeedsNewChunk(CounterHeader::Unknown);
            };
            *self = recoded;
        }
        if positive.sample_lacks || negative.sample_lacks {
            self.put(timestamp_ms, &in_layout(histogram, &self.layout));
        } else {
            self.put(timestamp_ms, histogram);
        }
        self.write_header();
        Appended::Yes
    }

    /// Returns the header of the next chunk, when this one is full or its block ended.
    pub fn header_of_next(&self, histogram: &NativeHistogram<C>) -> CounterHeader {
        match CounterHeader::of_first(histogram.reset_hint) {
            CounterHeader::Unknown => match self.fit(histogram) {
                Ok(_) => CounterHeader::NotReset,
                Err(header) => header,
            },
            known => known,
        }
    }

    /// Returns the counter-reset hint of the chunk's first sample.
    pub fn header(&self) -> CounterHeader {
        self.header
    }

    /// Number of samples appended so far.
    pub fn count(&self) -> u16 {
        self.samples
    }

    /// Returns the bytes of the chunk so far, which are valid at any time.
    pub fn data(&self) -> &[u8] {
        self.out.data()
    }

    /// Returns the chunk so far, with a copy of its bytes.
    pub fn to_chunk(&self) -> Chunk {
        Chunk {
            encoding: C::ENCODING,
            min_time_ms: self.first_timestamp_ms,
            max_time_ms: self.last_timestamp_ms(),
            data: self.data().into(),
        }
    }

    /// Returns the time of the first sample.
    pub fn first_timestamp_ms(&self) -> i64 {
        self.first_timestamp_ms
    }

    /// Returns the time of the last sample.
    pub fn last_timestamp_ms(&self) -> i64 {
        self.time.value()
    }

    /// Number of bytes on the heap, used or not.
    pub fn capacity_bytes(&self) -> usize {
        let cells = self.positive.capacity() + self.negative.capacity();
        self.out.capacity_bytes() + cells * size_of::<C::BucketCell>()
    }

    fn is_full(&self) -> bool {
        self.samples == SAMPLES_PER_CHUNK_MAX || self.out.position_bits() > CHUNK_BITS_MAX
    }

    /// Returns the changes that let the histogram follow, or the header of a new chunk.
    fn fit(&self, histogram: &NativeHistogram<C>) -> Result<Change, CounterHeader> {
        let is_gauge = histogram.reset_hint == ResetHint::Gauge;
        let other = if is_gauge { CounterHeader::Gauge } else { CounterHeader::Unknown };
        // The order is that of Prometheus' `appendable`: the first failed check decides the header.
        if is_gauge != (self.header == CounterHeader::Gauge) {
            return Err(CounterHeader::of_first(histogram.reset_hint));
        }
        if histogram.reset_hint == ResetHint::Reset {
            return Err(CounterHeader::Reset);
        }
        if histogram.is_stale() {
            // A stale marker has no buckets, so it fits every layout.
            return Ok(Change { positive: SideMerge::SAME, negative: SideMerge::SAME });
        }
        if is_stale_nan(self.sum.value()) {
            return Err(other);
        }
        if !is_gauge && histogram.count < self.count.value() {
            return Err(CounterHeader::Reset);
        }
        let (before, after) = (&*self.layout, &*histogram.layout);
        if before.schema != after.schema || before.zero_threshold != after.zero_threshold {
            return Err(other);
        }
        let reset = if is_gauge { other } else { CounterHeader::Reset };
        if before.has_custom_buckets() && !before.same_bounds(after) {
            // As in Prometheus, other custom bounds are a reset, but another schema is not.
            return Err(reset);
        }
        if !is_gauge && histogram.zero_count < self.zero_count.value() {
            return Err(CounterHeader::Reset);
        }
        let merge = |side| {
            self.merge(side, histogram, is_gauge).map_err(|mismatch| match mismatch {
                Mismatch::CounterReset => CounterHeader::Reset,
                Mismatch::TooWide => other,
            })
        };
        Ok(Change { positive: merge(Side::Positive)?, negative: merge(Side::Negative)? })
    }

    fn merge(
        &self,
        side: Side,
        histogram: &NativeHistogram<C>,
        is_gauge: bool,
    ) -> Result<SideMerge, Mismatch> {
        let (spans, cells) = match side {
            Side::Positive => (&self.layout.positive_spans, &self.positive),
            Side::Negative => (&self.layout.negative_spans, &self.negative),
        };
        let counts = C::running(cells.iter().map(Cell::value));
        let same_spans = **spans == *histogram.side(side).0;
        if same_spans {
            // The usual case: counts are compared, and no union of spans is made.
            let after = histogram.counts(side).map(|(_, count)| count);
            return match is_gauge || goes_on(counts, after) {
                true => Ok(SideMerge::SAME),
                false => Err(Mismatch::CounterReset),
            };
        }
        let before = indices(spans).zip(counts);
        merge_sides::<C>(before, histogram.counts(side), is_gauge)
    }

    /// Returns the layout for both; as in Prometheus, the sample's spans if they have all buckets.
    fn widened_layout(&self, histogram: &NativeHistogram<C>, change: &Change) -> Rc<BucketLayout> {
        let Change { positive, negative } = change;
        let sample = &histogram.layout;
        let any_lacks = positive.sample_lacks || negative.sample_lacks;
        let is_gauge = self.header == CounterHeader::Gauge;
        let spans = |merge: &SideMerge, side| {
            let own = histogram.side(side).0;
            match (merge.sample_lacks || (is_gauge && any_lacks), &merge.union) {
                (true, Some(union)) => union.clone(),
                (true, None) => fewest_spans(own),
                (false, _) => own.into(),
            }
        };
        Rc::new(BucketLayout {
            schema: sample.schema,
            zero_threshold: self.layout.zero_threshold,
            positive_spans: spans(positive, Side::Positive),
            negative_spans: spans(negative, Side::Negative),
            custom_values: self.layout.custom_values.clone(),
        })
    }

    /// Re-encodes the samples in a layout with more buckets; `None` if a sample does not decode.
    fn recoded(&self, layout: Rc<BucketLayout>) -> Option<HistogramAppender<C>> {
        let mut samples = HistogramIter::<C>::new(self.data()).ok()?;
        let (timestamp_ms, first) = samples.next()?.ok()?;
        let first = in_layout(&first, &layout);
        let mut recoded = HistogramAppender::new(timestamp_ms, &first, self.header);
        recoded.out.reserve(self.out.data().len());
        for sample in samples {
            let (timestamp_ms, histogram) = sample.ok()?;
            recoded.put(timestamp_ms, &in_layout(&histogram, &layout));
        }
        Some(recoded)
    }

    /// Writes a histogram that has the chunk's layout.
    fn put(&mut self, timestamp_ms: i64, histogram: &NativeHistogram<C>) {
        let out = &mut self.out;
        self.samples += 1;
        self.time.put(out, timestamp_ms);
        if histogram.is_stale() {
            self.count.put_nothing(out);
            self.zero_count.put_nothing(out);
            self.sum.put(out, histogram.sum);
            return;
        }
        self.count.put(out, histogram.count);
        self.zero_count.put(out, histogram.zero_count);
        self.sum.put(out, histogram.sum);
        let sides = [
            (&mut self.positive, &histogram.positive_buckets),
            (&mut self.negative, &histogram.negative_buckets),
        ];
        for (cells, buckets) in sides {
            debug_assert_eq!(cells.len(), buckets.len());
            for (i, cell) in cells.iter_mut().enumerate() {
                cell.put(out, buckets.get(i).copied().unwrap_or_default());
            }
        }
    }

    fn write_header(&mut self) {
        if let Some(bytes) = self.out.data_mut().first_chunk_mut::<HEADER_BYTES>() {
            let [high, low] = self.samples.to_be_bytes();
            *bytes = [high, low, self.header.to_byte()];
        }
    }
}

/// Returns the histogram in a wider layout.
fn in_layout<C: ChunkCount>(
    histogram: &NativeHistogram<C>,
    layout: &Rc<BucketLayout>,
) -> NativeHistogram<C> {
    NativeHistogram {
        layout: Rc::clone(layout),
        positive_buckets: widened(histogram, Side::Positive, &layout.positive_spans),
        negative_buckets: widened(histogram, Side::Negative, &layout.negative_spans),
        ..histogram.clone()
    }
}

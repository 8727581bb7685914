//! Decodes histogram chunks, with start timestamps or without; the layout is in `mod.rs`. If bytes
//! do not decode, the iterator returns one error and ends. False lengths allocate little memory.

use super::cells::{Cell, CellError, ChunkCount, StepCell, XorCell};
use super::layout::take_layout;
use super::{CounterHeader, HEADER_BYTES, SAMPLES_MAX_WITH_STARTS};
use crate::chunk::ChunkError;
use crate::chunk::starts::StartReader;
use crate::codec::BitReader;
use crate::model::histogram::{BucketLayout, NativeHistogram, Span, is_stale_nan};
use std::rc::Rc;

/// Iterator over the histograms of a chunk, first to last, with their times in milliseconds.
#[derive(Clone, Debug)]
pub struct HistogramIter<'a, C: ChunkCount> {
    bits: BitReader<'a>,
    /// Bits of the whole chunk, which bound the number of its buckets.
    bits_max: u64,
    count: u16,
    next: u16,
    header: CounterHeader,
    state: Option<State<C>>,
    /// `None` in a chunk without start timestamps.
    starts: Option<StartReader>,
    /// Number of bits left after the last sample, before its start timestamp was read.
    left_before_start: usize,
}

/// Bases of the next differences, once the first sample is read.
#[derive(Clone, Debug)]
struct State<C: ChunkCount> {
    layout: Rc<BucketLayout>,
    time: StepCell,
    count: C::TotalCell,
    zero_count: C::TotalCell,
    sum: XorCell,
    positive: Vec<C::BucketCell>,
    negative: Vec<C::BucketCell>,
}

impl<'a, C: ChunkCount> HistogramIter<'a, C> {
    /// Creates an iterator over a chunk's data, without length, encoding or checksum.
    pub fn new(data: &'a [u8]) -> Result<HistogramIter<'a, C>, ChunkError> {
        let (header, bits) =
            data.split_first_chunk::<HEADER_BYTES>().ok_or(ChunkError::NoHeader)?;
        let [high, low, flags] = *header;
        let count = u16::from_be_bytes([high, low]);
        Ok(HistogramIter::of(bits, count, CounterHeader::from_byte(flags), None))
    }

    /// Creates an iterator over the data of a chunk with start timestamps.
    pub fn with_starts(data: &'a [u8]) -> Result<HistogramIter<'a, C>, ChunkError> {
        let (header, bits) =
            data.split_first_chunk::<HEADER_BYTES>().ok_or(ChunkError::NoHeader)?;
        let [high, low, starts] = *header;
        let count = u16::from_be_bytes([high, low]) & SAMPLES_MAX_WITH_STARTS;
        let starts = Some(StartReader::new(starts));
        Ok(HistogramIter::of(bits, count, CounterHeader::from_byte(high), starts))
    }

    fn of(
        bits: &'a [u8],
        count: u16,
        header: CounterHeader,
        starts: Option<StartReader>,
    ) -> HistogramIter<'a, C> {
        HistogramIter {
            bits: BitReader::new(bits),
            bits_max: bits.len() as u64 * 8,
            count,
            next: 0,
            header,
            state: None,
            starts,
            left_before_start: 0,
        }
    }

    /// Returns the start timestamp of the sample returned last; 0 if unknown.
    pub fn start_ms(&self) -> i64 {
        self.starts.map_or(0, |starts| starts.start_ms())
    }

    /// Returns the number of bits left after the last sample, and how many of them are its start.
    pub(super) fn left_bits(&self) -> (usize, usize) {
        let left = self.left_before_start;
        (left, left - self.bits.left())
    }

    /// Number of samples that the chunk claims to hold.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Returns the counter-reset hint of the chunk's first sample.
    pub fn header(&self) -> CounterHeader {
        self.header
    }

    fn read_next(&mut self) -> Result<(i64, NativeHistogram<C>), ChunkError> {
        let (sample, count) = (self.next, self.count);
        let error = |error| match error {
            CellError::CutShort => ChunkError::CutShort { sample, count },
            CellError::TooWide { leading_zeros, bits } => {
                ChunkError::ValueTooWide { sample, count, leading_zeros, bits }
            }
        };
        let time_before_ms = self.state.as_ref().map_or(0, State::timestamp_ms);
        match &mut self.state {
            Some(state) => state.read(&mut self.bits).map_err(error)?,
            None => {
                let layout = take_layout(&mut self.bits);
                let layout = layout.ok_or(ChunkError::CutShort { sample, count })??;
                if !layout.has_known_schema() {
                    return Err(ChunkError::UnknownSchema { schema: layout.schema });
                }
                let buckets = bucket_numbers::<C>(&layout, self.bits_max)?;
                let state = State::read_first(layout, buckets, &mut self.bits);
                self.state = Some(state.map_err(error)?);
            }
        }
        let Some(state) = &self.state else { return Err(ChunkError::CutShort { sample, count }) };
        let time_ms = state.timestamp_ms();
        self.left_before_start = self.bits.left();
        if let Some(starts) = &mut self.starts {
            let read = starts.read(&mut self.bits, sample, time_ms, time_before_ms);
            read.ok_or(ChunkError::CutShort { sample, count })?;
        }
        let mut histogram = state.histogram();
        if !histogram.is_stale() {
            histogram.reset_hint = self.header.hint_at(self.next);
            let schema = histogram.layout.schema;
            // Like upstream, a schema finer than supported is reduced when read.
            histogram.limit_resolution().map_err(|_| ChunkError::NotReducible { schema })?;
        }
        Ok((time_ms, histogram))
    }
}

/// Returns the numbers of positive and negative buckets, if the chunk can hold that many.
fn bucket_numbers<C: ChunkCount>(
    layout: &BucketLayout,
    bits_max: u64,
) -> Result<[usize; 2], ChunkError> {
    let covered = |spans: &[Span]| spans.iter().map(|span| u64::from(span.length)).sum::<u64>();
    let buckets = [covered(&layout.positive_spans), covered(&layout.negative_spans)];
    // Checked before anything is allocated, since the lengths may be false.
    if buckets.iter().sum::<u64>() > bits_max / C::FIRST_BUCKET_BITS_MIN {
        return Err(ChunkError::BadLayout { reason: "there are more buckets than bits for them" });
    }
    Ok(buckets.map(|number| number as usize))
}

impl<C: ChunkCount> State<C> {
    fn read_first(
        layout: BucketLayout,
        buckets: [usize; 2],
        bits: &mut BitReader<'_>,
    ) -> Result<State<C>, CellError> {
        let time = Cell::<i64>::read_first(bits)?;
        let count = Cell::read_first(bits)?;
        let zero_count = Cell::read_first(bits)?;
        let sum = Cell::read_first(bits)?;
        let mut read = |number| (0..number).map(|_| Cell::read_first(bits)).collect();
        let [positive, negative] = buckets;
        let positive: Result<_, _> = read(positive);
        let negative: Result<_, _> = read(negative);
        let (positive, negative, layout) = (positive?, negative?, Rc::new(layout));
        Ok(State { layout, time, count, zero_count, sum, positive, negative })
    }

    fn read(&mut self, bits: &mut BitReader<'_>) -> Result<(), CellError> {
        Cell::<i64>::read(&mut self.time, bits)?;
        self.count.read(bits)?;
        self.zero_count.read(bits)?;
        self.sum.read(bits)?;
        if !is_stale_nan(self.sum.value()) {
            for bucket in self.positive.iter_mut().chain(&mut self.negative) {
                bucket.read(bits)?;
            }
        }
        Ok(())
    }

    fn timestamp_ms(&self) -> i64 {
        Cell::<i64>::value(&self.time)
    }

    fn histogram(&self) -> NativeHistogram<C> {
        if is_stale_nan(self.sum.value()) {
            return NativeHistogram::stale();
        }
        NativeHistogram {
            layout: Rc::clone(&self.layout),
            reset_hint: Default::default(),
            count: self.count.value(),
            zero_count: self.zero_count.value(),
            sum: self.sum.value(),
            positive_buckets: self.positive.iter().map(Cell::value).collect(),
            negative_buckets: self.negative.iter().map(Cell::value).collect(),
        }
    }
}

impl<C: ChunkCount> Iterator for HistogramIter<'_, C> {
    type Item = Result<(i64, NativeHistogram<C>), ChunkError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        let read = self.read_next();
        self.next = if read.is_ok() { self.next + 1 } else { self.count };
        Some(read)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // The count may be false, and an error is one item, so the lower bound is at most 1.
        let left = usize::from(self.count - self.next);
        (left.min(1), Some(left))
    }
}

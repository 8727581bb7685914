//! Inserts or removes start timestamps between a chunk's samples, whose bits are copied.

use super::{ChunkCount, HEADER_BYTES, HistogramIter, SAMPLES_MAX_WITH_STARTS};
use crate::chunk::ChunkError;
use crate::chunk::starts::StartWriter;
use crate::chunk::varbit::BitBuffer;
use crate::codec::BitReader;

/// Converts the data of encoding 5 or 6 to encoding 2 or 3, without start timestamps.
pub fn take_starts<C: ChunkCount>(data: &[u8]) -> Result<Vec<u8>, ChunkError> {
    let mut samples = HistogramIter::<C>::with_starts(data)?;
    let mut copy = Copy::new(data);
    while let Some(sample) = samples.next() {
        // Samples are decoded only to find where their bits end.
        sample?;
        let (left, start_bits) = samples.left_bits();
        copy.copy_until(left);
        copy.pass(start_bits);
    }
    let [high, low] = HistogramIter::count(&samples).to_be_bytes();
    Ok(copy.finish([high, low, samples.header().to_byte()]))
}

/// Converts the data of encoding 2 or 3 to encoding 5 or 6, with a start timestamp for each sample
/// (0 if unknown). `None` if there are too many samples.
pub fn put_starts<C: ChunkCount>(
    data: &[u8],
    starts_ms: &[i64],
) -> Result<Option<Vec<u8>>, ChunkError> {
    let mut samples = HistogramIter::<C>::new(data)?;
    let count = HistogramIter::count(&samples);
    if count > SAMPLES_MAX_WITH_STARTS {
        // In encodings 5 and 6 the count has 14 bits: the counter-reset header has the other two.
        return Ok(None);
    }
    let mut copy = Copy::new(data);
    let mut starts = StartWriter::default();
    let mut time_before_ms = 0;
    for position in 0..count {
        let Some(sample) = samples.next() else { break };
        let (time_ms, _) = sample?;
        let (left, _) = samples.left_bits();
        copy.copy_until(left);
        let start_ms = starts_ms.get(usize::from(position)).copied().unwrap_or(0);
        starts.put(&mut copy.out, position, (time_ms, time_before_ms), start_ms);
        time_before_ms = time_ms;
    }
    let [high, low] = count.to_be_bytes();
    let header = samples.header().to_byte();
    Ok(Some(copy.finish([header | high, low, starts.header()])))
}

struct Copy<'a> {
    bits: BitReader<'a>,
    out: BitBuffer,
}

impl Copy<'_> {
    fn new(data: &[u8]) -> Copy<'_> {
        let mut out = BitBuffer::default();
        out.reserve(data.len());
        out.put(0, 8 * HEADER_BYTES as u32);
        Copy { bits: BitReader::new(data.get(HEADER_BYTES..).unwrap_or_default()), out }
    }

    /// Copies bits until `left` of them remain.
    fn copy_until(&mut self, left: usize) {
        while let Some(bits) = self.bits.left().checked_sub(left).filter(|bits| *bits > 0) {
            let bits = bits.min(64) as u32;
            let Some(value) = self.bits.take(bits) else { break };
            self.out.put(value, bits);
        }
    }

    /// Skips bits: at most 80, the size of a start timestamp.
    fn pass(&mut self, bits: usize) {
        let left = self.bits.left().saturating_sub(bits);
        while let Some(bits) = self.bits.left().checked_sub(left).filter(|bits| *bits > 0)
            && self.bits.take(bits.min(64) as u32).is_some()
        {}
    }

    fn finish(mut self, header: [u8; HEADER_BYTES]) -> Vec<u8> {
        if let Some(place) = self.out.data_mut().first_chunk_mut::<HEADER_BYTES>() {
            *place = header;
        }
        self.out.data().to_vec()
    }
}

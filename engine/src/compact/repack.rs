//! Joins small chunks of blocks into longer chunks, which need fewer bytes per sample.
//!
//! A chunk has some thirty bytes before its third sample: length, encoding and checksum, a count,
//! the first two samples in full, and its entry in the index. With 120 samples a chunk, this is a
//! quarter of a byte per sample. In cut blocks, and in merged blocks whose parents had short
//! chunks, runs of neighbouring XOR chunks become one chunk with new windows (`narrow_xor.rs`).
//!
//! Invariants: samples stay the same, bit by bit. A run that would not get smaller, or is not in
//! time order, does not change. A chunk with more than half of the largest sample count does not
//! change, so that a sample is encoded again about once. Chunks of histograms are copied. So are
//! chunks with start timestamps, which XOR chunks cannot hold, and for which Prometheus' encoding
//! needs up to three bytes for each sample after the 127th. XOR2 chunks without start timestamps
//! become XOR chunks, which every reader knows.

use super::narrow_xor::NarrowXor;
use crate::chunk::{
    Chunk, ChunkError, Encoding, Xor2Iter, is_plain_floats, read_floats, sample_count,
};
use crate::model::Sample;

/// Largest number of samples of a joined chunk. Prometheus reads up to 65,535, but an instant query
/// decodes a whole chunk, so longer chunks cost more than they save.
pub const SAMPLES_PER_CHUNK_COMPACTED: usize = 960;

/// Bytes of a chunk besides its data: length, encoding, checksum, entry in the index.
const CHUNK_OVERHEAD_BYTES: usize = 14;

pub(super) struct Repacker {
    samples_max: usize,
    narrow: NarrowXor,
    samples: Vec<Sample>,
}

impl Repacker {
    /// Makes a repacker that joins up to `samples_max` samples, at most 65,535; 0 joins nothing.
    pub(super) fn new(samples_max: usize) -> Repacker {
        let samples_max = samples_max.min(usize::from(u16::MAX));
        Repacker { samples_max, narrow: NarrowXor::default(), samples: Vec::new() }
    }

    /// Joins runs of a series' chunks, which are in time order.
    pub(super) fn repack(&mut self, chunks: Vec<Chunk>) -> Result<Vec<Chunk>, ChunkError> {
        let mut packed = Vec::with_capacity(chunks.len());
        let mut run = Vec::new();
        let mut run_samples = 0;
        for chunk in chunks {
            let count = usize::from(sample_count(&chunk)?);
            // A chunk more than half full stays, or each merge would encode its samples again.
            let is_small = is_plain_floats(&chunk) && 2 * count <= self.samples_max;
            // A chunk that is copied ends the current run, since chunks must keep their order.
            if !is_small || run_samples + count > self.samples_max {
                self.join(&mut run, &mut packed)?;
                run_samples = 0;
            }
            if is_small {
                run_samples += count;
                run.push(chunk);
            } else {
                packed.push(chunk);
            }
        }
        self.join(&mut run, &mut packed)?;
        Ok(packed)
    }

    /// Moves a run to `packed`, as one chunk if that is shorter.
    fn join(&mut self, run: &mut Vec<Chunk>, packed: &mut Vec<Chunk>) -> Result<(), ChunkError> {
        let bytes = |chunk: &Chunk| chunk.data.len() + CHUNK_OVERHEAD_BYTES;
        if let Some(joined) = self.joined(run)?
            && bytes(&joined) < run.iter().map(bytes).sum()
        {
            run.clear();
            packed.push(joined);
        }
        packed.append(run);
        Ok(())
    }

    /// Returns one chunk with all samples; `None` if the run is empty or not in time order.
    fn joined(&mut self, run: &[Chunk]) -> Result<Option<Chunk>, ChunkError> {
        self.samples.clear();
        let sample = |timestamp_ms, value| Sample { timestamp_ms, value };
        for chunk in run {
            match chunk.encoding {
                Encoding::Xor2 => put_all(Xor2Iter::new(&chunk.data)?, &mut self.samples)?,
                Encoding::Xor => read_floats(&chunk.data, None, sample, &mut self.samples)?,
                encoding => return Err(ChunkError::NotFloats { encoding }),
            }
        }
        let ascends = self.samples.is_sorted_by(|a, b| a.timestamp_ms < b.timestamp_ms);
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else {
            return Ok(None);
        };
        let (min_time_ms, max_time_ms) = (first.timestamp_ms, last.timestamp_ms);
        if !ascends {
            return Ok(None);
        }
        let data = self.narrow.encode(&self.samples).into();
        Ok(Some(Chunk { encoding: Encoding::Xor, min_time_ms, max_time_ms, data }))
    }
}

fn put_all(
    all: impl Iterator<Item = Result<Sample, ChunkError>>,
    out: &mut Vec<Sample>,
) -> Result<(), ChunkError> {
    for sample in all {
        out.push(sample?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{XorAppender, samples};

    fn chunk(from: i64, count: i64) -> Chunk {
        let mut appender = XorAppender::new();
        (from..from + count).for_each(|i| appender.append(i * 15_000, i as f64));
        appender.to_chunk().expect("a chunk of at least one sample")
    }

    fn decoded(chunks: &[Chunk]) -> Vec<Sample> {
        let all = chunks.iter().flat_map(|chunk| samples(chunk).expect("floats"));
        all.map(|sample| sample.expect("a sample")).collect()
    }

    fn counts(chunks: &[Chunk]) -> Vec<u16> {
        chunks.iter().filter_map(|chunk| sample_count(chunk).ok()).collect()
    }

    #[test]
    fn runs_are_joined_up_to_the_limit() {
        let chunks: Vec<_> = (0..9).map(|i| chunk(120 * i, 120)).collect();
        let packed = Repacker::new(480).repack(chunks.clone()).expect("sound chunks");
        assert_eq!(counts(&packed), [480, 480, 120]);
        assert_eq!(decoded(&packed), decoded(&chunks));
        let again = Repacker::new(480).repack(packed.clone()).expect("sound chunks");
        assert_eq!(again, packed);
    }

    #[test]
    fn large_and_foreign_chunks_pass() {
        let data = [0, 9, 1, 2, 3].as_slice().into();
        let histogram = Chunk {
            encoding: Encoding::Histogram,
            min_time_ms: 150 * 15_000,
            max_time_ms: 150 * 15_000,
            data,
        };
        let chunks = [
            chunk(0, 100),
            chunk(100, 50),
            histogram,
            chunk(151, 50),
            chunk(201, 300),
            chunk(501, 9),
        ];
        let packed = Repacker::new(480).repack(chunks.to_vec()).expect("sound chunks");
        assert_eq!(counts(&packed), [150, 9, 50, 300, 9]);
        assert_eq!(decoded(&packed[..1]), decoded(&chunks[..2]));
        assert_eq!((&packed[1], &packed[3]), (&chunks[2], &chunks[4]));
    }

    #[test]
    fn what_does_not_ascend_is_left() {
        let chunks = vec![chunk(10, 10), chunk(0, 10)];
        assert_eq!(Repacker::new(480).repack(chunks.clone()), Ok(chunks));
    }

    #[test]
    fn what_does_not_decode_is_an_error() {
        let mut broken = chunk(10, 10);
        broken.data = broken.data[..5].into();
        assert!(Repacker::new(480).repack(vec![chunk(0, 10), broken]).is_err());
    }
}

//! Samples of one series that came late: older than its newest, or than what blocks already hold.
//!
//! They are kept apart from the ordered chunks, so that ordered appends stay cheap, and merged
//! with them when read. Parts may overlap in time; where two hold the same time, the later part
//! has the word. That happens only after a restart: the log still has what was cut and forgotten,
//! and what was written after that.
//!
//! A cut reads late samples while more of them arrive. Each part therefore knows its generation:
//! the number of cuts that were planned when its last sample came. Forgetting a cut's range drops
//! only parts of earlier generations; what came later waits for the next cut of that range.

use crate::chunk::{Chunk, ChunkError, SAMPLES_PER_CHUNK, XorAppender, XorIter};
use crate::model::{Sample, TimeRange};

/// Late samples of one series.
#[derive(Default)]
pub(super) struct LateSamples {
    /// By time. Sealed when full.
    open: Vec<Sample>,
    open_generation: u64,
    sealed: Vec<LateChunk>,
}

struct LateChunk {
    chunk: Chunk,
    generation: u64,
}

impl LateSamples {
    /// Adds a sample, which from now on is the one of its time.
    pub fn insert(&mut self, sample: Sample, generation: u64) {
        if self.open.len() >= SAMPLES_PER_CHUNK {
            self.seal();
        }
        match self.open.binary_search_by_key(&sample.timestamp_ms, |held| held.timestamp_ms) {
            Ok(at) => self.open[at] = sample,
            Err(at) => self.open.insert(at, sample),
        }
        self.open_generation = generation;
    }

    fn seal(&mut self) {
        let generation = self.open_generation;
        self.sealed.extend(encode(&self.open).map(|chunk| LateChunk { chunk, generation }));
        self.open.clear();
    }

    /// The value held at exactly this time, if there is one.
    pub fn value_at(&self, timestamp_ms: i64) -> Result<Option<f64>, ChunkError> {
        if let Ok(at) = self.open.binary_search_by_key(&timestamp_ms, |held| held.timestamp_ms) {
            return Ok(Some(self.open[at].value));
        }
        for LateChunk { chunk, .. } in self.sealed.iter().rev() {
            if chunk.min_time_ms <= timestamp_ms
                && timestamp_ms <= chunk.max_time_ms
                && let Some(value) = value_in(&chunk.data, timestamp_ms)?
            {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Chunks that share some time with the range, the latest part first; they may overlap.
    pub fn chunks(&self, range: TimeRange) -> impl Iterator<Item = Chunk> + '_ {
        let sealed = self.sealed.iter().rev().map(|late| late.chunk.clone());
        encode(&self.open).into_iter().chain(sealed).filter(move |chunk| {
            let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
            span.overlaps(&range)
        })
    }

    /// Drops samples before a time from parts that are older than a generation.
    pub fn forget(&mut self, before_ms: i64, generation: u64) -> Result<(), ChunkError> {
        if self.open_generation < generation {
            self.open.retain(|held| held.timestamp_ms >= before_ms);
        }
        let mut kept = Vec::new();
        for late in self.sealed.drain(..) {
            if late.generation >= generation || late.chunk.min_time_ms >= before_ms {
                kept.push(late);
            } else if late.chunk.max_time_ms >= before_ms {
                let samples = XorIter::new(&late.chunk.data)?.collect::<Result<Vec<_>, _>>()?;
                let from = samples.partition_point(|sample| sample.timestamp_ms < before_ms);
                let generation = late.generation;
                kept.extend(encode(&samples[from..]).map(|chunk| LateChunk { chunk, generation }));
            }
        }
        self.sealed = kept;
        Ok(())
    }

    /// Time of the oldest sample.
    pub fn min_time_ms(&self) -> Option<i64> {
        let open = self.open.first().map(|held| held.timestamp_ms);
        self.sealed.iter().map(|late| late.chunk.min_time_ms).chain(open).min()
    }
}

fn encode(samples: &[Sample]) -> Option<Chunk> {
    let mut appender = XorAppender::new();
    for sample in samples {
        appender.append(sample.timestamp_ms, sample.value);
    }
    appender.to_chunk()
}

/// The value that a chunk of floats holds at exactly this time.
pub(super) fn value_in(data: &[u8], timestamp_ms: i64) -> Result<Option<f64>, ChunkError> {
    for sample in XorIter::new(data)? {
        let sample = sample?;
        if sample.timestamp_ms >= timestamp_ms {
            return Ok((sample.timestamp_ms == timestamp_ms).then_some(sample.value));
        }
    }
    Ok(None)
}

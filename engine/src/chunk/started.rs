//! Values with their start timestamps, and chunks that gain or lose them.
//!
//! The head accepts no start timestamps, and few readers know the encodings that have them. Blocks
//! that Prometheus wrote keep start timestamps: chunks are copied or, if they must be decoded,
//! encoded with start timestamps again. Answers have plain chunks, which have none.

use super::histogram::{put_starts, take_starts};
use super::xor2::encode_xor2;
use super::xor2_iter::has_no_starts;
use super::{Chunk, ChunkError, Encoding, Values, Xor2Iter, XorAppender, encode, samples, values};
use crate::model::Value;

/// A value with its time and the start timestamp of its counter.
#[derive(Clone, Debug)]
pub struct StartedValue {
    /// Timestamp in milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Start timestamp in milliseconds since the epoch; 0 if unknown.
    pub start_ms: i64,
    /// Float or native histogram at that time.
    pub value: Value,
}

/// Iterator over the values of a chunk with their start timestamps.
pub struct Started<'a>(Values<'a>);

/// Returns the values of a chunk of any encoding with their start timestamps.
pub fn started_values(chunk: &Chunk) -> Result<Started<'_>, ChunkError> {
    Ok(Started(values(chunk)?))
}

impl Iterator for Started<'_> {
    type Item = Result<StartedValue, ChunkError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.0.next()?;
        // Read after `next`: the iterator keeps the start timestamp of the last value only.
        let start_ms = self.0.start_ms();
        Some(next.map(|(timestamp_ms, value)| StartedValue { timestamp_ms, start_ms, value }))
    }
}

/// Like [`encode`], but keeps the start timestamps of chunks in which any value has one.
pub fn encode_started(
    values: impl Iterator<Item = StartedValue>,
) -> Result<Vec<Chunk>, ChunkError> {
    // `encode` decides where chunks end, so start timestamps are collected and added afterwards.
    let mut starts_ms = Vec::new();
    let mut chunks = encode(values.map(|StartedValue { timestamp_ms, start_ms, value }| {
        starts_ms.push(start_ms);
        (timestamp_ms, value)
    }));
    if starts_ms.iter().all(|start_ms| *start_ms == 0) {
        return Ok(chunks);
    }
    let mut rest = &starts_ms[..];
    for chunk in &mut chunks {
        let count = usize::from(super::sample_count(chunk)?).min(rest.len());
        let (of_chunk, after) = rest.split_at(count);
        with_starts(chunk, of_chunk)?;
        rest = after;
    }
    Ok(chunks)
}

/// Adds start timestamps to a plain chunk, unless all of them are unknown.
fn with_starts(chunk: &mut Chunk, starts_ms: &[i64]) -> Result<(), ChunkError> {
    if starts_ms.iter().all(|start_ms| *start_ms == 0) {
        return Ok(());
    }
    let (encoding, data) = match chunk.encoding {
        Encoding::Xor => {
            let all = samples(chunk)?.collect::<Result<Vec<_>, _>>()?;
            let starts_ms = starts_ms.iter().copied();
            (Encoding::Xor2, Some(encode_xor2(all.into_iter().zip(starts_ms))))
        }
        Encoding::Histogram => (Encoding::HistogramSt, put_starts::<u64>(&chunk.data, starts_ms)?),
        Encoding::FloatHistogram => {
            (Encoding::FloatHistogramSt, put_starts::<f64>(&chunk.data, starts_ms)?)
        }
        // `encode` makes no such chunks.
        Encoding::Xor2 | Encoding::HistogramSt | Encoding::FloatHistogramSt => return Ok(()),
    };
    // A histogram chunk of too many samples for the encoding stays plain.
    if let Some(data) = data {
        *chunk = Chunk { encoding, data: data.into(), ..*chunk };
    }
    Ok(())
}

/// Converts a chunk to an encoding that every reader knows, without start timestamps.
pub fn plain(chunk: Chunk) -> Result<Chunk, ChunkError> {
    let (encoding, data) = match chunk.encoding {
        Encoding::Xor | Encoding::Histogram | Encoding::FloatHistogram => return Ok(chunk),
        Encoding::Xor2 => {
            let mut appender = XorAppender::new();
            for sample in Xor2Iter::new(&chunk.data)? {
                let sample = sample?;
                appender.append(sample.timestamp_ms, sample.value);
            }
            (Encoding::Xor, appender.data())
        }
        Encoding::HistogramSt => (Encoding::Histogram, take_starts::<u64>(&chunk.data)?),
        Encoding::FloatHistogramSt => (Encoding::FloatHistogram, take_starts::<f64>(&chunk.data)?),
    };
    Ok(Chunk { encoding, data: data.into(), ..chunk })
}

/// Returns whether the chunk holds floats without start timestamps, as every XOR chunk does.
pub fn is_plain_floats(chunk: &Chunk) -> bool {
    match chunk.encoding {
        Encoding::Xor => true,
        Encoding::Xor2 => has_no_starts(&chunk.data),
        _ => false,
    }
}

//! Chunks of any encoding: reading their values, and writing values of mixed kinds.

use super::histogram::{Appended, CounterHeader, HistogramAppender, HistogramIter};
use super::{Chunk, ChunkError, Encoding, SAMPLES_PER_CHUNK, Xor2Iter, XorAppender, XorIter};
use crate::model::{Sample, Value};

/// Bytes of a full chunk of histograms, as in Prometheus; their number says little about the size.
const HISTOGRAM_CHUNK_BYTES: usize = 1024;

/// Smallest number of histograms in a chunk that ends because it is full.
const HISTOGRAMS_PER_CHUNK_MIN: usize = 10;

/// Iterator over a chunk's values, first to last, with their times in milliseconds.
#[derive(Clone, Debug)]
pub enum Values<'a> {
    /// The values of an XOR chunk.
    Floats(XorIter<'a>),
    /// The values of an XOR2 chunk.
    FloatsWithStarts(Xor2Iter<'a>),
    /// The values of a chunk of histograms with integer counts.
    Histograms(Box<HistogramIter<'a, u64>>),
    /// The values of a chunk of histograms with float counts.
    FloatHistograms(Box<HistogramIter<'a, f64>>),
}

/// A chunk under construction, with one or more values of one kind. Histogram appenders are boxed
/// to keep the type small, since most series hold floats.
#[derive(Debug)]
pub enum ValueAppender {
    /// Appends floats to an XOR chunk.
    Float(XorAppender),
    /// Appends histograms with integer counts.
    Histogram(Box<HistogramAppender<u64>>),
    /// Appends histograms with float counts.
    FloatHistogram(Box<HistogramAppender<f64>>),
}

/// Returns an iterator over the values of a chunk.
pub fn values(chunk: &Chunk) -> Result<Values<'_>, ChunkError> {
    values_of(chunk.encoding, &chunk.data)
}

/// Returns an iterator over the values in a chunk's data.
pub fn values_of(encoding: Encoding, data: &[u8]) -> Result<Values<'_>, ChunkError> {
    Ok(match encoding {
        Encoding::Xor => Values::Floats(XorIter::new(data)?),
        Encoding::Histogram => Values::Histograms(Box::new(HistogramIter::new(data)?)),
        Encoding::FloatHistogram => Values::FloatHistograms(Box::new(HistogramIter::new(data)?)),
        Encoding::Xor2 => Values::FloatsWithStarts(Xor2Iter::new(data)?),
        Encoding::HistogramSt => Values::Histograms(Box::new(HistogramIter::with_starts(data)?)),
        Encoding::FloatHistogramSt => {
            Values::FloatHistograms(Box::new(HistogramIter::with_starts(data)?))
        }
    })
}

/// Encodes values, which ascend in time, as chunks. A new chunk begins where the kind changes,
/// after [`ValueAppender::is_full`] returned true, and where histograms require it.
pub fn encode(values: impl Iterator<Item = (i64, Value)>) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut open: Option<ValueAppender> = None;
    for (timestamp_ms, value) in values {
        let next = match &mut open {
            Some(appender) if !appender.is_full() => appender.append(timestamp_ms, &value),
            // The full chunk's last histogram decides the header of the next one.
            before => Some(ValueAppender::new(timestamp_ms, &value, before.as_ref())),
        };
        if let Some(next) = next {
            chunks.extend(open.replace(next).and_then(|full| full.to_chunk()));
        }
    }
    chunks.extend(open.and_then(|last| last.to_chunk()));
    chunks
}

impl ValueAppender {
    /// Creates a chunk that begins with this value. `before` is the previous chunk of the series,
    /// if that chunk ended because it was full or its block ended.
    pub fn new(timestamp_ms: i64, value: &Value, before: Option<&ValueAppender>) -> ValueAppender {
        match (value, before) {
            (Value::Float(value), _) => {
                let mut appender = XorAppender::new();
                appender.append(timestamp_ms, *value);
                ValueAppender::Float(appender)
            }
            (Value::Histogram(histogram), before) => {
                let header = match before {
                    Some(ValueAppender::Histogram(before)) => before.header_of_next(histogram),
                    _ => CounterHeader::of_first(histogram.reset_hint),
                };
                let appender = HistogramAppender::new(timestamp_ms, histogram, header);
                ValueAppender::Histogram(Box::new(appender))
            }
            (Value::FloatHistogram(histogram), before) => {
                let header = match before {
                    Some(ValueAppender::FloatHistogram(before)) => before.header_of_next(histogram),
                    _ => CounterHeader::of_first(histogram.reset_hint),
                };
                let appender = HistogramAppender::new(timestamp_ms, histogram, header);
                ValueAppender::FloatHistogram(Box::new(appender))
            }
        }
    }

    /// Adds a later value, or returns the chunk that the value begins; this chunk is complete then.
    #[inline]
    pub fn append(&mut self, timestamp_ms: i64, value: &Value) -> Option<ValueAppender> {
        let header = match (&mut *self, value) {
            (ValueAppender::Float(appender), Value::Float(value)) => {
                appender.append(timestamp_ms, *value);
                return None;
            }
            (ValueAppender::Histogram(appender), Value::Histogram(histogram)) => {
                appender.append(timestamp_ms, histogram)
            }
            (ValueAppender::FloatHistogram(appender), Value::FloatHistogram(histogram)) => {
                appender.append(timestamp_ms, histogram)
            }
            // After a change of kind there is nothing to compare a counter with.
            _ => return Some(ValueAppender::new(timestamp_ms, value, None)),
        };
        match (header, value) {
            (Appended::NeedsNewChunk(header), Value::Histogram(histogram)) => {
                let next = HistogramAppender::new(timestamp_ms, histogram, header);
                Some(ValueAppender::Histogram(Box::new(next)))
            }
            (Appended::NeedsNewChunk(header), Value::FloatHistogram(histogram)) => {
                let next = HistogramAppender::new(timestamp_ms, histogram, header);
                Some(ValueAppender::FloatHistogram(Box::new(next)))
            }
            _ => None,
        }
    }

    /// Returns the chunk if it has floats and room for another.
    #[inline]
    pub fn open_floats(&mut self) -> Option<&mut XorAppender> {
        match self {
            ValueAppender::Float(appender) => {
                (usize::from(appender.count()) < SAMPLES_PER_CHUNK).then_some(appender)
            }
            _ => None,
        }
    }

    /// Returns whether the next value should begin a new chunk: after [`SAMPLES_PER_CHUNK`] floats,
    /// or when at least [`HISTOGRAMS_PER_CHUNK_MIN`] histograms take [`HISTOGRAM_CHUNK_BYTES`].
    #[inline]
    pub fn is_full(&self) -> bool {
        let count = usize::from(self.count());
        match self {
            ValueAppender::Float(_) => count >= SAMPLES_PER_CHUNK,
            ValueAppender::Histogram(appender) => {
                count >= HISTOGRAMS_PER_CHUNK_MIN && appender.data().len() >= HISTOGRAM_CHUNK_BYTES
            }
            ValueAppender::FloatHistogram(appender) => {
                count >= HISTOGRAMS_PER_CHUNK_MIN && appender.data().len() >= HISTOGRAM_CHUNK_BYTES
            }
        }
    }

    /// Returns the value at exactly this time, if any.
    pub fn value_at(&self, timestamp_ms: i64) -> Result<Option<Value>, ChunkError> {
        match self {
            // A sample that is sent again is mostly the last one, which need not be decoded.
            ValueAppender::Float(appender)
                if appender.last_timestamp_ms() == Some(timestamp_ms) =>
            {
                Ok(appender.last_value().map(Value::Float))
            }
            _ => match self.to_chunk() {
                Some(chunk) => values(&chunk)?.at(timestamp_ms),
                None => Ok(None),
            },
        }
    }

    /// Returns the encoding of the chunk under construction.
    pub fn encoding(&self) -> Encoding {
        match self {
            ValueAppender::Float(_) => Encoding::Xor,
            ValueAppender::Histogram(_) => Encoding::Histogram,
            ValueAppender::FloatHistogram(_) => Encoding::FloatHistogram,
        }
    }

    /// Number of values appended so far.
    #[inline]
    pub fn count(&self) -> u16 {
        match self {
            ValueAppender::Float(appender) => appender.count(),
            ValueAppender::Histogram(appender) => appender.count(),
            ValueAppender::FloatHistogram(appender) => appender.count(),
        }
    }

    /// Returns the chunk so far, with a copy of its bytes.
    pub fn to_chunk(&self) -> Option<Chunk> {
        match self {
            ValueAppender::Float(appender) => appender.to_chunk(),
            ValueAppender::Histogram(appender) => Some(appender.to_chunk()),
            ValueAppender::FloatHistogram(appender) => Some(appender.to_chunk()),
        }
    }

    /// Returns the time of the first value.
    pub fn first_timestamp_ms(&self) -> Option<i64> {
        match self {
            ValueAppender::Float(appender) => appender.first_timestamp_ms(),
            ValueAppender::Histogram(appender) => Some(appender.first_timestamp_ms()),
            ValueAppender::FloatHistogram(appender) => Some(appender.first_timestamp_ms()),
        }
    }

    /// Returns the time of the last value.
    pub fn last_timestamp_ms(&self) -> Option<i64> {
        match self {
            ValueAppender::Float(appender) => appender.last_timestamp_ms(),
            ValueAppender::Histogram(appender) => Some(appender.last_timestamp_ms()),
            ValueAppender::FloatHistogram(appender) => Some(appender.last_timestamp_ms()),
        }
    }
}

impl Values<'_> {
    /// Returns the start timestamp of the value returned last, in milliseconds; 0 if unknown.
    pub fn start_ms(&self) -> i64 {
        match self {
            Values::Floats(_) => 0,
            Values::FloatsWithStarts(floats) => floats.start_ms(),
            Values::Histograms(histograms) => histograms.start_ms(),
            Values::FloatHistograms(histograms) => histograms.start_ms(),
        }
    }

    /// Returns the value at exactly this time, if any, from the current position on.
    pub fn at(self, timestamp_ms: i64) -> Result<Option<Value>, ChunkError> {
        for value in self {
            let (held_ms, value) = value?;
            // Values ascend in time, so a later value proves that none has this time.
            if held_ms >= timestamp_ms {
                return Ok((held_ms == timestamp_ms).then_some(value));
            }
        }
        Ok(None)
    }
}

impl Iterator for Values<'_> {
    type Item = Result<(i64, Value), ChunkError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(match self {
            Values::Floats(floats) => floats.next()?.map(|sample| {
                let Sample { timestamp_ms, value } = sample;
                (timestamp_ms, Value::Float(value))
            }),
            Values::FloatsWithStarts(floats) => floats.next()?.map(|sample| {
                let Sample { timestamp_ms, value } = sample;
                (timestamp_ms, Value::Float(value))
            }),
            Values::Histograms(histograms) => {
                histograms.next()?.map(|(timestamp_ms, histogram)| (timestamp_ms, histogram.into()))
            }
            Values::FloatHistograms(histograms) => {
                histograms.next()?.map(|(timestamp_ms, histogram)| (timestamp_ms, histogram.into()))
            }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Values::Floats(floats) => floats.size_hint(),
            Values::FloatsWithStarts(floats) => floats.size_hint(),
            Values::Histograms(histograms) => histograms.size_hint(),
            Values::FloatHistograms(histograms) => histograms.size_hint(),
        }
    }
}

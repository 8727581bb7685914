//! Chunks of any encoding: reading their values, and writing values of mixed kinds.

use super::histogram::{Appended, CounterHeader, HistogramAppender, HistogramIter};
use super::{Chunk, ChunkError, Encoding, SAMPLES_PER_CHUNK, Xor2Iter, XorAppender, XorIter};
use crate::model::{Sample, Value};

/// Bytes after which a chunk of histograms is full, as upstream has it: histograms differ so much
/// in size that their number says little.
const HISTOGRAM_CHUNK_BYTES: usize = 1024;

/// Fewest histograms of a chunk that ends because it is full.
const HISTOGRAMS_PER_CHUNK_MIN: usize = 10;

/// The values of a chunk, first to last, with their times in milliseconds.
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

/// A chunk that values of one kind are added to; it holds at least one. Hardly larger than an
/// [`XorAppender`], since most series hold floats.
#[derive(Debug)]
pub enum ValueAppender {
    /// Makes an XOR chunk.
    Float(XorAppender),
    /// Makes a chunk of histograms with whole counts.
    Histogram(Box<HistogramAppender<u64>>),
    /// Makes a chunk of histograms with fractional counts.
    FloatHistogram(Box<HistogramAppender<f64>>),
}

/// The values of a chunk.
pub fn values(chunk: &Chunk) -> Result<Values<'_>, ChunkError> {
    values_of(chunk.encoding, &chunk.data)
}

/// The values of a chunk's data.
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

/// Chunks of these values, which ascend in time; a new one where the kind changes, after
/// [`ValueAppender::is_full`], and where histograms ask for it.
pub fn encode(values: impl Iterator<Item = (i64, Value)>) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut open: Option<ValueAppender> = None;
    for (timestamp_ms, value) in values {
        let next = match &mut open {
            Some(appender) if !appender.is_full() => appender.append(timestamp_ms, &value),
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
    /// A chunk that begins with this value. `before` is the chunk that the series' earlier values
    /// are in, if the new one was begun because that one is full or its time is over.
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

    /// Adds a value, which must be later than the one before; gives a new chunk if the value had
    /// to begin one. This one is finished then.
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

    /// The chunk of floats that one more can be added to.
    #[inline]
    pub fn open_floats(&mut self) -> Option<&mut XorAppender> {
        match self {
            ValueAppender::Float(appender) => {
                (usize::from(appender.count()) < SAMPLES_PER_CHUNK).then_some(appender)
            }
            _ => None,
        }
    }

    /// Whether the next value should begin a new chunk: after [`SAMPLES_PER_CHUNK`] floats, or
    /// when histograms, of which there are at least [`HISTOGRAMS_PER_CHUNK_MIN`], take
    /// [`HISTOGRAM_CHUNK_BYTES`].
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

    /// The value at exactly this time, if there is one.
    pub fn value_at(&self, timestamp_ms: i64) -> Result<Option<Value>, ChunkError> {
        match self {
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

    /// What kind of chunk this makes.
    pub fn encoding(&self) -> Encoding {
        match self {
            ValueAppender::Float(_) => Encoding::Xor,
            ValueAppender::Histogram(_) => Encoding::Histogram,
            ValueAppender::FloatHistogram(_) => Encoding::FloatHistogram,
        }
    }

    /// How many values were appended.
    #[inline]
    pub fn count(&self) -> u16 {
        match self {
            ValueAppender::Float(appender) => appender.count(),
            ValueAppender::Histogram(appender) => appender.count(),
            ValueAppender::FloatHistogram(appender) => appender.count(),
        }
    }

    /// The chunk so far as one to hand out.
    pub fn to_chunk(&self) -> Option<Chunk> {
        match self {
            ValueAppender::Float(appender) => appender.to_chunk(),
            ValueAppender::Histogram(appender) => Some(appender.to_chunk()),
            ValueAppender::FloatHistogram(appender) => Some(appender.to_chunk()),
        }
    }

    /// Time of the first value.
    pub fn first_timestamp_ms(&self) -> Option<i64> {
        match self {
            ValueAppender::Float(appender) => appender.first_timestamp_ms(),
            ValueAppender::Histogram(appender) => Some(appender.first_timestamp_ms()),
            ValueAppender::FloatHistogram(appender) => Some(appender.first_timestamp_ms()),
        }
    }

    /// Time of the last value.
    pub fn last_timestamp_ms(&self) -> Option<i64> {
        match self {
            ValueAppender::Float(appender) => appender.last_timestamp_ms(),
            ValueAppender::Histogram(appender) => Some(appender.last_timestamp_ms()),
            ValueAppender::FloatHistogram(appender) => Some(appender.last_timestamp_ms()),
        }
    }
}

impl Values<'_> {
    /// The start timestamp of the value that was given last, in milliseconds; 0 if it is not known.
    pub fn start_ms(&self) -> i64 {
        match self {
            Values::Floats(_) => 0,
            Values::FloatsWithStarts(floats) => floats.start_ms(),
            Values::Histograms(histograms) => histograms.start_ms(),
            Values::FloatHistograms(histograms) => histograms.start_ms(),
        }
    }

    /// The value at exactly this time, if there is one. Reads on from where the iteration stands.
    pub fn at(self, timestamp_ms: i64) -> Result<Option<Value>, ChunkError> {
        for value in self {
            let (held_ms, value) = value?;
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

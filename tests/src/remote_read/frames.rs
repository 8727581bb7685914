//! The frames of a streamed answer and the rules for them.
//!
//! ```text
//! ┌────────────────┬──────────────────────────────┬─────────────────────────────┐
//! │ length uvarint │ CRC-32C of the payload, BE   │ payload: ChunkedReadResponse│  × frames
//! └────────────────┴──────────────────────────────┴─────────────────────────────┘
//! ```
//!
//! The length counts the payload only, and nothing follows the last frame. Rules: one series in a
//! frame, labels sorted, series in the order of their labels and each in one run of frames, queries
//! in order; chunks in order, not overlapping, overlapping the requested range, and with the true
//! times of their first and last sample; a frame ends as soon as it is full.

use super::labels;
use crate::histogram::{self, Kind, Point};
use crate::proto::prometheus::chunk::Encoding;
use crate::proto::prometheus::{Chunk, ChunkedReadResponse, Query};
use crate::series::{Labels, Sample};
use crate::xor_chunk::{self, ChunkError};
use prost::Message;
use std::io::{self, Read};

/// Maximum length of a payload that clients accept.
pub const FRAME_BYTES_MAX: u64 = 50_000_000;
/// Size of labels and chunks at which a frame takes no further chunk.
pub const FRAME_BYTES_FULL: usize = 1 << 20;

/// A rule that an answer broke.
#[derive(Debug, thiserror::Error)]
pub enum Violation {
    /// An answer must have one result per query, in order.
    #[error("{results} results for {queries} queries")]
    ResultCount {
        results: usize,
        /// Number of queries in the request.
        queries: usize,
    },
    /// Labels must be sorted by name, distinct, without empty names and values.
    #[error("labels are not sorted, distinct and filled: {labels}")]
    Labels {
        /// Labels as the answer has them.
        labels: Labels,
    },
    /// An answer must not contain series without samples.
    #[error("{series} has no samples")]
    NoSamples {
        /// Labels of the series without samples.
        series: Labels,
    },
    /// Samples must ascend strictly in time.
    #[error("the samples of {series} are not in order")]
    SampleOrder {
        /// Labels of the series with these samples.
        series: Labels,
    },
    /// Samples must be within the requested range.
    #[error("{series} has {timestamp_ms}, outside the asked range")]
    OutsideRange {
        series: Labels,
        /// Time of the sample outside the range.
        timestamp_ms: i64,
    },
    /// The bytes end inside a frame.
    #[error("the stream ends inside frame {frame}")]
    Truncated {
        /// Number of the frame, counted from zero.
        frame: u64,
    },
    /// The length of a frame is not a number, or too large for clients.
    #[error("frame {frame} announces an impossible length")]
    Length {
        /// Number of the frame, counted from zero.
        frame: u64,
    },
    /// The payload does not match its checksum.
    #[error("the checksum of frame {frame} is {announced:#010x}, its payload has {found:#010x}")]
    Checksum {
        /// Number of the frame, counted from zero.
        frame: u64,
        /// Checksum in the frame's header.
        announced: u32,
        /// Checksum computed from the payload.
        found: u32,
    },
    /// A frame must have exactly one series, with chunks.
    #[error("a frame has {series} series")]
    SeriesPerFrame {
        /// Number of series in the frame.
        series: usize,
    },
    /// Query indexes must ascend and exist.
    #[error("query index {index} after {previous}, of {queries} queries")]
    QueryIndex {
        index: i64,
        /// Index in the frame before.
        previous: usize,
        /// Number of queries in the request.
        queries: usize,
    },
    /// Series must ascend by label set.
    #[error("{next} after {previous}")]
    SeriesOrder {
        previous: Labels,
        /// Labels of the series that is out of order.
        next: Labels,
    },
    /// Chunks must ascend and not overlap.
    #[error("a chunk of {series} starts at {min_ms}, the one before ends at {previous_max_ms}")]
    ChunkOrder {
        series: Labels,
        /// Start of the second chunk.
        min_ms: i64,
        /// End of the chunk before.
        previous_max_ms: i64,
    },
    /// The announced times must be those of the first and last sample.
    #[error("a chunk of {series} announces {announced:?} and holds {found:?}")]
    ChunkTimes {
        series: Labels,
        /// Times in the message, first and last.
        announced: (i64, i64),
        /// Times of the first and last sample.
        found: (i64, i64),
    },
    /// Encodings must be known to every client; if only floats are requested, those of floats.
    #[error("a chunk of {series} has encoding {encoding}")]
    Encoding {
        series: Labels,
        /// Number of the encoding in the message.
        encoding: i32,
    },
    /// The chunk's bytes are damaged.
    #[error("a chunk of {series} does not decode")]
    Chunk {
        /// Labels of the chunk's series.
        series: Labels,
        source: ChunkError,
    },
    /// A full frame must not take a further chunk.
    #[error("a frame of {series} had {bytes} bytes before its last chunk")]
    FrameSize {
        series: Labels,
        /// Size of labels and of all chunks but the last.
        bytes: usize,
    },
}

/// A frame whose checksum was verified.
#[derive(Debug)]
pub struct Frame {
    pub payload: Vec<u8>,
    /// Size of the frame with its header.
    pub bytes: u64,
}

/// Splits a stream into frames.
pub struct FrameReader<R> {
    source: R,
    frames: u64,
}

impl<R: Read> FrameReader<R> {
    /// Starts at the first frame.
    pub fn new(source: R) -> Self {
        FrameReader { source, frames: 0 }
    }

    /// Returns the next frame, or `None` at a clean end.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, super::ReadError> {
        let Some((length, length_bytes)) = self.length()? else { return Ok(None) };
        let frame = self.frames;
        let mut announced = [0; 4];
        self.fill(&mut announced)?;
        let mut payload = vec![0; length as usize];
        self.fill(&mut payload)?;
        let (announced, found) = (u32::from_be_bytes(announced), crc32c::crc32c(&payload));
        if announced != found {
            return Err(Violation::Checksum { frame, announced, found }.into());
        }
        self.frames += 1;
        Ok(Some(Frame { payload, bytes: length_bytes + 4 + length }))
    }

    /// Reads the payload's length; returns it with the number of bytes that encode it.
    fn length(&mut self) -> Result<Option<(u64, u64)>, super::ReadError> {
        let frame = self.frames;
        let mut length = 0u64;
        for position in 0..5u64 {
            let mut byte = [0];
            if position == 0 {
                match self.source.read(&mut byte) {
                    Ok(0) => return Ok(None),
                    Ok(_) => {}
                    Err(error) => return Err(error.into()),
                }
            } else {
                self.fill(&mut byte)?;
            }
            length |= u64::from(byte[0] & 0x7f) << (7 * position);
            if byte[0] < 0x80 {
                let fits = length <= FRAME_BYTES_MAX;
                let length = fits.then_some(length).ok_or(Violation::Length { frame })?;
                return Ok(Some((length, position + 1)));
            }
        }
        Err(Violation::Length { frame }.into())
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), super::ReadError> {
        let frame = self.frames;
        self.source.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Violation::Truncated { frame }.into(),
            _ => error.into(),
        })
    }
}

#[derive(Debug)]
pub struct Part {
    /// Index of the query that this frame answers.
    pub query_index: usize,
    pub labels: Labels,
    /// Floats of all chunks in the frame.
    pub samples: Vec<Sample>,
    /// Histograms of all chunks in the frame.
    pub histograms: Vec<Point>,
    /// Number of chunks in the frame.
    pub chunks: u64,
}

/// Checks the rules from frame to frame.
pub struct StreamRules<'a> {
    queries: &'a [Query],
    query_index: usize,
    /// The last series and the time of its last sample.
    previous: Option<(Labels, i64)>,
}

impl<'a> StreamRules<'a> {
    pub fn new(queries: &'a [Query]) -> Self {
        StreamRules { queries, query_index: 0, previous: None }
    }

    /// Checks one payload and decodes its chunks.
    pub fn check(&mut self, payload: &[u8]) -> Result<Part, super::ReadError> {
        let message = ChunkedReadResponse::decode(payload)?;
        self.check_query(message.query_index)?;
        let [series] = message.chunked_series.as_slice() else {
            return Err(Violation::SeriesPerFrame { series: message.chunked_series.len() }.into());
        };
        let labels = labels(&series.labels)?;
        if series.chunks.is_empty() {
            return Err(Violation::NoSamples { series: labels }.into());
        }
        let label_bytes: usize = series.labels.iter().map(Message::encoded_len).sum();
        check_frame_size(&labels, label_bytes, &series.chunks)?;

        let mut last_ms = match self.previous.take() {
            Some((previous, last_ms)) if previous == labels => Some(last_ms),
            Some((previous, _)) if previous > labels => {
                return Err(Violation::SeriesOrder { previous, next: labels }.into());
            }
            _ => None,
        };
        let query = &self.queries[self.query_index];
        let (mut samples, mut histograms) = (Vec::new(), Vec::new());
        for chunk in &series.chunks {
            match check_chunk(&labels, chunk, last_ms, query)? {
                Decoded::Floats(floats) => samples.extend(floats),
                Decoded::Histograms(points) => histograms.extend(points),
            }
            last_ms = Some(chunk.max_time_ms);
        }
        self.previous = last_ms.map(|last_ms| (labels.clone(), last_ms));
        let chunks = series.chunks.len() as u64;
        Ok(Part { query_index: self.query_index, labels, samples, histograms, chunks })
    }

    fn check_query(&mut self, index: i64) -> Result<(), Violation> {
        let (previous, queries) = (self.query_index, self.queries.len());
        let known = usize::try_from(index).ok().filter(|i| (previous..queries).contains(i));
        let known = known.ok_or(Violation::QueryIndex { index, previous, queries })?;
        if known != previous {
            self.previous = None;
        }
        self.query_index = known;
        Ok(())
    }
}

fn check_frame_size(
    labels: &Labels,
    label_bytes: usize,
    chunks: &[Chunk],
) -> Result<(), Violation> {
    let all_but_last = &chunks[..chunks.len() - 1];
    let bytes = label_bytes + all_but_last.iter().map(Message::encoded_len).sum::<usize>();
    if all_but_last.is_empty() || bytes < FRAME_BYTES_FULL {
        return Ok(());
    }
    Err(Violation::FrameSize { series: labels.clone(), bytes })
}

/// Decoded samples of a chunk.
enum Decoded {
    Floats(Vec<Sample>),
    Histograms(Vec<Point>),
}

impl Decoded {
    fn of(chunk: &Chunk) -> Option<Result<Decoded, ChunkError>> {
        Some(match Encoding::try_from(chunk.r#type).ok()? {
            Encoding::Xor => xor_chunk::decode(&chunk.data).map(Decoded::Floats),
            Encoding::Histogram => {
                histogram::chunk::decode(Kind::Whole, &chunk.data).map(Decoded::Histograms)
            }
            Encoding::FloatHistogram => {
                histogram::chunk::decode(Kind::Fractions, &chunk.data).map(Decoded::Histograms)
            }
            _ => return None,
        })
    }

    fn times_ms(&self) -> Vec<i64> {
        match self {
            Decoded::Floats(samples) => samples.iter().map(|s| s.timestamp_ms).collect(),
            Decoded::Histograms(points) => points.iter().map(|p| p.timestamp_ms).collect(),
        }
    }
}

fn check_chunk(
    labels: &Labels,
    chunk: &Chunk,
    previous_max_ms: Option<i64>,
    query: &Query,
) -> Result<Decoded, Violation> {
    let series = || labels.clone();
    let (min_ms, max_ms) = (chunk.min_time_ms, chunk.max_time_ms);
    if let Some(previous_max_ms) = previous_max_ms.filter(|previous| *previous >= min_ms) {
        return Err(Violation::ChunkOrder { series: series(), min_ms, previous_max_ms });
    }
    if max_ms < query.start_timestamp_ms || min_ms > query.end_timestamp_ms {
        return Err(Violation::OutsideRange { series: series(), timestamp_ms: min_ms });
    }
    let decoded = Decoded::of(chunk)
        .ok_or_else(|| Violation::Encoding { series: series(), encoding: chunk.r#type })?
        .map_err(|source| Violation::Chunk { series: series(), source })?;
    let times_ms = decoded.times_ms();
    if !times_ms.is_sorted_by(|a, b| a < b) {
        return Err(Violation::SampleOrder { series: series() });
    }
    // A decoded chunk has at least one sample.
    match times_ms.first().copied().zip(times_ms.last().copied()) {
        Some(found) if found != (min_ms, max_ms) => {
            let announced = (min_ms, max_ms);
            Err(Violation::ChunkTimes { series: series(), announced, found })
        }
        _ => Ok(decoded),
    }
}

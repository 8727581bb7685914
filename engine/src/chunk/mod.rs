//! Chunks: one series' run of samples, compressed. No files, no series.
//!
//! [`Chunk`] is the unit that blocks store and reads return. [`XorAppender`] encodes floats,
//! [`XorIter`] and [`read_floats`] decode them; [`HistogramAppender`] and [`HistogramIter`] are for
//! histograms; [`ValueAppender`] and [`values()`] handle both. Layouts are in `xor` and
//! `histogram/mod.rs`, with start timestamps in `xor2.rs` and `starts.rs`; `started.rs` converts.

mod error;
mod histogram;
mod started;
mod starts;
mod state;
mod values;
mod varbit;
mod without;
mod xor;
mod xor2;
mod xor2_iter;
mod xor_iter;

#[cfg(test)]
pub(crate) mod start_tests;
#[cfg(test)]
mod tests;

pub use error::ChunkError;
pub use histogram::{Appended, ChunkCount, CounterHeader, HistogramAppender, HistogramIter};
pub use started::{StartedValue, encode_started, is_plain_floats, plain, started_values};
pub use values::{ValueAppender, Values, encode, values, values_of};
pub use without::without;
pub use xor::{SAMPLES_PER_CHUNK_MAX, XorAppender};
pub use xor_iter::{XorIter, read_floats};
pub use xor2_iter::Xor2Iter;

use std::fmt;
use std::rc::Rc;

/// Number of samples after which the head, and a block of level 1, begins a new chunk.
pub const SAMPLES_PER_CHUNK: usize = 120;

/// Format of a chunk's bytes; the numbers are those on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Encoding {
    /// Floats: each value XORed with the one before.
    Xor = 1,
    /// Native histograms with integer counts.
    Histogram = 2,
    /// Native histograms with float counts.
    FloatHistogram = 3,
    /// Floats with start timestamps, which Prometheus writes if enabled; the head never does.
    Xor2 = 4,
    /// Native histograms with integer counts and start timestamps.
    HistogramSt = 5,
    /// Native histograms with float counts and start timestamps.
    FloatHistogramSt = 6,
}

/// A finished run of samples of one series, in time order.
#[derive(Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Format by which `data` is decoded.
    pub encoding: Encoding,
    /// Timestamp of the first sample.
    pub min_time_ms: i64,
    /// Timestamp of the last sample.
    pub max_time_ms: i64,
    /// Encoded samples: `data` in Prometheus' `chunks.md`, without length, encoding and checksum.
    pub data: Rc<[u8]>,
}

/// Returns the samples of an XOR chunk; [`ChunkError::NotFloats`] for other encodings.
pub fn samples(chunk: &Chunk) -> Result<XorIter<'_>, ChunkError> {
    match chunk.encoding {
        Encoding::Xor => XorIter::new(&chunk.data),
        other => Err(ChunkError::NotFloats { encoding: other }),
    }
}

/// Returns the sample count, which is in the header of every encoding.
pub fn sample_count(chunk: &Chunk) -> Result<u16, ChunkError> {
    let header = chunk.data.first_chunk::<2>().ok_or(ChunkError::NoHeader)?;
    let count = u16::from_be_bytes(*header);
    Ok(match chunk.encoding {
        // The two topmost bits of this count are the counter-reset header.
        Encoding::HistogramSt | Encoding::FloatHistogramSt => {
            count & histogram::SAMPLES_MAX_WITH_STARTS
        }
        _ => count,
    })
}

impl Encoding {
    /// Returns the encoding with this number on disk, if it is a known one.
    pub fn try_from_u8(number: u8) -> Option<Encoding> {
        match number {
            1 => Some(Encoding::Xor),
            2 => Some(Encoding::Histogram),
            3 => Some(Encoding::FloatHistogram),
            4 => Some(Encoding::Xor2),
            5 => Some(Encoding::HistogramSt),
            6 => Some(Encoding::FloatHistogramSt),
            _ => None,
        }
    }

    /// Returns whether the encoding has no start timestamps, so that every reader knows it.
    pub fn is_plain(self) -> bool {
        matches!(self, Encoding::Xor | Encoding::Histogram | Encoding::FloatHistogram)
    }

    /// Returns whether the samples are floats.
    pub fn is_floats(self) -> bool {
        matches!(self, Encoding::Xor | Encoding::Xor2)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encoding::Xor => "XOR",
            Encoding::Histogram => "histogram",
            Encoding::FloatHistogram => "float histogram",
            Encoding::Xor2 => "XOR2",
            Encoding::HistogramSt => "histogram ST",
            Encoding::FloatHistogramSt => "float histogram ST",
        })
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Chunk { encoding, min_time_ms, max_time_ms, data } = self;
        write!(f, "{encoding} chunk of {} bytes, {min_time_ms}..={max_time_ms} ms", data.len())
    }
}

//! Why a chunk cannot be read.

use super::Encoding;

/// An error in the bytes of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The bytes end before the sample count does.
    #[error("the chunk is too short to hold its sample count")]
    NoHeader,
    /// The bytes end within a sample.
    #[error("the chunk's bytes end within sample {sample} of {count}")]
    CutShort {
        /// Position of that sample, from 0.
        sample: u16,
        /// Number of samples that the chunk claims to hold.
        count: u16,
    },
    /// The zeros and the bits that a value claims to have exceed 64 bits.
    #[error("sample {sample} of {count} claims {leading_zeros} zeros before {bits} bits of value")]
    ValueTooWide {
        /// Position of that sample, from 0.
        sample: u16,
        /// Number of samples that the chunk claims to hold.
        count: u16,
        /// Number of zero bits before the bits of the value.
        leading_zeros: u8,
        /// Number of bits of the value that are stored.
        bits: u8,
    },
    /// The chunk is valid but holds no floats.
    #[error("a {encoding} chunk does not hold float samples")]
    NotFloats {
        /// Encoding that the chunk has instead.
        encoding: Encoding,
    },
    /// A histogram chunk with an impossible bucket layout.
    #[error("the chunk's bucket layout is damaged: {reason}")]
    BadLayout {
        /// The violated rule, as text.
        reason: &'static str,
    },
    /// Histograms of a schema that is not supported.
    #[error("the chunk's histograms have the unknown schema {schema}")]
    UnknownSchema {
        /// Schema number that the chunk has.
        schema: i32,
    },
    /// Histograms of a finer schema than is supported, with bucket indices too large to reduce.
    #[error("the chunk's histograms of schema {schema} cannot be reduced to a lower resolution")]
    NotReducible {
        /// Schema number that the chunk has.
        schema: i32,
    },
    /// Samples outside of the time range that the index or the head gives for the chunk.
    #[error("the chunk has samples outside of its time range")]
    OtherTimes,
    /// An encoding that is not supported.
    #[error("chunk encoding {number} is not supported")]
    UnknownEncoding {
        /// Number of the encoding on disk.
        number: u8,
    },
}

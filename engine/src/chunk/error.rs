//! Why a chunk cannot be read.

use super::Encoding;

/// An error in a chunk's bytes.
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
        /// How many samples the chunk claims to hold.
        count: u16,
    },
    /// A value's bits would not fit 64.
    #[error("sample {sample} of {count} claims {leading_zeros} zeros before {bits} bits of value")]
    ValueTooWide {
        /// Position of that sample, from 0.
        sample: u16,
        /// How many samples the chunk claims to hold.
        count: u16,
        /// Zero bits before the value's.
        leading_zeros: u8,
        /// Bits of the value that are given.
        bits: u8,
    },
    /// The chunk is whole but holds no floats.
    #[error("a {encoding} chunk does not hold float samples")]
    NotFloats {
        /// The chunk's encoding.
        encoding: Encoding,
    },
    /// A histogram chunk's beginning that cannot be true.
    #[error("the chunk's bucket layout is damaged: {reason}")]
    BadLayout {
        /// What is wrong.
        reason: &'static str,
    },
    /// Histograms of a kind that is not known here.
    #[error("the chunk's histograms have the unknown schema {schema}")]
    UnknownSchema {
        /// Its number.
        schema: i32,
    },
    /// Histograms of a finer schema than is used, with buckets beyond any index.
    #[error("the chunk's histograms of schema {schema} cannot be reduced to a lower resolution")]
    NotReducible {
        /// Its number.
        schema: i32,
    },
    /// Samples outside of the time range that the index or the head gives for the chunk.
    #[error("the chunk has samples outside of its time range")]
    OtherTimes,
    /// An encoding that is not known here.
    #[error("chunk encoding {number} is not supported")]
    UnknownEncoding {
        /// Its number on disk.
        number: u8,
    },
}

//! Histogram chunks: encodings 2 (whole counts), 3 (fractions), 5 and 6 (with start timestamps).
//!
//! Owns the layout that Prometheus' `tsdb/docs/format/chunks.md` ("Histogram chunk data", "Float
//! histogram chunk data") describes. After the three header bytes, fields are not aligned to bytes;
//! `int` and `uint` are those of `chunk/varbit.rs`.
//!
//! ```text
//! ┌───────────┬─────────────┬────────────────┬────────────┬───────────┬───────────┬──────────┬───
//! │ count u16 │ header byte │ zero threshold │ schema int │ positive  │ negative  │ custom   │ …
//! │ big-end.  │ top 2 bits  │ 1 or 9 bytes   │            │ spans     │ spans     │ bounds   │
//! └───────────┴─────────────┴────────────────┴────────────┴───────────┴───────────┴──────────┴───
//!                                                                        samples, zero-padded  │
//! header byte     00 unknown, 01 no counter reset, 10 counter reset, 11 gauge
//! zero threshold  0: zero; 1 ..= 254: 2^(byte - 244); 255: the float follows in 64 bits
//! spans           number uint, then of each: length uint, offset int
//! custom bounds   only with schema -53: number uint, then of each: 1 + thousandths as uint, or
//!                 0 (one bit) and the float in 64 bits
//!
//! sample          time  count  zero count  sum  positive buckets…  negative buckets…
//! first    whole  int   uint   uint        64   int                int
//!       fractions int   64     64          64   64                 64
//! later    whole  dod   dod    dod         xor  dod                dod
//!       fractions dod   xor    xor         xor  xor                xor
//! ```
//!
//! `dod`, an int, is the change of the step, the difference to the previous value (in the second
//! sample, the change from 0); `xor` is as in XOR chunks, with a window for each number. Buckets of
//! whole counts are themselves differences, each to the bucket before.
//!
//! A stale marker has the marker NaN as its sum, no buckets, and placeholders as its counts (whole:
//! dod 0; fractions: 0). Only further stale markers can follow in the chunk.
//!
//! Encodings 5 and 6 differ in the header, and in the bits of `starts.rs` after each sample:
//!
//! ```text
//! ┌────────────────────────────────────┬─────────────┬───
//! │ top 2 bits as in the header byte,  │ starts byte │ …
//! │ then 14 bits count, big-endian     │             │
//! └────────────────────────────────────┴─────────────┴───
//! ```
//!
//! Invariants: all samples of a chunk share one bucket layout; new buckets cause it to be
//! re-encoded. Counters never decrease within a chunk. The count is up to date after every append.
//! The bytes equal upstream's for the same samples, except for the header where upstream claims
//! that a counter continued without having compared (see [`CounterHeader`]).

mod append;
mod cells;
mod iter;
mod layout;
mod merge;
mod starts;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upstream_tests;

pub use append::{Appended, HistogramAppender};
pub use cells::ChunkCount;
pub use iter::HistogramIter;
pub(super) use starts::{put_starts, take_starts};

use crate::model::histogram::ResetHint;

/// Bytes before the bits: the count and the header byte.
const HEADER_BYTES: usize = 3;

/// Largest sample count of a chunk with start timestamps.
pub(super) const SAMPLES_MAX_WITH_STARTS: u16 = 0x3fff;

/// Counter-reset header of a chunk: the change of the counter since the previous chunk.
///
/// | | header |
/// | --- | --- |
/// | a gauge | `Gauge` |
/// | the sample itself says that the counter was reset, or its counts show it | `Reset` |
/// | the chunk before was full, and the counter continued | `NotReset` |
/// | anything else: no chunk before, another layout, after a stale marker, after a gauge | `Unknown` |
///
/// Prometheus writes `NotReset` instead of `Unknown` in two of these cases: for whole counts after
/// a gauge chunk, and for fractions of another layout after a full chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CounterHeader {
    /// Nothing is known; readers must compare.
    #[default]
    Unknown = 0b00,
    /// The counter continued from the chunk before.
    NotReset = 0b01,
    /// The counter was reset before the first sample.
    Reset = 0b10,
    /// The samples are gauges, not counters.
    Gauge = 0b11,
}

impl CounterHeader {
    /// Returns the header for a histogram that has no predecessor to be compared with.
    pub fn of_first(hint: ResetHint) -> CounterHeader {
        match hint {
            ResetHint::Gauge => CounterHeader::Gauge,
            ResetHint::Reset => CounterHeader::Reset,
            ResetHint::Unknown | ResetHint::NotReset => CounterHeader::Unknown,
        }
    }

    fn from_byte(byte: u8) -> CounterHeader {
        match byte >> 6 {
            0b01 => CounterHeader::NotReset,
            0b10 => CounterHeader::Reset,
            0b11 => CounterHeader::Gauge,
            _ => CounterHeader::Unknown,
        }
    }

    fn to_byte(self) -> u8 {
        (self as u8) << 6
    }

    /// Returns the hint of the sample at a position. For the first sample of a counter, the hint is
    /// unknown whatever the header says: the previous chunk may be deleted, or another one precede.
    fn hint_at(self, position: u16) -> ResetHint {
        match (self, position) {
            (CounterHeader::Gauge, _) => ResetHint::Gauge,
            (_, 0) => ResetHint::Unknown,
            _ => ResetHint::NotReset,
        }
    }
}

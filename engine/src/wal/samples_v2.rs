//! Type 11, read only: samples with start timestamps; the start timestamps are skipped.
//!
//! ```text
//! ┌─────────┬────────────┬───────────┬─────────────────┬──────────┐
//! │ type 11 │ ref varint │ ts varint │ start ts varint │ value 8B │   the first sample
//! ├─────────┴────┬───────┴────┬──────┴─────────────────┴──────────┤
//! │ Δref varint  │ Δts varint │ mark 1B ( start varint ) value 8B │   each further one
//! └──────────────┴────────────┴───────────────────────────────────┘
//! ```
//!
//! `Δref` is to the previous sample, `Δts` to the first one. The mark is 0 for no start timestamp,
//! 1 for that of the previous sample, 2 if one follows, as the difference to the first sample's.

use super::decode::{RecordError, split_be_u64};
use crate::codec::split_varint;
use crate::model::Sample;

/// Marks after which no start timestamp follows: none is known, or the previous one is valid.
const START_NOT_GIVEN: std::ops::RangeInclusive<u8> = 0..=1;

/// Decoder of the series reference and the time with which a row begins.
pub(super) enum RowHeads {
    /// Differences to this reference and time.
    ToFirst(u64, i64),
    /// Types 11 to 13: differences to the previous reference, and to the first time.
    WithStart {
        series_ref: u64,
        /// Time of the first row, once it is read.
        first_timestamp_ms: Option<i64>,
    },
}

impl RowHeads {
    pub fn with_start() -> RowHeads {
        RowHeads::WithStart { series_ref: 0, first_timestamp_ms: None }
    }

    pub fn split<'a>(&mut self, bytes: &'a [u8]) -> Option<((u64, i64), &'a [u8])> {
        let (ref_delta, rest) = split_varint(bytes)?;
        let (time, rest) = split_varint(rest)?;
        match self {
            RowHeads::ToFirst(first_ref, first_timestamp_ms) => {
                let series_ref = first_ref.wrapping_add(ref_delta as u64);
                Some(((series_ref, first_timestamp_ms.wrapping_add(time)), rest))
            }
            RowHeads::WithStart { series_ref, first_timestamp_ms } => {
                *series_ref = series_ref.wrapping_add(ref_delta as u64);
                match first_timestamp_ms {
                    None => {
                        *first_timestamp_ms = Some(time);
                        // The first row has no mark: a start timestamp always follows.
                        let (_start, rest) = split_varint(rest)?;
                        Some(((*series_ref, time), rest))
                    }
                    Some(first) => {
                        let (mark, mut rest) = rest.split_first()?;
                        // Start timestamps are not stored, so they are only skipped.
                        if !START_NOT_GIVEN.contains(mark) {
                            (_, rest) = split_varint(rest)?;
                        }
                        Some(((*series_ref, first.wrapping_add(time)), rest))
                    }
                }
            }
        }
    }
}

/// Iterates over (series reference, sample) of a record of type 11.
pub struct SampleV2Records<'a> {
    record: &'a [u8],
    rest: &'a [u8],
    heads: RowHeads,
}

impl<'a> SampleV2Records<'a> {
    pub(super) fn new(record: &'a [u8], rest: &'a [u8]) -> SampleV2Records<'a> {
        SampleV2Records { record, rest, heads: RowHeads::with_start() }
    }
}

impl Iterator for SampleV2Records<'_> {
    type Item = Result<(u64, Sample), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let head = self.heads.split(self.rest);
        let row = head.and_then(|(head, rest)| Some((head, split_be_u64(rest)?)));
        let Some(((series_ref, timestamp_ms), (bits, rest))) = row else {
            // A row has no length of its own, so nothing after a damaged row can be read.
            return Some(Err(RecordError::at(self.record, &mut self.rest)));
        };
        self.rest = rest;
        Some(Ok((series_ref, Sample { timestamp_ms, value: f64::from_bits(bits) })))
    }
}

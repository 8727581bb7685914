//! Start timestamps, at which counters began; encodings 4 to 6 put them between the samples.
//!
//! Source: upstream's `tsdb/docs/format/chunks.md` ("Start timestamp encoding"), `chunkenc/st.go`:
//!
//! ```text
//! header byte      top bit: the first sample has a start timestamp
//!                  low 7 bits: position of the first later sample that has one; 0 for none
//! after sample 0   if the top bit is set: time minus start timestamp, a varint in whole bytes
//! after others     from that position on: the time of the *previous* sample minus the start
//!                  timestamp, an int of `varbit.rs`; from the next such sample on, only the change
//!                  of this distance
//! ```
//!
//! A sample without a start timestamp of its own has that of the previous sample. 0 means
//! "unknown". The position has 7 bits, so samples from 127 on have one even if it does not change.

use super::varbit::{BitBuffer, take_varbit_int, take_varint};
use crate::codec::BitReader;

/// Header bit: the first sample has a start timestamp.
const FIRST_IS_KNOWN: u8 = 0x80;

/// Largest position that the header can name.
const POSITION_MAX: u16 = 0x7f;

#[derive(Clone, Copy, Debug, Default)]
pub struct StartReader {
    is_first_known: bool,
    given_from: u16,
    start_ms: i64,
    distance_ms: i64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct StartWriter {
    is_first_known: bool,
    given_from: u16,
    start_ms: i64,
    distance_ms: i64,
}

/// Returns whether a header byte states that no sample has a start timestamp.
pub fn are_starts_unknown(header: u8) -> bool {
    header == 0
}

impl StartReader {
    pub fn new(header: u8) -> StartReader {
        StartReader {
            is_first_known: header & FIRST_IS_KNOWN != 0,
            given_from: u16::from(header) & POSITION_MAX,
            ..StartReader::default()
        }
    }

    /// Reads the bits after the sample at `position`; `None` if the bits end too early.
    #[inline]
    pub fn read(
        &mut self,
        bits: &mut BitReader<'_>,
        position: u16,
        time_ms: i64,
        time_before_ms: i64,
    ) -> Option<()> {
        if position == 0 {
            if self.is_first_known {
                // Wraps as upstream's arithmetic does: damaged bytes must not panic.
                self.start_ms = time_ms.wrapping_sub(take_varint(bits)?);
            }
        } else if self.given_from > 0 && position >= self.given_from {
            let distance_ms = take_varbit_int(bits)?;
            self.distance_ms = match position == self.given_from {
                true => distance_ms,
                false => self.distance_ms.wrapping_add(distance_ms),
            };
            self.start_ms = time_before_ms.wrapping_sub(self.distance_ms);
        }
        Some(())
    }

    /// Returns the start timestamp of the sample read last; 0 if unknown.
    #[inline]
    pub fn start_ms(&self) -> i64 {
        self.start_ms
    }
}

impl StartWriter {
    /// Writes the start timestamp that follows the sample at `position`.
    pub fn put(
        &mut self,
        out: &mut BitBuffer,
        position: u16,
        (time_ms, time_before_ms): (i64, i64),
        start_ms: i64,
    ) {
        if position == 0 {
            if start_ms != 0 {
                self.is_first_known = true;
                out.put_varint(time_ms.wrapping_sub(start_ms));
            }
        } else if self.given_from > 0 {
            // The header has only the first such position, so all later samples have one, too.
            let distance_ms = time_before_ms.wrapping_sub(start_ms);
            out.put_varbit_int(distance_ms.wrapping_sub(self.distance_ms));
            self.distance_ms = distance_ms;
        } else if start_ms != self.start_ms || position == POSITION_MAX {
            // The header can name no position beyond 127, so a later change could not be marked.
            self.given_from = position;
            self.distance_ms = time_before_ms.wrapping_sub(start_ms);
            out.put_varbit_int(self.distance_ms);
        }
        self.start_ms = start_ms;
    }

    pub fn header(&self) -> u8 {
        let known = if self.is_first_known { FIRST_IS_KNOWN } else { 0 };
        known | (self.given_from & POSITION_MAX) as u8
    }
}

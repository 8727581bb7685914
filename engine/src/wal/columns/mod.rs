//! Type 203: in-order floats by columns. Only tidepool reads such records; Prometheus skips them.
//! Type 201 of earlier versions encodes values in another way (`values_201.rs`).
//!
//! ```text
//! ┌──────────┬──────────┬─────────────┬──────────────┬────────┬───────┬────────┐
//! │ type 203 │ epoch 8B │ seq uvarint │ rows uvarint │ series │ times │ values │
//! └──────────┴──────────┴─────────────┴──────────────┴────────┴───────┴────────┘
//! series: ( known uvarint │ Δref varint )…
//!         `known` rows, each of the series that last followed the series of the row before;
//!         then one row whose reference is Δref more than that of the row before (at first, 0)
//! times:  ( run uvarint │ Δt varint )…
//!         `run` rows, each Δt milliseconds later than the previous row of its series; if there is
//!         none, later than the row before in the record (at first, 0)
//! values: bits; each value is relative to the previous value of its series (at first, 0)
//!   0     the same bits; after a difference: another difference
//!   10    a difference; after a difference: the same bits
//!         difference: both values are exact at the series' scale. A folded number: the change of
//!         their scaled difference from the previous one (0 after any other row)
//!   110   + the window's bits    XORed; all differing bits lie in the series' window
//!   1110  + 5 bits leading zeros + 6 bits width (0 is 64) + the bits   XORed; a new window
//!   1111  + 3 bits scale + 6 bits shift + 6 bits width - 1 + `width` bits
//!         a new shift, and a new scale at which both are exact; their scaled difference as a
//!         folded number. For 0 and 10 the row is a difference; the next change is from 0
//! folded number: a signed number without its lowest `shift` bits, which are 0; then 0, -1, 1, -2
//!         are 0, 1, 2, 3. All but its lowest k bits are written as that many ones and a zero; then
//!         the k bits follow. If there were eight or more ones, instead:
//!   1111 1111 + 6 bits width - 1 + `width` bits
//! ```
//!
//! The scales are those of [`SCALES`]; a series begins with the first. A value is *exact* at a
//! scale if value times scale, rounded to the nearest integer, is below 2^53 and, divided by the
//! scale, yields the value again, bit by bit: -0 and NaN are never exact.
//!
//! Shift and k belong to the series and keep numbers short: counters of bytes grow by whole pages,
//! and the steps of a series have about the same width. `1111` sets k to (width - 1) / 2. A
//! difference changes k by one: up if two or more ones were written, down if the number has fewer
//! than k bits. If the width was written, k becomes width - 1.
//!
//! A record continues from the state of the record before, so it needs few bytes. Such records form
//! a chain: the *epoch* names the chain, `seq` counts its records from 0. Only the first depends on
//! no other. Chains are short, so an unreadable record makes few others unreadable; each segment
//! and each run begins a new one. Repeated records add nothing.

mod reader;
#[cfg(test)]
mod tests;
mod values_201;
mod writer;

pub use reader::{ColumnError, ColumnReader, ColumnRecord};
pub use writer::ColumnWriter;

use crate::model::RefTable;

/// Largest number of rows in a record, which bounds the memory that a reader needs for one.
pub const ROWS_MAX: usize = 64 * 1024;

/// Largest number of series in an epoch, which bounds the memory of writer and reader.
const SERIES_MAX: usize = 1024 * 1024;

/// Powers of ten that make decimals integers: times in seconds have two places, or nine.
const SCALES: [f64; 7] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e6, 1e9];

/// Largest number of leading zeros that five bits can express.
const LEADING_ZEROS_MAX: u32 = 31;

/// Shift until a scaled difference is known: only a change of 0 has so many trailing zeros.
const NO_SHIFT: u8 = 63;

/// Number of ones of a folded number from which on its width is written instead.
const ONES_MAX: u32 = 8;

const NO_SERIES: u32 = u32::MAX;

/// State of writer and reader after the rows so far: of each series the last row and the successor.
#[derive(Debug, Default)]
struct Chain {
    epoch: u64,
    seq: u64,
    refs: RefTable,
    series: Vec<Series>,
    last: Option<u32>,
}

#[derive(Debug)]
struct Series {
    series_ref: u64,
    time_ms: i64,
    value_bits: u64,
    /// Scaled difference of the last row if it was written as 0 or 10, otherwise 0.
    step: i64,
    /// Index of the series that followed this one the last time, or [`NO_SERIES`].
    next: u32,
    has_time: bool,
    has_window: bool,
    leading_zeros: u8,
    trailing_zeros: u8,
    /// Index into [`SCALES`].
    scale: u8,
    /// Number of low bits that scaled differences leave out, or [`NO_SHIFT`].
    shift: u8,
    /// Number of a folded number's lowest bits that are written unchanged: k.
    low_bits: u8,
    /// Whether the last value is exact at `scale`.
    is_exact: bool,
    /// Whether the last row was written as a scaled difference.
    is_change: bool,
    /// Number of times that the writer found no scale.
    misses: u8,
}

/// Returns a value times a scale, if the value is exact at that scale.
#[inline]
fn scaled(value_bits: u64, scale: u8) -> Option<i64> {
    let scale = SCALES.get(usize::from(scale))?;
    // The cast saturates, and NaN becomes 0; the comparisons below refuse both.
    let integer = (f64::from_bits(value_bits) * scale).round_ties_even() as i64;
    let is_exact =
        integer.unsigned_abs() < 1 << 53 && (integer as f64 / scale).to_bits() == value_bits;
    is_exact.then_some(integer)
}

#[inline]
fn fold(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

#[inline]
fn unfold(folded: u64) -> i64 {
    (folded >> 1) as i64 ^ -((folded & 1) as i64)
}

/// Returns the number of bits of a number; 0 has one bit, too.
#[inline]
fn width(number: u64) -> u32 {
    64 - (number | 1).leading_zeros()
}

impl Series {
    /// Adapts k to a folded number, since the next one will be about as wide.
    #[inline]
    fn learn(&mut self, folded: u64) {
        let width = width(folded) as u8;
        let ones = folded >> self.low_bits;
        if ones >= u64::from(ONES_MAX) {
            self.low_bits = width - 1;
        } else if ones >= 2 {
            self.low_bits = (self.low_bits + 1).min(63);
        } else if width < self.low_bits || folded == 0 && self.low_bits > 0 {
            self.low_bits -= 1;
        }
    }

    fn begin_steps(&mut self, scale: u8, shift: u8, folded: u64) {
        (self.scale, self.shift) = (scale, shift);
        self.low_bits = (width(folded) as u8 - 1) / 2;
        (self.is_exact, self.is_change) = (true, true);
    }
}

impl Chain {
    fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.seq = 0;
        // Cleared, not replaced: the next epoch has about as many series.
        self.refs.clear();
        self.series.clear();
        self.last = None;
    }

    fn give_back(&mut self) {
        // Replaced, not cleared, which would keep the memory.
        self.refs = RefTable::default();
        self.series = Vec::new();
        self.last = None;
    }

    #[inline]
    fn expected(&self) -> Option<u32> {
        let last = self.series.get(self.last? as usize)?;
        (last.next != NO_SERIES).then_some(last.next)
    }

    /// Makes this series the last one, adding it if unknown; `None` if there are too many series.
    fn follow(&mut self, series_ref: u64) -> Option<u32> {
        let at = match self.refs.get(series_ref) {
            Some(at) => at,
            None if self.series.len() >= SERIES_MAX => return None,
            None => {
                let at = self.series.len() as u32;
                self.refs.insert(series_ref, at);
                self.series.push(Series {
                    series_ref,
                    time_ms: 0,
                    value_bits: 0,
                    step: 0,
                    next: NO_SERIES,
                    has_time: false,
                    has_window: false,
                    leading_zeros: 0,
                    trailing_zeros: 0,
                    scale: 0,
                    shift: NO_SHIFT,
                    low_bits: 0,
                    is_exact: true,
                    is_change: false,
                    misses: 0,
                });
                at
            }
        };
        // Not called for expected rows, which would only confirm the successor that is noted.
        if let Some(last) = self.last.and_then(|last| self.series.get_mut(last as usize)) {
            last.next = at;
        }
        self.last = Some(at);
        Some(at)
    }
}

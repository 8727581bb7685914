//! Type 203: floats that came in order, by columns. Ours alone: upstream passes over it. Type 201,
//! which earlier versions wrote, has other values (`values_201.rs`).
//!
//! ```text
//! ┌──────────┬──────────┬─────────────┬──────────────┬────────┬───────┬────────┐
//! │ type 203 │ epoch 8B │ seq uvarint │ rows uvarint │ series │ times │ values │
//! └──────────┴──────────┴─────────────┴──────────────┴────────┴───────┴────────┘
//! series: ( known uvarint │ Δref varint )…
//!         so many rows whose series came behind the one before the last time, too; then one of
//!         which the difference to the reference before is given (to 0 in the first row)
//! times:  ( run uvarint │ Δt varint )…
//!         so many rows that lie so many milliseconds behind their series' time before; in a
//!         series' first row, behind the row before (in the first row, behind 0)
//! values: bits; each value beside its series' value before (at first 0)
//!   0     the same bits; behind a difference, another one
//!   10    a difference; behind one, the same bits
//!         difference: both are exact at the series' scale. A folded number: how much their
//!         difference, scaled, differs from the one before (0 behind any other row)
//!   110   + the window's bits    XORed; all differing bits lie in the series' window
//!   1110  + 5 bits leading zeros + 6 bits width (0 is 64) + the bits   XORed; a new window
//!   1111  + 3 bits scale + 6 bits shift + 6 bits width - 1 + so many bits
//!         a new scale and shift: both are exact at it; their difference, scaled, as a folded
//!         number. Counts as a difference for what 0 and 10 say, but not as the one before
//! folded number: a signed number without its lowest bits, which are 0 and as many as the shift
//!         says; then 0, -1, 1, -2 are 0, 1, 2, 3. But for its lowest k bits as that many ones
//!         and a zero, then these k bits; from eight ones on:
//!   1111 1111 + 6 bits width - 1 + so many bits
//! ```
//!
//! The scales are those of [`SCALES`], at first the first. A value is *exact* at a scale if it
//! times the scale, rounded to the nearest integer, lies below 2^53 and, divided by the scale,
//! gives the value again, bit by bit: -0 and NaN never are.
//!
//! Shift and k belong to the series and keep numbers short: counters of bytes grow by whole pages,
//! and the steps of a series are about equally wide. `1111` sets k to (width - 1) / 2. A difference
//! moves k by one: up if two ones or more were written, down if the number is narrower than k. If
//! the width was written out, k becomes the width - 1.
//!
//! A record goes on where the one before left off, so that what it says needs few bytes: the
//! *epoch* names a chain of records, `seq` counts them from 0. Only the first needs none before it.
//! Chains are short enough that a record which cannot be read costs little behind it; a new chain
//! begins in each segment and each run. Records that are there twice say nothing new.
//!
//! Nothing here is kept for a series but what its last row said, and which series followed.

mod reader;
#[cfg(test)]
mod tests;
mod values_201;
mod writer;

pub use reader::{ColumnError, ColumnReader, ColumnRecord};
pub use writer::ColumnWriter;

use crate::model::RefTable;

/// Most rows of a record: what a reader takes for one is bounded by it.
pub const ROWS_MAX: usize = 64 * 1024;

/// Most series of an epoch: what both sides keep for them is bounded by it.
const SERIES_MAX: usize = 1024 * 1024;

/// Tens that values with so many decimal places are multiplied by: counters of seconds have two of
/// them, or nine.
const SCALES: [f64; 7] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e6, 1e9];

/// Largest count of leading zeros that the five bits for it can say.
const LEADING_ZEROS_MAX: u32 = 31;

/// Marks that no scaled difference is known. None but 0 has so many lowest bits that are 0.
const NO_SHIFT: u8 = 63;

/// Ones in front of a folded number from which on its width is written out.
const ONES_MAX: u32 = 8;

/// Marks that no series is known to follow.
const NO_SERIES: u32 = u32::MAX;

/// What the rows so far leave behind: the same for the writer and the reader.
#[derive(Debug, Default)]
struct Chain {
    epoch: u64,
    /// Of the next record.
    seq: u64,
    refs: RefTable,
    series: Vec<Series>,
    /// The series of the last row.
    last: Option<u32>,
}

/// A series of a chain.
#[derive(Debug)]
struct Series {
    series_ref: u64,
    time_ms: i64,
    value_bits: u64,
    /// Scaled difference to the value before, if that is how the last row was written.
    step: i64,
    /// The series that came behind it the last time, or [`NO_SERIES`].
    next: u32,
    has_time: bool,
    has_window: bool,
    leading_zeros: u8,
    trailing_zeros: u8,
    /// Number of the scale.
    scale: u8,
    /// Lowest bits of scaled differences that are 0, or [`NO_SHIFT`].
    shift: u8,
    /// Lowest bits of a folded number that are written as they are.
    low_bits: u8,
    /// Whether the value is exact at that scale.
    is_exact: bool,
    /// Whether the last row was written as a scaled difference.
    is_change: bool,
    /// How often the writer has found no scale.
    misses: u8,
}

/// A value at a scale, if it is exact there.
#[inline]
fn scaled(value_bits: u64, scale: u8) -> Option<i64> {
    let scale = SCALES.get(usize::from(scale))?;
    let integer = (f64::from_bits(value_bits) * scale).round_ties_even() as i64;
    let is_exact =
        integer.unsigned_abs() < 1 << 53 && (integer as f64 / scale).to_bits() == value_bits;
    is_exact.then_some(integer)
}

/// Small numbers for small differences of either sign.
#[inline]
fn fold(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

#[inline]
fn unfold(folded: u64) -> i64 {
    (folded >> 1) as i64 ^ -((folded & 1) as i64)
}

/// Bits of a number, at least one.
#[inline]
fn width(number: u64) -> u32 {
    64 - (number | 1).leading_zeros()
}

impl Series {
    /// Learns from a folded number how wide the next will be.
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

    /// Begins anew with a difference at a scale.
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
        self.refs.clear();
        self.series.clear();
        self.last = None;
    }

    fn give_back(&mut self) {
        self.refs = RefTable::default();
        self.series = Vec::new();
        self.last = None;
    }

    /// The series that is expected next.
    #[inline]
    fn expected(&self) -> Option<u32> {
        let last = self.series.get(self.last? as usize)?;
        (last.next != NO_SERIES).then_some(last.next)
    }

    /// Notes that a series' row follows; it is made if it is new. `None` if there are too many.
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
        if let Some(last) = self.last.and_then(|last| self.series.get_mut(last as usize)) {
            last.next = at;
        }
        self.last = Some(at);
        Some(at)
    }
}

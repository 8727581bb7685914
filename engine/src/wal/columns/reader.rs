//! Decodes column records to rows.

use super::{Chain, ONES_MAX, ROWS_MAX, SCALES, Series, scaled, unfold, values_201};
use crate::codec::{BitReader, split_uvarint, split_varint};
use crate::model::Sample;
use crate::wal::decode::split_be_u64;
use crate::wal::{COLUMNS_201, RecordError};
use rustc_hash::FxHashMap;

/// Size of each of the two generations of ended chains in [`Ended`].
const ENDED_MAX: usize = 1024;

/// End of a chain whose first record is not in the log.
const CUT_OFF: u64 = u64::MAX;

/// Decoded head of a record, and the bytes after it.
#[derive(Clone, Copy, Debug)]
pub struct ColumnRecord<'a> {
    record: &'a [u8],
    rest: &'a [u8],
    epoch: u64,
    seq: u64,
    rows: u64,
}

/// Reads records in the order of their log.
#[derive(Debug, Default)]
pub struct ColumnReader {
    /// `None` before the log's first chain.
    chain: Option<Chain>,
    ended: Ended,
    /// Segment in which the chain begins.
    first_segment: u32,
    places: Vec<u32>,
    rows: Vec<(u64, Sample)>,
}

/// Reason why a record yields no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// The bytes of the record are damaged.
    #[error(transparent)]
    Damaged(#[from] RecordError),
    /// The record before this one is missing.
    #[error("the preceding record, on which its values depend, is missing")]
    Unchained,
    /// The log begins after the preceding record. If nothing earlier is damaged, this record is a
    /// copy made after a failed sync, and the checkpoint that replaced the original has its rows.
    #[error("the log begins behind the preceding record, on which its values depend")]
    CutOff,
}

/// Ends of the last thousand or two chains: after a failed sync, their records may occur again.
#[derive(Debug, Default)]
struct Ended {
    recent: FxHashMap<u64, u64>,
    older: FxHashMap<u64, u64>,
}

impl Ended {
    fn note(&mut self, epoch: u64, seq: u64) {
        if self.recent.len() >= ENDED_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(epoch, seq);
    }

    /// Returns the number of the first record of this chain that was not read.
    fn get(&self, epoch: u64) -> Option<u64> {
        self.recent.get(&epoch).or_else(|| self.older.get(&epoch)).copied()
    }
}

impl<'a> ColumnRecord<'a> {
    /// Number of rows that the record claims to have.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub(in crate::wal) fn split(
        record: &'a [u8],
        rest: &'a [u8],
    ) -> Result<ColumnRecord<'a>, RecordError> {
        let head = || {
            let (epoch, rest) = split_be_u64(rest)?;
            let (seq, rest) = split_uvarint(rest)?;
            let (rows, rest) = split_uvarint(rest)?;
            let is_possible = (1..=ROWS_MAX as u64).contains(&rows);
            is_possible.then_some(ColumnRecord { record, rest, epoch, seq, rows })
        };
        head().ok_or_else(|| RecordError::at(record, &mut &*rest))
    }
}

impl ColumnReader {
    /// Returns a record's rows as (series reference, sample); no rows if it was read before.
    pub fn read(
        &mut self,
        record: &ColumnRecord<'_>,
        segment: u32,
    ) -> Result<&[(u64, Sample)], ColumnError> {
        self.rows.clear();
        let Some(mut chain) = self.chain.take().or_else(|| (record.seq == 0).then(Chain::default))
        else {
            self.ended.note(record.epoch, CUT_OFF);
            return Err(ColumnError::CutOff);
        };
        if record.seq == 0 {
            // Also for a repeated record: later ones are repeated, too, and epochs may coincide.
            self.ended.note(chain.epoch, chain.seq);
            chain.begin(record.epoch);
            self.first_segment = segment;
        }
        let is_other = record.epoch != chain.epoch;
        if is_other && let Some(end) = self.ended.get(record.epoch).filter(|end| record.seq < *end)
        {
            // A copy of a record that was read, or that is replaced by the checkpoint of the log.
            self.chain = Some(chain);
            return if end == CUT_OFF { Err(ColumnError::CutOff) } else { Ok(&self.rows) };
        }
        if is_other || chain.seq < record.seq {
            // The chain is kept, since the missing record may belong to another chain.
            self.chain = Some(chain);
            return Err(ColumnError::Unchained);
        }
        // A smaller number is that of a repeated record, whose rows were read already.
        if chain.seq == record.seq {
            let mut rest = record.rest;
            if self.read_rows(&mut chain, record, &mut rest).is_none() {
                self.rows.clear();
                // Later records of the chain depend on this one, so none of them is read.
                self.chain = Some(Chain::default());
                return Err(RecordError::at(record.record, &mut rest).into());
            }
            chain.seq += 1;
        }
        self.chain = Some(chain);
        Ok(&self.rows)
    }

    /// Returns the segment that has the first of the records on which the last one depends.
    pub fn first_segment(&self) -> u32 {
        self.first_segment
    }

    fn read_rows(
        &mut self,
        chain: &mut Chain,
        record: &ColumnRecord<'_>,
        rest: &mut &[u8],
    ) -> Option<()> {
        let rows = usize::try_from(record.rows).ok()?;
        self.read_series(chain, rows, rest)?;
        self.read_times(chain, rows, rest)?;
        // Type 201 differs in its values only.
        match record.record.first() {
            Some(&COLUMNS_201) => self.read_values(chain, rest, values_201::take_value),
            _ => self.read_values(chain, rest, take_value),
        }
    }

    fn read_series(&mut self, chain: &mut Chain, rows: usize, rest: &mut &[u8]) -> Option<()> {
        self.places.clear();
        let mut before = 0u64;
        while self.places.len() < rows {
            let known = take_uvarint(rest)?;
            let left = (rows - self.places.len()) as u64;
            // A false number must not make more rows than the head announces.
            if known > left {
                return None;
            }
            for _ in 0..known {
                let at = chain.expected()?;
                let series = chain.series.get(at as usize)?;
                before = series.series_ref;
                chain.last = Some(at);
                self.places.push(at);
            }
            if known < left {
                let (step, after) = split_varint(rest)?;
                *rest = after;
                before = before.wrapping_add(step as u64);
                self.places.push(chain.follow(before)?);
            }
        }
        Some(())
    }

    fn read_times(&mut self, chain: &mut Chain, rows: usize, rest: &mut &[u8]) -> Option<()> {
        let mut before_ms = 0i64;
        while self.rows.len() < rows {
            let run = take_uvarint(rest)?;
            let (step_ms, after) = split_varint(rest)?;
            *rest = after;
            let begun = self.rows.len();
            let run = usize::try_from(run).ok().filter(|run| (1..=rows - begun).contains(run))?;
            for place in self.places.get(begun..begun + run)? {
                let series = chain.series.get_mut(*place as usize)?;
                let from_ms = if series.has_time { series.time_ms } else { before_ms };
                before_ms = from_ms.wrapping_add(step_ms);
                (series.time_ms, series.has_time) = (before_ms, true);
                // The value is read later, from the column of values.
                let sample = Sample { timestamp_ms: before_ms, value: 0.0 };
                self.rows.push((series.series_ref, sample));
            }
        }
        Some(())
    }

    #[inline]
    fn read_values(
        &mut self,
        chain: &mut Chain,
        rest: &mut &[u8],
        take: impl Fn(&mut BitReader<'_>, &mut Series) -> Option<u64>,
    ) -> Option<()> {
        let mut bits = BitReader::new(rest);
        for (place, (_, sample)) in self.places.iter().zip(&mut self.rows) {
            let series = chain.series.get_mut(*place as usize)?;
            sample.value = f64::from_bits(take(&mut bits, series)?);
        }
        Some(())
    }
}

fn take_uvarint(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = split_uvarint(rest)?;
    *rest = after;
    Some(number)
}

#[inline]
fn take_value(bits: &mut BitReader<'_>, series: &mut Series) -> Option<u64> {
    let step_before = std::mem::take(&mut series.step);
    let was_change = std::mem::take(&mut series.is_change);
    let is_likely = bits.take(1)? == 0;
    if is_likely || bits.take(1)? == 0 {
        // `0` repeats the kind of the row before: a difference after one, else the same bits.
        if is_likely != was_change {
            return Some(series.value_bits);
        }
        let change = unfold(take_folded(bits, series)?).wrapping_shl(u32::from(series.shift));
        let step = step_before.wrapping_add(change);
        (series.step, series.is_change) = (step, true);
        return take_scaled(series, step);
    }
    if bits.take(1)? == 0 {
        return take_xored(bits, series, false);
    }
    if bits.take(1)? == 0 {
        return take_xored(bits, series, true);
    }
    let (scale, shift) = (bits.take(3)? as u8, bits.take(6)? as u8);
    let folded = take_wide(bits)?;
    series.begin_steps(scale, shift, folded);
    take_scaled(series, unfold(folded).wrapping_shl(u32::from(shift)))
}

/// Decodes differing bits, in the series' window or in a new one.
#[inline]
pub(super) fn take_xored(
    bits: &mut BitReader<'_>,
    series: &mut Series,
    is_new_window: bool,
) -> Option<u64> {
    if is_new_window {
        let leading_zeros = bits.take(5)? as u8;
        let width = match bits.take(6)? as u8 {
            0 => 64,
            width => width,
        };
        // Only damage makes a window wider than 64 bits.
        series.trailing_zeros = 64u8.checked_sub(leading_zeros)?.checked_sub(width)?;
        series.leading_zeros = leading_zeros;
        series.has_window = true;
    } else if !series.has_window {
        return None;
    }
    let width = 64 - series.leading_zeros - series.trailing_zeros;
    series.value_bits ^= bits.take(u32::from(width))? << series.trailing_zeros;
    series.is_exact = scaled(series.value_bits, series.scale).is_some();
    Some(series.value_bits)
}

/// Decodes a value from its scaled difference to the previous value.
#[inline]
pub(super) fn take_scaled(series: &mut Series, step: i64) -> Option<u64> {
    // Only damaged records have a difference to a value that is not exact.
    let before = scaled(series.value_bits, series.scale).filter(|_| series.is_exact)?;
    let scale = SCALES.get(usize::from(series.scale))?;
    series.value_bits = (before.wrapping_add(step) as f64 / scale).to_bits();
    Some(series.value_bits)
}

#[inline]
fn take_folded(bits: &mut BitReader<'_>, series: &mut Series) -> Option<u64> {
    let mut ones = 0;
    while ones < ONES_MAX && bits.take(1)? == 1 {
        ones += 1;
    }
    let folded = match ones {
        ONES_MAX => take_wide(bits)?,
        _ => u64::from(ones) << series.low_bits | bits.take(u32::from(series.low_bits))?,
    };
    series.learn(folded);
    Some(folded)
}

fn take_wide(bits: &mut BitReader<'_>) -> Option<u64> {
    let width = bits.take(6)? as u32 + 1;
    bits.take(width)
}

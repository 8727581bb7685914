//! Encodes rows as column records.

#[cfg(doc)]
use super::ROWS_MAX;
use super::{Chain, LEADING_ZEROS_MAX, ONES_MAX, SCALES, Series, fold, scaled, width};
use crate::codec::{BitWriter, hash_word, put_uvarint, put_varint};
use crate::model::Sample;
use crate::wal::COLUMNS;

/// Average rows per series in an epoch: more rows save space, but are lost together.
const ROWS_PER_SERIES: u64 = 64;

/// Smallest number of rows in an epoch: a small store gains nothing from more epochs.
const ROWS_MIN: u64 = 64 * 1024;

/// Bits of the longest value, which has a new scale and shift.
const VALUE_BITS_MAX: usize = 4 + 3 + 6 + 6 + 64;

/// Number of failed searches for a scale after which a series is not searched again.
const MISSES_MAX: u8 = 3;

/// Encoder of column records, with the state of their chain.
#[derive(Debug)]
pub struct ColumnWriter {
    pub(super) chain: Chain,
    /// Rows of the epoch so far; 0 if the next record begins a new epoch.
    rows: u64,
    /// Mixed into the names of epochs, which must differ between runs.
    seed: u64,
    epochs: u64,
    places: Vec<u32>,
}

impl ColumnWriter {
    /// Creates a writer without a chain. No two writers of a log may have the same seed.
    pub fn new(seed: u64) -> ColumnWriter {
        ColumnWriter { chain: Chain::default(), rows: 0, seed, epochs: 0, places: Vec::new() }
    }

    /// Makes the next record begin an epoch: the last one is in another segment, or not logged.
    pub fn restart(&mut self) {
        self.rows = 0;
    }

    /// Frees the memory for series. The next record begins an epoch.
    pub fn give_back(&mut self) {
        self.rows = 0;
        self.places = Vec::new();
        self.chain.give_back();
    }

    /// Returns whether the next record depends on the ones before it.
    pub fn is_chained(&self) -> bool {
        self.rows > 0
    }

    /// Encodes 1 to [`ROWS_MAX`] rows; `None` if they have too many series for an epoch.
    pub fn record(&mut self, rows: &[(u64, Sample)]) -> Option<Vec<u8>> {
        let due = (ROWS_PER_SERIES * self.chain.series.len() as u64).max(ROWS_MIN);
        if self.rows == 0 || self.rows >= due {
            self.begin();
        }
        // The epoch may have too many series of other rows; a new epoch has none.
        let record = self.chained_record(rows).or_else(|| {
            self.begin();
            self.chained_record(rows)
        });
        match &record {
            Some(_) => self.rows += rows.len() as u64,
            // The unfinished record has changed the chain, but no reader will see the record.
            None => self.rows = 0,
        }
        record
    }

    fn begin(&mut self) {
        self.epochs += 1;
        // A hash, since the sum of seed and number may equal that of another writer.
        self.chain.begin(hash_word(hash_word(0, self.seed), self.epochs));
        self.rows = 0;
    }

    /// Encodes a record; `None` if there are too many series, which makes the chain unusable.
    fn chained_record(&mut self, rows: &[(u64, Sample)]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(64 + 4 * rows.len());
        out.push(COLUMNS);
        out.extend_from_slice(&self.chain.epoch.to_be_bytes());
        put_uvarint(&mut out, self.chain.seq);
        put_uvarint(&mut out, rows.len() as u64);
        self.put_series(&mut out, rows)?;
        self.put_times(&mut out, rows);
        self.put_values(&mut out, rows);
        self.chain.seq += 1;
        Some(out)
    }

    fn put_series(&mut self, out: &mut Vec<u8>, rows: &[(u64, Sample)]) -> Option<()> {
        self.places.clear();
        let (mut known, mut before) = (0, 0);
        for (series_ref, _) in rows {
            let expected = self.chain.expected();
            let held = expected.and_then(|at| Some((at, self.chain.series.get(at as usize)?)));
            let place = match held {
                Some((at, series)) if series.series_ref == *series_ref => {
                    known += 1;
                    self.chain.last = Some(at);
                    at
                }
                _ => {
                    put_uvarint(out, known);
                    put_varint(out, series_ref.wrapping_sub(before) as i64);
                    known = 0;
                    self.chain.follow(*series_ref)?
                }
            };
            self.places.push(place);
            before = *series_ref;
        }
        if known > 0 {
            put_uvarint(out, known);
        }
        Some(())
    }

    fn put_times(&mut self, out: &mut Vec<u8>, rows: &[(u64, Sample)]) {
        let (mut run, mut step_ms, mut before_ms) = (0u64, 0i64, 0i64);
        for (place, (_, sample)) in self.places.iter().zip(rows) {
            // Never missing: `put_series` has just found these places.
            let Some(series) = self.chain.series.get_mut(*place as usize) else { continue };
            let from_ms = if series.has_time { series.time_ms } else { before_ms };
            let this_ms = sample.timestamp_ms.wrapping_sub(from_ms);
            if this_ms != step_ms && run > 0 {
                put_uvarint(out, run);
                put_varint(out, step_ms);
                run = 0;
            }
            step_ms = this_ms;
            run += 1;
            before_ms = sample.timestamp_ms;
            (series.time_ms, series.has_time) = (before_ms, true);
        }
        put_uvarint(out, run);
        put_varint(out, step_ms);
    }

    fn put_values(&mut self, out: &mut Vec<u8>, rows: &[(u64, Sample)]) {
        let start = out.len();
        // Room for the longest values, since the bit writer does not grow its buffer.
        let bits_max = rows.len() * VALUE_BITS_MAX;
        out.resize(start + bits_max.div_ceil(8) + BitWriter::SPARE_BYTES, 0);
        let mut writer = BitWriter::resume(&mut out[start..], 0);
        for (place, (_, sample)) in self.places.iter().zip(rows) {
            let Some(series) = self.chain.series.get_mut(*place as usize) else { continue };
            put_value(&mut writer, series, sample.value.to_bits());
        }
        let bytes = writer.position_bits().div_ceil(8) as usize;
        out.truncate(start + bytes);
    }
}

#[inline]
fn put_value(writer: &mut BitWriter<'_>, series: &mut Series, value_bits: u64) {
    let before_bits = std::mem::replace(&mut series.value_bits, value_bits);
    let step_before = std::mem::take(&mut series.step);
    let was_change = std::mem::take(&mut series.is_change);
    if value_bits == before_bits {
        return writer.put(u64::from(was_change) << 1, 1 + u32::from(was_change));
    }
    let scaled_value = scaled(value_bits, series.scale);
    if let Some(value) = scaled_value.filter(|_| series.is_exact) {
        // Both values lie below 2^53, so no difference overflows.
        let step = value - scaled(before_bits, series.scale).unwrap_or_default();
        let change = step - step_before;
        if change.trailing_zeros() < u32::from(series.shift) {
            // A shift would lose bits of this change.
            return put_step(writer, series, series.scale, step);
        }
        (series.step, series.is_change) = (step, true);
        return put_change(writer, series, was_change, fold(change >> series.shift));
    }
    if scaled_value.is_none() {
        if series.misses < MISSES_MAX
            && let Some((scale, step)) = new_scale(series.scale, before_bits, value_bits)
        {
            return put_step(writer, series, scale, step);
        }
        series.misses = series.misses.saturating_add(1);
    }
    series.is_exact = scaled_value.is_some();
    put_xored(writer, series, value_bits ^ before_bits);
}

/// Writes a difference to the value before, with its scale and shift.
#[cold]
fn put_step(writer: &mut BitWriter<'_>, series: &mut Series, scale: u8, step: i64) {
    // `step` is not 0: different bits give different integers at an exact scale.
    let shift = step.trailing_zeros() as u8;
    let folded = fold(step >> shift);
    let width = width(folded);
    let head = u64::from(scale) << 12 | u64::from(shift) << 6 | u64::from(width - 1);
    writer.put(0b1111 << 15 | head, 19);
    writer.put(folded, width);
    series.begin_steps(scale, shift, folded);
}

#[inline]
fn put_change(writer: &mut BitWriter<'_>, series: &mut Series, was_change: bool, folded: u64) {
    let low_bits = u32::from(series.low_bits);
    let ones = folded >> low_bits;
    series.learn(folded);
    // A difference is `0` if the previous row was a difference, otherwise `10`.
    let (kind, kind_bits) = if was_change { (0, 1) } else { (0b10, 2) };
    if ones >= u64::from(ONES_MAX) {
        let width = width(folded);
        let head = u64::MAX >> (64 - ONES_MAX) << 6 | u64::from(width - 1);
        writer.put(kind << (ONES_MAX + 6) | head, kind_bits + ONES_MAX + 6);
        return writer.put(folded, width);
    }
    // As many ones as the number says, and a zero.
    let ones_bits = ones as u32 + 1;
    let head = kind << ones_bits | ((2 << ones) - 2);
    let low = folded & !(u64::MAX << low_bits);
    // With more than 32 low bits, both parts together may exceed a word.
    if low_bits > 32 {
        writer.put(head, kind_bits + ones_bits);
        return writer.put(low, low_bits);
    }
    writer.put(head << low_bits | low, kind_bits + ones_bits + low_bits);
}

fn put_xored(writer: &mut BitWriter<'_>, series: &mut Series, difference: u64) {
    let leading_zeros = difference.leading_zeros().min(LEADING_ZEROS_MAX);
    let trailing_zeros = difference.trailing_zeros();
    if series.has_window
        && leading_zeros >= u32::from(series.leading_zeros)
        && trailing_zeros >= u32::from(series.trailing_zeros)
    {
        let width = u32::from(64 - series.leading_zeros - series.trailing_zeros);
        writer.put(0b110, 3);
        return writer.put(difference >> series.trailing_zeros, width);
    }
    let width = 64 - leading_zeros - trailing_zeros;
    let window = u64::from(leading_zeros) << 6 | u64::from(width & 63);
    writer.put(0b1110 << 11 | window, 15);
    writer.put(difference >> trailing_zeros, width);
    series.has_window = true;
    series.leading_zeros = leading_zeros as u8;
    series.trailing_zeros = trailing_zeros as u8;
}

/// Returns a finer scale at which two values are exact, and their difference there.
#[cold]
fn new_scale(scale: u8, before_bits: u64, value_bits: u64) -> Option<(u8, i64)> {
    (scale + 1..SCALES.len() as u8).find_map(|scale| {
        let step = scaled(value_bits, scale)? - scaled(before_bits, scale)?;
        Some((scale, step))
    })
}

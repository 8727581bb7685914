//! Checks whether a row is accepted, in order or out of order. This depends on the series, on the
//! batch and on the out-of-order rule (`window/out_of_order_rule`, which lists the steps).
//!
//! A float stale marker becomes a histogram if the series holds histograms, as in Prometheus:
//! senders of stale markers do not know the kind of a series.

use super::batch::{IS_FLOAT, Row};
use super::series::{NO_ROW, Series};
use super::{Batch, Head, RefusalReason, Slot};
use crate::chunk::{ChunkError, Encoding};
use crate::model::histogram::is_stale_nan;
use crate::model::{FloatHistogram, Histogram, Sample, Value};

/// Rows of a series that are searched one by one; beyond this, the batch is indexed by time.
const PENDING_WALK_MAX: usize = 64;

impl Head {
    /// Like [`Head::check`], for a float; most are in order and the first of their series.
    #[inline]
    pub fn check_float(
        &mut self,
        batch: &mut Batch,
        slot: Slot,
        time_ms: i64,
        value: f64,
    ) -> Result<(), ChunkError> {
        // The usual row passes by bounds that were computed once for the batch.
        let (from_ms, until_ms) = batch.in_order_ms;
        if let Some(series) = self.table.get_mut(slot)
            && series.pending_row == NO_ROW
            && series.newest_ms().is_none_or(|newest_ms| time_ms > newest_ms)
            && time_ms >= from_ms
            && time_ms <= until_ms
            && time_ms != i64::MIN
            && !is_stale_nan(value)
            && !batch.is_indexed
            && !series.out_of_order_may_reach(time_ms)
        {
            series.pending_row = batch.rows.len() as u32;
            let sample = Sample { timestamp_ms: time_ms, value };
            batch.push_float(slot, series.series_ref, sample);
            return Ok(());
        }
        self.check(batch, slot, time_ms, Value::Float(value))
    }

    /// Checks one row; adds it to the batch or counts its refusal.
    #[inline(never)]
    pub fn check(
        &mut self,
        batch: &mut Batch,
        slot: Slot,
        time_ms: i64,
        value: Value,
    ) -> Result<(), ChunkError> {
        let series = self.table.at_mut(slot);
        let newest_ms = batch.newest_of(series);
        let is_newest = newest_ms.is_none_or(|newest_ms| time_ms > newest_ms);
        // An older row may repeat a stored one and then counts as written whatever the clock.
        if is_newest && time_ms > self.window.clock_limit_ms() {
            self.refuse(batch, slot, time_ms, RefusalReason::TooFarInFuture);
            return Ok(());
        }
        let value = match value {
            Value::Float(float) if is_stale_nan(float) => batch.stale_value(series, float),
            value => value,
        };
        if is_newest && self.window.takes_in_order(time_ms) && !holds_out_of_order(series, time_ms)?
        {
            batch.accept(slot, series, time_ms, value, false);
            return Ok(());
        }
        // The row is not newer than its series, in the range of a block, or held out of order.
        match batch.value_at(slot, series, time_ms)? {
            Some(stored) if same(&stored, &value) => {
                batch.outcome.count_written(&value);
                batch.outcome.samples_duplicate += 1;
            }
            Some(_) => self.refuse(batch, slot, time_ms, RefusalReason::DuplicateSample),
            None => match self.window.check_out_of_order(time_ms) {
                Ok(()) => batch.accept(slot, series, time_ms, value, true),
                Err(reason) => self.refuse(batch, slot, time_ms, reason),
            },
        }
        Ok(())
    }

    /// Returns whether a series has an in-order value at a time or later, the batch included.
    pub fn has_value_since(&self, batch: &Batch, slot: Slot, time_ms: i64) -> bool {
        batch.newest_of(self.table.at(slot)).is_some_and(|newest_ms| newest_ms >= time_ms)
    }

    fn refuse(&mut self, batch: &mut Batch, slot: Slot, time_ms: i64, reason: RefusalReason) {
        self.counters.count_refused(reason, 1);
        batch.refuse(reason, time_ms, 1, || {
            let (labels, why) = (self.table.packed_labels(slot), self.window.why(reason));
            format!("{labels} at {time_ms} ms: {why}")
        });
    }
}

impl Batch {
    #[inline]
    fn accept(
        &mut self,
        slot: Slot,
        series: &mut Series,
        time_ms: i64,
        value: Value,
        is_out_of_order: bool,
    ) {
        let row = self.rows.len() as u32;
        let pending_row = &mut series.pending_row;
        // Out-of-order rows are found through `by_time`; in this list they would slow searches.
        let previous = match is_out_of_order && *pending_row != NO_ROW {
            true => NO_ROW,
            false => std::mem::replace(pending_row, row),
        };
        self.push((slot, series.series_ref), previous, time_ms, value, is_out_of_order);
    }

    /// Returns the time of a series' newest in-order value, the batch included.
    #[inline]
    fn newest_of(&self, series: &Series) -> Option<i64> {
        let pending = self.pending(series).find(|row| !row.is_out_of_order);
        pending.map(|row| row.sample.timestamp_ms).or_else(|| series.newest_ms())
    }

    /// Returns a stale marker of the kind of values that the series holds.
    fn stale_value(&self, series: &Series, float: f64) -> Value {
        // Rows of the batch are newer than the stored chunk, so the latest of them decides.
        let pending = self.pending(series).find(|row| !row.is_out_of_order);
        let kind = match pending.map(|row| (row.histogram, self.value(row))) {
            Some((IS_FLOAT, _)) => None,
            Some((_, Value::FloatHistogram(_))) => Some(Encoding::FloatHistogram),
            Some(_) => Some(Encoding::Histogram),
            None => series.open_encoding(),
        };
        match kind {
            Some(Encoding::Histogram | Encoding::HistogramSt) => Histogram::stale().into(),
            Some(Encoding::FloatHistogram | Encoding::FloatHistogramSt) => {
                FloatHistogram::stale().into()
            }
            Some(Encoding::Xor | Encoding::Xor2) | None => Value::Float(float),
        }
    }

    /// Returns the value of a series at a time, from the batch or stored.
    fn value_at(
        &mut self,
        slot: Slot,
        series: &Series,
        time_ms: i64,
    ) -> Result<Option<Value>, ChunkError> {
        match self.pending_at(slot, series, time_ms) {
            Some(row) => Ok(Some(self.value(&self.rows[row as usize]))),
            None => series.value_at(time_ms),
        }
    }

    /// Returns the batch's row of a series at a time.
    fn pending_at(&mut self, slot: Slot, series: &Series, time_ms: i64) -> Option<u32> {
        // `by_time` has the out-of-order rows, and all rows once the batch is indexed.
        if let Some(row) = self.by_time.get(&(slot, time_ms)) {
            return Some(*row);
        }
        if self.is_indexed {
            return None;
        }
        let mut row = series.pending_row;
        for _ in 0..PENDING_WALK_MAX {
            let Row { sample, previous, .. } = self.rows.get(row as usize)?;
            if sample.timestamp_ms == time_ms {
                return Some(row);
            }
            row = *previous;
        }
        // Thousands of rows of one series must not cost the square of their number.
        self.index_by_time();
        self.by_time.get(&(slot, time_ms)).copied()
    }

    /// Returns the in-order rows of a series in the batch, latest first. The last item is out of
    /// order if the first row of the series in the batch was.
    fn pending(&self, series: &Series) -> impl Iterator<Item = &Row> {
        let latest = self.rows.get(series.pending_row as usize);
        std::iter::successors(latest, |row| self.rows.get(row.previous as usize))
    }
}

/// Returns whether an out-of-order sample has this time although all in-order samples are older:
/// newer samples were deleted, or a planned cut was never done.
fn holds_out_of_order(series: &Series, time_ms: i64) -> Result<bool, ChunkError> {
    Ok(series.out_of_order_may_reach(time_ms) && series.value_at(time_ms)?.is_some())
}

/// Returns whether a row equals the stored value. All stale markers are equal: the kind of a marker
/// depends on what the series held when the marker was written.
fn same(stored: &Value, given: &Value) -> bool {
    stored.same_observations(given) || (stored.is_stale() && given.is_stale())
}

//! Order rules: which rows are accepted, and as what.
//!
//! Row by row, in this order:
//! 1. A row that is stored already, with the same bits (of a histogram: the same observations),
//!    counts as written and changes nothing; another value is refused. This looks at all that the
//!    head holds.
//! 2. Newer than all of its series, not older than what blocks hold, and not further behind the
//!    newest sample of the head than the out-of-order window, or half a block if that is longer:
//!    appended in order.
//! 3. Within the out-of-order window behind the newest sample of the head: kept as an out-of-order
//!    sample. If a block holds the same time already, the block's sample counts no more once both
//!    are merged: the later write has the word, and an equal one changes nothing.
//! 4. All else is refused: too old, out of order, or too far in the future.
//!
//! Age is told by what is stored, since senders may all be late, and a clock wrong. A store that
//! holds nothing takes rows of any age, but for times that only a clock shows that was never set:
//! from the beginning of time up to [`FIRST_AGE_MS_MAX`] ago. The smallest and the largest time are
//! no times: they stand for none, and no block's range reaches beyond the latter.
//!
//! The float that marks the end of a series becomes a histogram with that mark where the series
//! holds histograms, as upstream has it: senders do not know what a series held.

use super::batch::{IS_FLOAT, Row};
use super::series::NO_ROW;
use super::{Batch, Head, RefusalReason, Slot};
use crate::chunk::{ChunkError, Encoding};
use crate::model::histogram::is_stale_nan;
use crate::model::{FloatHistogram, Histogram, Sample, Value};

/// Ten years, in milliseconds: the oldest that a row may be by the clock while nothing is stored.
pub(super) const FIRST_AGE_MS_MAX: i64 = 10 * 365 * 24 * 3_600_000;

/// Rows of a series that are looked through one by one for an equal time.
const PENDING_WALK_MAX: usize = 64;

impl Head {
    /// Newest time that the head or a block holds.
    pub(super) fn newest_ms(&self) -> i64 {
        self.max_time_ms.max(self.min_valid_ms.saturating_sub(1))
    }

    /// Oldest time at which a row can be appended in order.
    fn in_order_from_ms(&self) -> i64 {
        if self.is_empty() {
            return self.first_from_ms();
        }
        // What lags must not stretch the head beyond what the next cut takes.
        let half_block = self.options.block_duration_ms / 2;
        let window_ms = self.options.out_of_order_window_ms;
        let newest_ms = match window_ms {
            0 => self.max_time_ms,
            _ if self.is_ahead_of_clock() => self.now_ms,
            _ => self.newest_ms(),
        };
        self.min_valid_ms.max(newest_ms.saturating_sub(window_ms.max(half_block)))
    }

    /// Whether neither the head nor a block holds anything.
    pub fn is_empty(&self) -> bool {
        self.newest_ms() == i64::MIN
    }

    /// Oldest time that a store without samples accepts. Without a clock that is any.
    fn first_from_ms(&self) -> i64 {
        match self.now_ms {
            i64::MAX => i64::MIN,
            now_ms => now_ms.saturating_sub(FIRST_AGE_MS_MAX),
        }
    }

    /// Oldest time at which an out-of-order row is accepted. What came while some clock ran ahead
    /// does not shut the door: then the clock of now counts, and half a block at least.
    pub(super) fn out_of_order_from_ms(&self) -> i64 {
        let window_ms = self.options.out_of_order_window_ms;
        match window_ms {
            _ if self.is_ahead_of_clock() => {
                let half_block = self.options.block_duration_ms / 2;
                self.now_ms.saturating_sub(window_ms.max(half_block))
            }
            0 => i64::MAX,
            _ if self.is_empty() => self.first_from_ms(),
            _ => self.newest_ms().saturating_sub(window_ms),
        }
    }

    /// Newest time that is accepted by the clock.
    pub(super) fn clock_limit_ms(&self) -> i64 {
        self.now_ms.saturating_add(self.options.future_limit_ms).min(i64::MAX - 1)
    }

    /// Whether the head or a block holds samples that the clock of now would refuse.
    pub(super) fn is_ahead_of_clock(&self) -> bool {
        self.newest_ms() > self.clock_limit_ms()
    }

    /// The times between which [`Head::check_float`] accepts at once, as long as a batch is checked.
    pub(super) fn in_order_ms(&self) -> (i64, i64) {
        (self.in_order_from_ms(), self.clock_limit_ms())
    }

    /// [`Head::check`] of a float. Nearly all are the first of their series in a batch, and come in
    /// order.
    #[inline]
    pub fn check_float(
        &mut self,
        batch: &mut Batch,
        slot: Slot,
        time_ms: i64,
        value: f64,
    ) -> Result<(), ChunkError> {
        let (from_ms, until_ms) = batch.in_order_ms;
        if let Some(series) = self.series.get_mut(slot)
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

    /// Checks one row, and takes it into the batch or counts its refusal.
    #[inline(never)]
    pub fn check(
        &mut self,
        batch: &mut Batch,
        slot: Slot,
        time_ms: i64,
        value: Value,
    ) -> Result<(), ChunkError> {
        let newest_ms = self.newest_of(batch, slot);
        let is_newest = newest_ms.is_none_or(|newest_ms| time_ms > newest_ms);
        if is_newest && time_ms > self.clock_limit_ms() {
            self.refuse(batch, slot, time_ms, RefusalReason::TooFarInFuture);
            return Ok(());
        }
        let value = match value {
            Value::Float(float) if is_stale_nan(float) => self.stale_value(batch, slot, float),
            value => value,
        };
        // The smallest time stands for none.
        if is_newest
            && time_ms >= self.in_order_from_ms()
            && time_ms != i64::MIN
            && !self.is_held_as_out_of_order(slot, time_ms)?
        {
            self.accept(batch, slot, time_ms, value, false);
            return Ok(());
        }
        self.check_not_newest(batch, slot, time_ms, value)
    }

    /// Whether an out-of-order sample of this time is held, although all that came in order is
    /// older: what was newer was deleted, or is behind a cut that never came to be.
    fn is_held_as_out_of_order(&self, slot: Slot, time_ms: i64) -> Result<bool, ChunkError> {
        let series = self.at(slot);
        Ok(series.out_of_order_may_reach(time_ms) && series.value_at(time_ms)?.is_some())
    }

    /// A row that is not newer than all of its series, or older than what blocks hold, or held.
    fn check_not_newest(
        &mut self,
        batch: &mut Batch,
        slot: Slot,
        time_ms: i64,
        value: Value,
    ) -> Result<(), ChunkError> {
        let out_of_order_from_ms = self.out_of_order_from_ms();
        match self.value_at(batch, slot, time_ms)? {
            Some(stored) if same(&stored, &value) => {
                batch.outcome.count_written(&value);
                batch.outcome.samples_duplicate += 1;
            }
            Some(_) => self.refuse(batch, slot, time_ms, RefusalReason::DuplicateSample),
            None if time_ms > self.clock_limit_ms() => {
                self.refuse(batch, slot, time_ms, RefusalReason::TooFarInFuture);
            }
            None if time_ms >= out_of_order_from_ms && time_ms != i64::MIN => {
                self.accept(batch, slot, time_ms, value, true);
            }
            None if out_of_order_from_ms != i64::MAX
                || time_ms < self.in_order_from_ms()
                || time_ms == i64::MIN =>
            {
                self.refuse(batch, slot, time_ms, RefusalReason::TooOld);
            }
            None => self.refuse(batch, slot, time_ms, RefusalReason::OutOfOrder),
        }
        Ok(())
    }

    #[inline]
    fn accept(
        &mut self,
        batch: &mut Batch,
        slot: Slot,
        time_ms: i64,
        value: Value,
        is_out_of_order: bool,
    ) {
        let row = batch.rows.len() as u32;
        let series = self.at_mut(slot);
        let series_ref = series.series_ref;
        let pending_row = &mut series.pending_row;
        // Out-of-order rows are found by their time. Among the others they would only be in the way.
        let previous = match is_out_of_order && *pending_row != NO_ROW {
            true => NO_ROW,
            false => std::mem::replace(pending_row, row),
        };
        batch.push((slot, series_ref), previous, time_ms, value, is_out_of_order);
    }

    /// Time of the newest in-order value of a series, those of the running batch included.
    #[inline]
    fn newest_of(&self, batch: &Batch, slot: Slot) -> Option<i64> {
        let pending = self.pending(batch, slot).find(|row| !row.is_out_of_order);
        pending.map(|row| row.sample.timestamp_ms).or_else(|| self.at(slot).newest_ms())
    }

    /// The mark of a series' end, as a value of the kind that the series holds.
    fn stale_value(&self, batch: &Batch, slot: Slot, float: f64) -> Value {
        let pending = self.pending(batch, slot).find(|row| !row.is_out_of_order);
        let kind = match pending.map(|row| (row.histogram, batch.value(row))) {
            Some((IS_FLOAT, _)) => None,
            Some((_, Value::FloatHistogram(_))) => Some(Encoding::FloatHistogram),
            Some(_) => Some(Encoding::Histogram),
            None => self.at(slot).open_encoding(),
        };
        match kind {
            Some(Encoding::Histogram) => Histogram::stale().into(),
            Some(Encoding::FloatHistogram) => FloatHistogram::stale().into(),
            Some(Encoding::Xor) | None => Value::Float(float),
        }
    }

    /// The value a series has at a time, in the running batch or stored.
    fn value_at(
        &self,
        batch: &mut Batch,
        slot: Slot,
        time_ms: i64,
    ) -> Result<Option<Value>, ChunkError> {
        match self.pending_at(batch, slot, time_ms) {
            Some(row) => Ok(Some(batch.value(&batch.rows[row as usize]))),
            None => self.at(slot).value_at(time_ms),
        }
    }

    /// The running batch's row of a series at a time.
    fn pending_at(&self, batch: &mut Batch, slot: Slot, time_ms: i64) -> Option<u32> {
        if let Some(row) = batch.by_time.get(&(slot, time_ms)) {
            return Some(*row);
        }
        if batch.is_indexed {
            return None;
        }
        let mut row = self.at(slot).pending_row;
        for _ in 0..PENDING_WALK_MAX {
            let Row { sample, previous, .. } = batch.rows.get(row as usize)?;
            if sample.timestamp_ms == time_ms {
                return Some(row);
            }
            row = *previous;
        }
        // A request that says thousands of times what it said before must not take the square of
        // their number.
        batch.index_by_time();
        batch.by_time.get(&(slot, time_ms)).copied()
    }

    /// The running batch's rows of a series that came in order, latest first, and at their end one
    /// that came out of order, if it was the first.
    fn pending<'a>(&self, batch: &'a Batch, slot: Slot) -> impl Iterator<Item = &'a Row> {
        let latest = batch.rows.get(self.at(slot).pending_row as usize);
        std::iter::successors(latest, |row| batch.rows.get(row.previous as usize))
    }

    fn refuse(&mut self, batch: &mut Batch, slot: Slot, time_ms: i64, reason: RefusalReason) {
        let why_too_old = match self.is_empty() {
            true => {
                "too old: nothing is stored yet, and this lies more than ten years before this \
                 node's clock, as times of a clock do that was never set"
            }
            false => "too old: samples this far behind the newest are no longer accepted",
        };
        let (counter, why) = match reason {
            RefusalReason::DuplicateSample => (
                &mut self.counters.samples_refused_duplicate,
                "duplicate sample for timestamp: another value is stored".to_owned(),
            ),
            RefusalReason::TooOld => {
                (&mut self.counters.samples_refused_too_old, why_too_old.to_owned())
            }
            RefusalReason::TooFarInFuture => (
                &mut self.counters.samples_refused_in_future,
                format!(
                    "too far in the future: more than {} s ahead of this node's clock",
                    self.options.future_limit_ms / 1000
                ),
            ),
            _ => (
                &mut self.counters.samples_refused_out_of_order,
                "out of order: the series has a newer sample".to_owned(),
            ),
        };
        *counter += 1;
        batch.refuse(reason, time_ms, 1, || {
            format!("{} at {time_ms} ms: {why}", self.packed_labels(slot))
        });
    }
}

/// Whether a row says what is stored. An end is an end: which kind of value marks it depends on
/// what its series held when it came.
fn same(stored: &Value, given: &Value) -> bool {
    stored.same_observations(given) || (stored.is_stale() && given.is_stale())
}

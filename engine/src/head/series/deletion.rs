//! Removes samples from a series.

use super::Series;
use crate::chunk::{ChunkError, without};
use crate::model::{TimeRange, Value};
use std::collections::BTreeMap;

impl Series {
    /// Returns the time of the newest sample of any kind.
    pub(in crate::head) fn max_time_ms(&self) -> Option<i64> {
        let out_of_order =
            self.out_of_order.as_ref().and_then(|out_of_order| out_of_order.max_time_ms());
        self.newest_ms().into_iter().chain(out_of_order).max()
    }

    /// Returns the out-of-order samples by time.
    pub(in crate::head) fn out_of_order_values(&self) -> Result<BTreeMap<i64, Value>, ChunkError> {
        self.out_of_order.as_ref().map_or(Ok(BTreeMap::new()), |out_of_order| out_of_order.all())
    }

    /// Removes the in-order samples of a range. The next sample must be newer than the newest one
    /// that stays, so that deleted samples can be sent again.
    pub(in crate::head) fn delete_in_order(&mut self, range: TimeRange) -> Result<(), ChunkError> {
        if let Some(open) = &self.open
            && open.appender.first_timestamp_ms().is_some_and(|first_ms| first_ms <= range.end_ms)
            && self.newest_ms >= range.start_ms
        {
            // Only finished chunks can be rewritten, so an affected open chunk is sealed first.
            self.sealed.extend(open.appender.to_chunk());
            self.open = None;
        }
        let from = self.sealed.partition_point(|chunk| chunk.max_time_ms < range.start_ms);
        let to = self.sealed.partition_point(|chunk| chunk.min_time_ms <= range.end_ms);
        if from >= to {
            return Ok(());
        }
        // All chunks are decoded before any is replaced, so that an error loses no samples.
        let mut kept = Vec::new();
        for chunk in &self.sealed[from..to] {
            kept.extend(without(chunk, &[range])?);
        }
        self.sealed.splice(from..to, kept);
        if self.open.is_none() {
            self.newest_ms = self.sealed.last().map_or(i64::MIN, |last| last.max_time_ms);
        }
        Ok(())
    }

    /// Removes the out-of-order samples of a range.
    pub(in crate::head) fn delete_out_of_order(
        &mut self,
        range: TimeRange,
    ) -> Result<(), ChunkError> {
        let Some(out_of_order) = &mut self.out_of_order else { return Ok(()) };
        out_of_order.delete(range)?;
        if out_of_order.min_time_ms().is_none() {
            self.out_of_order = None;
        }
        Ok(())
    }
}

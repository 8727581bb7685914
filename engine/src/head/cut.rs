//! When a block is due, and dropping what a block holds.
//!
//! In-order samples are cut once they span more than one and a half blocks. Out-of-order samples of
//! a range that is cut already get a block of their own, which overlaps the first: once nothing
//! more can come out of order for that range, or when the next in-order cut is due, so that cuts
//! proceed from the oldest to the newest and truncating needs only a time.
//!
//! When memory is short, all that there is is cut, however recent.
//!
//! If a clock ran ahead and samples came with its times, they stay in the head until their time has
//! come. What comes meanwhile with the right time is out of order for the series that have such
//! samples; it is cut as what is out of order is cut.

use super::series::{block_end, block_start};
use super::{FxHashMap, Head, Slot};
use crate::chunk::ChunkError;
use crate::model::TimeRange;

/// From the oldest to the newest sample. Without any the smallest and the largest time are swapped.
pub(super) fn span_ms(min_time_ms: i64, max_time_ms: i64) -> Option<u64> {
    (min_time_ms <= max_time_ms).then(|| max_time_ms.abs_diff(min_time_ms))
}

/// A cut that was planned and is not truncated yet.
#[derive(Clone, Copy)]
pub(super) struct PlannedCut {
    pub(super) range: TimeRange,
    /// Out-of-order samples of this generation and later came after the plan.
    pub(super) generation: u64,
    /// [`Head::floor_ms`] as long as the plan stands: where it was, until the range is truncated.
    pub(super) floor_ms: i64,
    /// Whether the head held more by then that was new and can be cut next.
    pub(super) has_more: bool,
}

impl Head {
    /// From now on all that there is is due to be cut.
    pub fn cut_all(&mut self) {
        self.cuts_all = true;
    }

    /// The range that the next block should hold, if one is due. From then on in-order samples are
    /// not accepted up to the range's end. The plan stands until its range is truncated.
    pub fn plan_cut(&mut self) -> Option<TimeRange> {
        if let Some(planned) = &self.planned {
            return Some(planned.range);
        }
        if self.replay.is_some() {
            return self.plan_replayed_cut();
        }
        // Whoever deleted may be gone.
        self.find_times_again();
        if self.options.memory.caches_go() {
            self.postings.drop_caches();
        }
        let block = self.options.block_duration_ms;
        let cuts_all = self.cuts_all || self.options.memory.cut_is_due(self.left_by_cut_bytes);
        let span_ms = span_ms(self.min_time_ms, self.max_time_ms.min(self.clock_limit_ms()));
        let in_order_is_due =
            span_ms.is_some_and(|span_ms| cuts_all || span_ms > self.span_ms_max());
        let out_of_order_end_ms = block_end(self.out_of_order_min_time_ms, block);
        let window_ms = self.options.out_of_order_window_ms;
        let is_cut_already = out_of_order_end_ms <= self.min_valid_ms
            || (self.is_ahead_of_clock() && out_of_order_end_ms <= self.min_time_ms);
        let newest_ms = self.newest_ms().min(self.clock_limit_ms());
        let is_over = is_cut_already && out_of_order_end_ms <= newest_ms.saturating_sub(window_ms);
        let out_of_order_is_due =
            self.out_of_order_min_time_ms != i64::MAX && (cuts_all || is_over);
        if !in_order_is_due && !out_of_order_is_due {
            return None;
        }
        let oldest_ms = self.min_time_ms.min(self.out_of_order_min_time_ms);
        let mut end_ms = block_end(oldest_ms, block);
        if cuts_all {
            // The rest of the last block's time stays free for what comes in order later.
            let newest_end_ms = self.newest_ms().min(self.now_ms).saturating_add(1);
            end_ms = end_ms.min(newest_end_ms.max(oldest_ms.saturating_add(1)));
        }
        let range =
            TimeRange { start_ms: block_start(oldest_ms, block), end_ms: end_ms.saturating_sub(1) };
        self.plan(range);
        Some(range)
    }

    /// The head is cut when it spans more milliseconds than this.
    pub(super) fn span_ms_max(&self) -> u64 {
        let block = self.options.block_duration_ms.unsigned_abs();
        block.saturating_add(block / 2)
    }

    pub(super) fn plan(&mut self, range: TimeRange) {
        let floor_ms = self.min_valid_ms;
        let has_more = range.end_ms >= floor_ms && self.newest_ms().min(self.now_ms) > range.end_ms;
        self.min_valid_ms = floor_ms.max(range.end_ms.saturating_add(1));
        self.generation += 1;
        let generation = self.generation;
        self.planned = Some(PlannedCut { range, generation, floor_ms, has_more });
    }

    /// Whether all before this time may be truncated: it is in blocks, or it ends with the cut that
    /// is planned. A head that was restarted knows nothing of an earlier plan, and has taken samples
    /// of its range since, which are not in that cut's block.
    pub fn may_truncate(&self, before_ms: i64) -> bool {
        let is_planned = |cut: PlannedCut| cut.range.end_ms.saturating_add(1) == before_ms;
        before_ms <= self.floor_ms() || self.planned.is_some_and(is_planned)
    }

    /// Whether a cut was planned that is not truncated yet.
    pub fn has_plan(&self) -> bool {
        self.planned.is_some()
    }

    /// The generation from which on out-of-order samples are not part of the cut that was planned.
    pub fn planned_generation(&self) -> u64 {
        self.planned.map_or(0, |planned| planned.generation)
    }

    /// The generation of out-of-order samples that come now.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Drops samples before a time, and series that have none left. Out-of-order samples that came
    /// after the cut was planned stay. The plan stands until [`Head::end_plan`].
    pub fn truncate(&mut self, before_ms: i64) -> Result<(), ChunkError> {
        let generation = match self.replay {
            // The out-of-order log, which would have them, is not read yet.
            Some(_) => 0,
            None => {
                // It has a block now, whether or not the log can drop it soon.
                if let Some(planned) = &mut self.planned {
                    planned.floor_ms = planned.floor_ms.max(before_ms);
                }
                self.planned_generation()
            }
        };
        self.truncate_before(before_ms, generation)?;
        // A cut ends where a block does: what came after that may be nearly all.
        self.left_by_cut_bytes = match self.planned {
            Some(PlannedCut { has_more: true, .. }) => 0,
            _ => (self.options.memory.used_bytes)(),
        };
        Ok(())
    }

    /// Drops the plan of a cut that was truncated.
    pub fn end_plan(&mut self, before_ms: i64) {
        if self.planned.is_some_and(|planned| planned.range.end_ms < before_ms) {
            self.planned = None;
        }
    }

    pub(super) fn truncate_before(
        &mut self,
        before_ms: i64,
        generation: u64,
    ) -> Result<(), ChunkError> {
        self.min_valid_ms = self.min_valid_ms.max(before_ms);
        let (mut min_time_ms, mut out_of_order_min_time_ms) = (i64::MAX, i64::MAX);
        let mut empty = Vec::new();
        for slot in self.series.all() {
            let Some(series) = self.series.get_mut(slot) else { continue };
            self.chunk_count -= series.truncate(before_ms, generation)?;
            let (in_order, out_of_order) =
                (series.min_time_ms(), series.out_of_order_min_time_ms());
            // Rows that the log gives later name their series by numbers.
            if in_order.is_none() && out_of_order.is_none() && self.replay.is_none() {
                empty.push(slot);
            }
            min_time_ms = min_time_ms.min(in_order.unwrap_or(i64::MAX));
            out_of_order_min_time_ms =
                out_of_order_min_time_ms.min(out_of_order.unwrap_or(i64::MAX));
        }
        self.counters.series_removed += empty.len() as u64;
        self.remove(&empty);
        self.out_of_order_min_time_ms = out_of_order_min_time_ms;
        self.min_time_ms = min_time_ms;
        // As long as something out of order is held, the newest time says how far behind it is.
        if min_time_ms == i64::MAX && out_of_order_min_time_ms == i64::MAX {
            self.max_time_ms = i64::MIN;
        }
        let series = &self.series;
        let lives = |series_ref: &u64, slot: &Slot| {
            let held = series.get(*slot);
            held.is_some_and(|series| series.series_ref == *series_ref)
        };
        let mut by_ref: FxHashMap<u64, Slot> = std::mem::take(&mut self.by_ref);
        by_ref.retain(|series_ref, slot| lives(series_ref, slot));
        self.by_ref = by_ref;
        Ok(())
    }
}

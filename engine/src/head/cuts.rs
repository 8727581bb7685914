//! Cuts: when a block is due, and which one is being made.
//!
//! In-order samples are cut once they span more than one and a half blocks. Out-of-order samples of
//! a range that is cut already get a block of their own, which overlaps the first: once nothing
//! more can come out of order for that range, or when the next in-order cut is due, so that cuts
//! proceed from the oldest to the newest and truncating needs only a time.
//!
//! When memory is short, all that there is is cut, however recent; while the log is read, too.
//!
//! If a clock ran ahead and samples came with its times, they stay in the head until their time has
//! come. What comes meanwhile with the right time is out of order for the series that have such
//! samples; it is cut as what is out of order is cut.

use super::series::{block_end, block_start};
use super::window::Window;
use crate::memory::MemoryBudget;
use crate::model::TimeRange;

/// The cuts that were planned, and what decides about the next.
pub struct Cuts {
    memory: MemoryBudget,
    /// How many cuts were planned; it distinguishes out-of-order samples.
    generation: u64,
    /// Whether everything is due to be cut.
    is_all_due: bool,
    /// Memory in use after the last cut.
    left_bytes: u64,
    /// The cut that was planned and not truncated yet.
    planned: Option<PlannedCut>,
    /// Longest span of a block that is cut while the log is read, in milliseconds, if it may be
    /// longer than one that is cut later.
    replay_span_ms: i64,
}

/// A cut that was planned and is not truncated yet.
#[derive(Clone, Copy)]
struct PlannedCut {
    range: TimeRange,
    /// Out-of-order samples of this generation and later came after the plan.
    generation: u64,
    /// [`Cuts::floor_ms`] as long as the plan stands: where it was, until the range is truncated.
    floor_ms: i64,
    /// Whether the head held more by then that was new and can be cut next.
    has_more: bool,
}

impl Cuts {
    /// None was planned yet.
    pub fn new(memory: MemoryBudget) -> Cuts {
        Cuts {
            memory,
            generation: 0,
            is_all_due: false,
            left_bytes: 0,
            planned: None,
            replay_span_ms: 0,
        }
    }

    /// From now on all that there is is due to be cut.
    pub fn cut_all(&mut self) {
        self.is_all_due = true;
    }

    /// Lets blocks that are cut while the log is read be as long as a merged one.
    pub fn set_replay_span_ms(&mut self, span_ms: i64) {
        self.replay_span_ms = span_ms;
    }

    /// The range of the cut that was planned and is not truncated yet.
    pub fn planned(&self) -> Option<TimeRange> {
        self.planned.map(|planned| planned.range)
    }

    /// Plans the next cut, if one is due.
    pub fn plan_due(&mut self, window: &mut Window) -> Option<TimeRange> {
        let block = window.block_duration_ms();
        let held = window.held();
        let is_all_due = self.is_all_due || self.memory.cut_is_due(self.left_bytes);
        let span_ms = span_ms(held.oldest_ms, held.newest_ms.min(window.clock_limit_ms()));
        let in_order_is_due =
            span_ms.is_some_and(|span_ms| is_all_due || span_ms > span_ms_max(window));
        let out_of_order_end_ms = block_end(held.oldest_out_of_order_ms, block);
        let is_cut_already = out_of_order_end_ms <= window.min_valid_ms()
            || (window.is_ahead_of_clock() && out_of_order_end_ms <= held.oldest_ms);
        let newest_ms = window.newest_ms().min(window.clock_limit_ms());
        let over_ms = newest_ms.saturating_sub(window.out_of_order_window_ms());
        let is_over = is_cut_already && out_of_order_end_ms <= over_ms;
        let out_of_order_is_due =
            held.oldest_out_of_order_ms != i64::MAX && (is_all_due || is_over);
        if !in_order_is_due && !out_of_order_is_due {
            return None;
        }
        let oldest_ms = held.oldest_ms.min(held.oldest_out_of_order_ms);
        let mut end_ms = block_end(oldest_ms, block);
        if is_all_due {
            // The rest of the last block's time stays free for what comes in order later.
            let newest_end_ms = window.newest_ms().min(window.now_ms()).saturating_add(1);
            end_ms = end_ms.min(newest_end_ms.max(oldest_ms.saturating_add(1)));
        }
        let start_ms = block_start(oldest_ms, block);
        Some(self.plan(TimeRange { start_ms, end_ms: end_ms.saturating_sub(1) }, window))
    }

    /// Plans a cut while the log is read, up to where no row belongs that is as recent as
    /// `recent_ms`. To save a merge it may reach as far as a block of the next level.
    pub fn plan_replayed(&mut self, window: &mut Window, recent_ms: i64) -> Option<TimeRange> {
        let block = window.block_duration_ms();
        let held = window.held();
        let quiet_until_ms = held.newest_ms.saturating_sub(block / 2).min(recent_ms);
        let next_level_end_ms = block_end(held.oldest_ms, self.replay_span_ms.max(block));
        let end_ms = block_start(quiet_until_ms, block).min(next_level_end_ms);
        let start_ms = block_start(held.oldest_ms, block);
        if end_ms <= start_ms {
            return None;
        }
        Some(self.plan(TimeRange { start_ms, end_ms: end_ms.saturating_sub(1) }, window))
    }

    /// Whether memory is so short while the log is read that recent samples have to be cut, too.
    pub fn must_cut_replayed(&self) -> bool {
        self.memory.refuses_series() && self.memory.cut_is_due(self.left_bytes)
    }

    /// Plans a cut while the log is read and memory is short, however recent the samples are. What
    /// the log has further on for this range is kept as out-of-order.
    pub fn plan_replayed_recent(&mut self, window: &mut Window) -> Option<TimeRange> {
        let block = window.block_duration_ms();
        let held = window.held();
        if held.oldest_ms > held.newest_ms {
            return None;
        }
        let end_ms = block_end(held.oldest_ms, block).min(held.newest_ms.saturating_add(1));
        let start_ms = block_start(held.oldest_ms, block);
        Some(self.plan(TimeRange { start_ms, end_ms: end_ms.saturating_sub(1) }, window))
    }

    fn plan(&mut self, range: TimeRange, window: &mut Window) -> TimeRange {
        let floor_ms = window.min_valid_ms();
        let has_more =
            range.end_ms >= floor_ms && window.newest_ms().min(window.now_ms()) > range.end_ms;
        window.leave_to_blocks(range.end_ms.saturating_add(1));
        self.generation += 1;
        let generation = self.generation;
        self.planned = Some(PlannedCut { range, generation, floor_ms, has_more });
        range
    }

    /// In-order samples before this time are in committed blocks, or in nothing at all, once the
    /// log is read. A cut that is planned has no block before it is truncated.
    pub fn floor_ms(&self, window: &Window) -> i64 {
        self.planned.map_or(window.min_valid_ms(), |planned| planned.floor_ms)
    }

    /// Whether a time is the end of the cut that is planned.
    pub fn ends_before(&self, before_ms: i64) -> bool {
        self.planned.is_some_and(|cut| cut.range.end_ms.saturating_add(1) == before_ms)
    }

    /// The generation from which on out-of-order samples are not part of the cut that was planned.
    pub fn planned_generation(&self) -> u64 {
        self.planned.map_or(0, |planned| planned.generation)
    }

    /// The generation of out-of-order samples that come now.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Raises the floor of the plan: what lies before has a block now, whether or not the log can
    /// drop it soon.
    pub fn note_block_before(&mut self, before_ms: i64) {
        if let Some(planned) = &mut self.planned {
            planned.floor_ms = planned.floor_ms.max(before_ms);
        }
    }

    /// Notes how much memory is left in use by a truncation.
    pub fn note_left_bytes(&mut self) {
        // A cut ends where a block does: what came after that may be nearly all.
        self.left_bytes = match self.planned {
            Some(PlannedCut { has_more: true, .. }) => 0,
            _ => (self.memory.used_bytes)(),
        };
    }

    /// Drops the plan of a cut that was truncated.
    pub fn end_plan(&mut self, before_ms: i64) {
        self.planned = self.planned.filter(|planned| planned.range.end_ms >= before_ms);
    }
}

/// Whether in-order samples span more than the head should hold, whatever the clock.
pub fn spans_too_much(window: &Window) -> bool {
    let held = window.held();
    span_ms(held.oldest_ms, held.newest_ms).is_some_and(|span_ms| span_ms > span_ms_max(window))
}

/// The head is cut when it spans more milliseconds than this.
fn span_ms_max(window: &Window) -> u64 {
    let block = window.block_duration_ms().unsigned_abs();
    block.saturating_add(block / 2)
}

/// From the oldest to the newest sample. Without any the smallest and the largest time are swapped.
fn span_ms(oldest_ms: i64, newest_ms: i64) -> Option<u64> {
    (oldest_ms <= newest_ms).then(|| newest_ms.abs_diff(oldest_ms))
}

//! Cuts: when a block is due, and which one is being made.
//!
//! In-order samples are cut once they span more than one and a half blocks. Out-of-order samples
//! whose range is already cut get a second block, which overlaps the first. This block is cut once
//! no more samples can arrive for that range, or when the next in-order cut is due. So cuts proceed
//! from the oldest range to the newest, and a truncation needs only a time.
//!
//! When memory is short, everything is cut, however recent, also while the log is read.
//!
//! If samples arrived while a clock ran ahead, they stay in the head until the present reaches
//! their times. In the same series, samples with correct times are out of order meanwhile, and are
//! cut like other out-of-order samples.

use super::series::{block_end, block_start};
use super::window::Window;
use crate::memory::MemoryBudget;
use crate::model::TimeRange;

/// The planned cut, if any, and the state that decides when the next cut is due.
pub struct Cuts {
    memory: MemoryBudget,
    /// Number of cuts planned so far: the generation of out-of-order samples that arrive now.
    generation: u64,
    /// Whether everything is due to be cut.
    is_all_due: bool,
    /// Memory in use after the last cut; 0 if more samples can be cut at once.
    left_bytes: u64,
    /// The cut that is planned and not truncated yet.
    planned: Option<PlannedCut>,
    /// Longest span in milliseconds of a block that is cut while the log is read, if that is longer
    /// than a usual block.
    replay_span_ms: i64,
}

/// A cut that was planned and is not truncated yet.
#[derive(Clone, Copy)]
struct PlannedCut {
    range: TimeRange,
    /// Out-of-order samples of this generation and later arrived after the plan was made.
    generation: u64,
    /// Value of [`Cuts::floor_ms`] until the plan ends: the floor from before the plan.
    floor_ms: i64,
    /// Whether the head had newer samples that can be cut next, when the cut was planned.
    has_more: bool,
}

impl Cuts {
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

    /// Makes everything due to be cut.
    pub fn cut_all(&mut self) {
        self.is_all_due = true;
    }

    /// Sets the longest span of a block cut while the log is read, if longer than a usual block.
    pub fn set_replay_span_ms(&mut self, span_ms: i64) {
        self.replay_span_ms = span_ms;
    }

    /// Returns the range of the cut that is planned and not truncated yet.
    pub fn planned(&self) -> Option<TimeRange> {
        self.planned.map(|planned| planned.range)
    }

    /// Plans the next cut, if one is due.
    pub fn plan_due(&mut self, window: &mut Window) -> Option<TimeRange> {
        let block = window.block_duration_ms();
        let held = window.held();
        let is_all_due = self.is_all_due || self.memory.cut_is_due(self.left_bytes);
        // Samples ahead of the clock do not count towards the span, so they cause no cut.
        let span_ms = span_ms(held.oldest_ms, held.newest_ms.min(window.clock_limit_ms()));
        let in_order_is_due =
            span_ms.is_some_and(|span_ms| is_all_due || span_ms > span_ms_max(window));
        let out_of_order_end_ms = block_end(held.oldest_out_of_order_ms, block);
        // Samples ahead of the clock make no in-order cut due, so none of this range is waited for.
        let is_cut_already = out_of_order_end_ms <= window.min_valid_ms()
            || (window.is_ahead_of_clock() && out_of_order_end_ms <= held.oldest_ms);
        let newest_ms = window.newest_ms().min(window.clock_limit_ms());
        let over_ms = newest_ms.saturating_sub(window.out_of_order_window_ms());
        // Once the window has passed, no more samples can be accepted for the range.
        let is_over = is_cut_already && out_of_order_end_ms <= over_ms;
        let out_of_order_is_due =
            held.oldest_out_of_order_ms != i64::MAX && (is_all_due || is_over);
        if !in_order_is_due && !out_of_order_is_due {
            return None;
        }
        let oldest_ms = held.oldest_ms.min(held.oldest_out_of_order_ms);
        let mut end_ms = block_end(oldest_ms, block);
        if is_all_due {
            // The rest of the block's range stays open to later in-order samples.
            let newest_end_ms = window.newest_ms().min(window.now_ms()).saturating_add(1);
            end_ms = end_ms.min(newest_end_ms.max(oldest_ms.saturating_add(1)));
        }
        let start_ms = block_start(oldest_ms, block);
        Some(self.plan(TimeRange { start_ms, end_ms: end_ms.saturating_sub(1) }, window))
    }

    /// Plans a cut while the log is read, at most up to the block of `recent_ms`, the oldest time
    /// of the rows read last. To save a merge, the cut may be as long as a block of the next level.
    pub fn plan_replayed(&mut self, window: &mut Window, recent_ms: i64) -> Option<TimeRange> {
        let block = window.block_duration_ms();
        let held = window.held();
        // Rows of up to half a block before the newest sample may still follow in order.
        let quiet_until_ms = held.newest_ms.saturating_sub(block / 2).min(recent_ms);
        let next_level_end_ms = block_end(held.oldest_ms, self.replay_span_ms.max(block));
        let end_ms = block_start(quiet_until_ms, block).min(next_level_end_ms);
        let start_ms = block_start(held.oldest_ms, block);
        if end_ms <= start_ms {
            return None;
        }
        Some(self.plan(TimeRange { start_ms, end_ms: end_ms.saturating_sub(1) }, window))
    }

    /// Returns whether memory is so short while the log is read that recent samples must be cut.
    pub fn must_cut_replayed(&self) -> bool {
        self.memory.refuses_series() && self.memory.cut_is_due(self.left_bytes)
    }

    /// Plans a cut while the log is read and memory is short, however recent the samples are. Later
    /// rows of the log for this range are kept as out-of-order.
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
        // The range is closed to in-order samples at once, so that the block holds all of them.
        window.leave_to_blocks(range.end_ms.saturating_add(1));
        self.generation += 1;
        let generation = self.generation;
        self.planned = Some(PlannedCut { range, generation, floor_ms, has_more });
        range
    }

    /// Returns a time before which all in-order samples are in committed blocks, once the log is
    /// read. The range of a planned cut is excluded until it is truncated.
    pub fn floor_ms(&self, window: &Window) -> i64 {
        self.planned.map_or(window.min_valid_ms(), |planned| planned.floor_ms)
    }

    /// Returns whether a time is the exclusive end of the planned cut.
    pub fn ends_before(&self, before_ms: i64) -> bool {
        self.planned.is_some_and(|cut| cut.range.end_ms.saturating_add(1) == before_ms)
    }

    /// Returns the first generation of out-of-order samples that is not part of the planned cut.
    pub fn planned_generation(&self) -> u64 {
        self.planned.map_or(0, |planned| planned.generation)
    }

    /// Returns the generation of out-of-order samples that arrive now.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Raises the floor of the plan: a block now has the samples before this time, even if the log
    /// is truncated only later.
    pub fn note_block_before(&mut self, before_ms: i64) {
        if let Some(planned) = &mut self.planned {
            planned.floor_ms = planned.floor_ms.max(before_ms);
        }
    }

    /// Notes the memory that is in use after a truncation.
    pub fn note_left_bytes(&mut self) {
        // Newer samples may still use nearly all memory; 0 makes their cut due at once.
        self.left_bytes = match self.planned {
            Some(PlannedCut { has_more: true, .. }) => 0,
            _ => (self.memory.used_bytes)(),
        };
    }

    /// Drops the plan if its range ends before `before_ms`, so that it is truncated.
    pub fn end_plan(&mut self, before_ms: i64) {
        self.planned = self.planned.filter(|planned| planned.range.end_ms >= before_ms);
    }
}

/// Returns whether in-order samples, even ahead of the clock, span more than the head should hold.
pub fn spans_too_much(window: &Window) -> bool {
    let held = window.held();
    span_ms(held.oldest_ms, held.newest_ms).is_some_and(|span_ms| span_ms > span_ms_max(window))
}

/// Returns the span in milliseconds beyond which the head is cut.
fn span_ms_max(window: &Window) -> u64 {
    let block = window.block_duration_ms().unsigned_abs();
    block.saturating_add(block / 2)
}

/// Returns the span between two times; `None` for an empty head, whose times are swapped.
fn span_ms(oldest_ms: i64, newest_ms: i64) -> Option<u64> {
    (oldest_ms <= newest_ms).then(|| newest_ms.abs_diff(oldest_ms))
}

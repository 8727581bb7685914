//! Removes from the head: series without samples, samples that blocks hold, deleted samples.
//!
//! `cuts` decides which samples a block takes over, `deletion` which samples a deletion removes.
//! This file removes them from the series table, the postings and the window together.

use super::cuts::spans_too_much;
use super::deletion::next_spans;
use super::{DeletedSpan, Head, HeadCursor, Slot};
use crate::chunk::ChunkError;
use crate::model::TimeRange;

impl Head {
    /// Makes everything that the head holds due to be cut.
    pub fn cut_all(&mut self) {
        self.cuts.cut_all();
    }

    /// Returns the range that the next block should hold, if a cut is due. From then on in-order
    /// samples up to the end of the range are refused, and the same range is returned until it is
    /// truncated. While the log is read, a cut is due only beyond the usual span and ends before
    /// recently read rows; if memory is short and no older rows are left, recent rows are cut.
    pub fn plan_cut(&mut self) -> Option<TimeRange> {
        // An unfinished plan comes first: its range accepts no in-order samples any more.
        if let Some(range) = self.cuts.planned() {
            return Some(range);
        }
        if self.replay.is_some() {
            return self.plan_replayed_cut();
        }
        // The caller of a deletion may have ended before the search for the times was done.
        self.find_times_again();
        // The next read can build these orders again, so they go before samples are cut early.
        if self.options.memory.caches_go() {
            self.postings.drop_caches();
        }
        self.cuts.plan_due(&mut self.window)
    }

    fn plan_replayed_cut(&mut self) -> Option<TimeRange> {
        let is_short = self.cuts.must_cut_replayed();
        if !is_short && !spans_too_much(&self.window) {
            return None;
        }
        // Floats that wait to be appended belong to the span that is compared.
        self.settle_replay();
        if spans_too_much(&self.window) {
            let recent_ms = self.replay.as_ref()?.recent_ms();
            let plan = |ms| self.cuts.plan_replayed(&mut self.window, ms);
            let range = recent_ms.and_then(plan);
            if range.is_some() {
                return range;
            }
        }
        is_short.then(|| self.cuts.plan_replayed_recent(&mut self.window))?
    }

    /// Returns whether the head has no sample newer than a planned range.
    pub fn holds_nothing_after(&self, range: TimeRange) -> bool {
        self.window.held().newest_ms <= range.end_ms
    }

    /// Sets the longest span of a block cut while the log is read, if longer than a usual block.
    pub fn set_replay_cut_ms(&mut self, span_ms: i64) {
        self.cuts.set_replay_span_ms(span_ms);
    }

    /// Returns a time before which all in-order samples are in committed blocks. The ranges of a
    /// planned cut and of cuts made while the log is read are excluded until they are committed.
    pub fn floor_ms(&self) -> i64 {
        match self.replay {
            Some(_) => self.window.stored_until_ms(),
            None => self.cuts.floor_ms(&self.window),
        }
    }

    /// Returns whether everything before this time may be truncated: it is in blocks, or the time
    /// is the end of the planned cut. A plan from before a restart is unknown: the head may have
    /// accepted samples of its range since, which the block of that plan lacks.
    pub fn may_truncate(&self, before_ms: i64) -> bool {
        before_ms <= self.floor_ms() || self.cuts.ends_before(before_ms)
    }

    /// Returns whether a planned cut is not truncated yet.
    pub fn has_plan(&self) -> bool {
        self.cuts.planned().is_some()
    }

    /// Returns the first generation of out-of-order samples that is not part of the planned cut.
    pub fn planned_generation(&self) -> u64 {
        self.cuts.planned_generation()
    }

    /// Returns the generation of out-of-order samples that arrive now.
    pub fn generation(&self) -> u64 {
        self.cuts.generation()
    }

    /// Drops samples before a time, and series without samples. Out-of-order samples that arrived
    /// after the cut was planned are kept. The plan remains until [`Head::end_plan`].
    pub fn truncate(&mut self, before_ms: i64) -> Result<(), ChunkError> {
        let generation = match self.replay {
            // 0 keeps all out-of-order samples: log rows in the range of a cut have no block.
            Some(_) => 0,
            None => {
                self.cuts.note_block_before(before_ms);
                self.cuts.planned_generation()
            }
        };
        self.truncate_before(before_ms, generation)?;
        self.cuts.note_left_bytes();
        Ok(())
    }

    /// Drops the plan if its range ends before `before_ms`, so that it is truncated.
    pub fn end_plan(&mut self, before_ms: i64) {
        self.cuts.end_plan(before_ms);
    }

    pub(super) fn truncate_before(
        &mut self,
        before_ms: i64,
        generation: u64,
    ) -> Result<(), ChunkError> {
        self.window.leave_to_blocks(before_ms);
        // During replay empty series stay, since later rows of the log refer to them by number.
        let drops_empty = self.replay.is_none();
        let truncated = self.table.truncate(before_ms, generation, drops_empty)?;
        self.counters.series_removed += truncated.empty.len() as u64;
        self.remove(&truncated.empty);
        self.window.set_oldest(truncated.held);
        self.table.drop_dead_refs();
        Ok(())
    }

    /// Removes series from all tables.
    pub(super) fn remove(&mut self, slots: &[Slot]) {
        if !slots.is_empty() {
            // Postings first: they find the labels of removed series in the table.
            self.postings.remove(slots, self.table.places());
            self.table.remove(slots);
        }
    }

    /// Returns the ranges that a deletion removes from the next series of a cursor. For each series
    /// that may have samples in `range`, the result ends with the newest sample at the latest. Its
    /// start is that of `range`, since the log may still have older samples than the head.
    pub fn spans_to_delete(&self, cursor: &mut HeadCursor, range: TimeRange) -> Vec<DeletedSpan> {
        next_spans(&self.table, cursor, range)
    }

    /// Removes samples whose tombstones are logged. After the last call for a deletion,
    /// [`Head::find_times_again`] must be called.
    pub fn delete(&mut self, spans: &[DeletedSpan]) -> Result<(), ChunkError> {
        for DeletedSpan { slot, range } in spans {
            self.table.delete_in_order(*slot, *range)?;
            self.table.at_mut(*slot).delete_out_of_order(*range)?;
        }
        // A running search starts again, as it may have included a sample that is now deleted.
        self.observers.begin_scan();
        self.observers.note_deletion();
        Ok(())
    }

    /// Does a slice of the search for the oldest and newest samples after a deletion; returns
    /// whether more is to be done. Deleted samples no longer make new samples out-of-order: a
    /// replay would soon not find them in the log either.
    pub fn find_times_again(&mut self) -> bool {
        let Some(mut scan) = self.observers.take_scan() else { return false };
        let found = scan.step(&self.table);
        match found {
            Some(held) => self.window.set_held(held),
            None => self.observers.resume_scan(scan),
        }
        found.is_none()
    }

    /// Returns a number that changes with each deletion and differs between runs of the head.
    pub fn deletion_mark(&self) -> u64 {
        self.observers.deletion_mark()
    }
}

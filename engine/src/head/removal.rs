//! Removes from the head: series without samples, samples that blocks hold, deleted samples.
//!
//! `cuts` decides what a block takes, and `deletion` what a deletion takes; here both are removed
//! from the table of series, the lists by label and the times together.

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

    /// Returns the range that the next block should hold, if one is due. From then on in-order
    /// samples up to the range's end are not accepted. The plan stands until its range is
    /// truncated. While the log is read, only samples beyond the usual span are cut, up to where no
    /// recent row belongs; if memory is short and there are none, recent rows are cut as well.
    pub fn plan_cut(&mut self) -> Option<TimeRange> {
        // A plan must end first: its range accepts no in-order samples any more.
        if let Some(range) = self.cuts.planned() {
            return Some(range);
        }
        if self.replay.is_some() {
            return self.plan_replayed_cut();
        }
        // The caller that deleted may have ended before the search was done.
        self.find_times_again();
        // The next read builds these again, so they are given up before samples are cut early.
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
        // Waiting floats belong to the span that decides.
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

    /// Returns whether no in-order sample is newer than a planned range.
    pub fn holds_nothing_after(&self, range: TimeRange) -> bool {
        self.window.held().newest_ms <= range.end_ms
    }

    /// Allows blocks that are cut while the log is read to be as long as a merged one.
    pub fn set_replay_cut_ms(&mut self, span_ms: i64) {
        self.cuts.set_replay_span_ms(span_ms);
    }

    /// Returns the time before which in-order samples are in committed blocks, or nowhere. A
    /// planned cut has no block before it is truncated, nor have cuts made while the log is read.
    pub fn floor_ms(&self) -> i64 {
        match self.replay {
            Some(_) => self.window.stored_until_ms(),
            None => self.cuts.floor_ms(&self.window),
        }
    }

    /// Returns whether everything before this time may be truncated: it is in blocks, or the time
    /// ends the planned cut. A restarted head knows no earlier plan, and has accepted samples of
    /// its range since, which that cut's block does not hold.
    pub fn may_truncate(&self, before_ms: i64) -> bool {
        before_ms <= self.floor_ms() || self.cuts.ends_before(before_ms)
    }

    /// Returns whether a planned cut is not truncated yet.
    pub fn has_plan(&self) -> bool {
        self.cuts.planned().is_some()
    }

    /// Returns the first generation of out-of-order samples that the planned cut does not hold.
    pub fn planned_generation(&self) -> u64 {
        self.cuts.planned_generation()
    }

    /// Returns the generation of out-of-order samples that come now.
    pub fn generation(&self) -> u64 {
        self.cuts.generation()
    }

    /// Drops samples before a time, and series without samples. Out-of-order samples that came
    /// after the cut was planned stay. The plan stands until [`Head::end_plan`].
    pub fn truncate(&mut self, before_ms: i64) -> Result<(), ChunkError> {
        let generation = match self.replay {
            // Out-of-order samples are not read yet; those behind cuts have no block.
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

    /// Drops the plan of a cut that was truncated.
    pub fn end_plan(&mut self, before_ms: i64) {
        self.cuts.end_plan(before_ms);
    }

    pub(super) fn truncate_before(
        &mut self,
        before_ms: i64,
        generation: u64,
    ) -> Result<(), ChunkError> {
        self.window.leave_to_blocks(before_ms);
        // Later rows of the log refer to their series by number.
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

    /// Returns what the deletion of a range removes from the next series of a cursor: for each that
    /// may have samples there, the range up to its newest sample. The range's start is kept, since
    /// the log may still hold older samples than the head.
    pub fn spans_to_delete(&self, cursor: &mut HeadCursor, range: TimeRange) -> Vec<DeletedSpan> {
        next_spans(&self.table, cursor, range)
    }

    /// Removes samples, once the log has their tombstones. [`Head::find_times_again`] follows the
    /// last of several such calls.
    pub fn delete(&mut self, spans: &[DeletedSpan]) -> Result<(), ChunkError> {
        for DeletedSpan { slot, range } in spans {
            self.table.delete_in_order(*slot, *range)?;
            self.table.at_mut(*slot).delete_out_of_order(*range)?;
        }
        // A running search starts again, as it may have counted a sample that is gone.
        self.observers.begin_scan();
        self.observers.note_deletion();
        Ok(())
    }

    /// Does a slice of the search for the oldest and newest samples after a deletion; returns
    /// whether some is left to do. Deletions do not make new samples out-of-order: a replay would
    /// not know them for long.
    pub fn find_times_again(&mut self) -> bool {
        let Some(mut scan) = self.observers.take_scan() else { return false };
        let found = scan.step(&self.table);
        match found {
            Some(held) => self.window.set_held(held),
            None => self.observers.resume_scan(scan),
        }
        found.is_none()
    }

    /// Returns a number that differs after each deletion and in each run of the head.
    pub fn deletion_mark(&self) -> u64 {
        self.observers.deletion_mark()
    }
}

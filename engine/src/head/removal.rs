//! What leaves the head: series without samples, samples that blocks hold, samples that are
//! deleted.
//!
//! `cuts` decides what a block takes, `deletion` what a deletion takes; here it is taken out of the
//! table of series, the lists by label and the times together.

use super::cuts::spans_too_much;
use super::deletion::next_spans;
use super::{DeletedSpan, Head, HeadCursor, Slot};
use crate::chunk::ChunkError;
use crate::model::TimeRange;

impl Head {
    /// From now on all that there is is due to be cut.
    pub fn cut_all(&mut self) {
        self.cuts.cut_all();
    }

    /// The range that the next block should hold, if one is due. From then on in-order samples are
    /// not accepted up to the range's end. The plan stands until its range is truncated. While the
    /// log is read, only what reaches beyond the usual span is cut, up to where no recent row
    /// belongs; if memory is short and there is no such, recent rows are cut all the same.
    pub fn plan_cut(&mut self) -> Option<TimeRange> {
        if let Some(range) = self.cuts.planned() {
            return Some(range);
        }
        if self.replay.is_some() {
            return self.plan_replayed_cut();
        }
        // The caller that deleted may have ended before the search was done.
        self.find_times_again();
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

    /// Whether a range that was planned ends the times that came in order.
    pub fn holds_nothing_after(&self, range: TimeRange) -> bool {
        self.window.held().newest_ms <= range.end_ms
    }

    /// Lets blocks that are cut while the log is read be as long as a merged one.
    pub fn set_replay_cut_ms(&mut self, span_ms: i64) {
        self.cuts.set_replay_span_ms(span_ms);
    }

    /// In-order samples before this time are in committed blocks, or in nothing at all. A cut that
    /// is planned has no block before it is truncated, nor have those that were done while the log
    /// is read.
    pub fn floor_ms(&self) -> i64 {
        match self.replay {
            Some(_) => self.window.stored_until_ms(),
            None => self.cuts.floor_ms(&self.window),
        }
    }

    /// Whether all before this time may be truncated: it is in blocks, or it ends with the cut that
    /// is planned. A head that was restarted knows nothing of an earlier plan, and has taken
    /// samples of its range since, which are not in that cut's block.
    pub fn may_truncate(&self, before_ms: i64) -> bool {
        before_ms <= self.floor_ms() || self.cuts.ends_before(before_ms)
    }

    /// Whether a cut was planned that is not truncated yet.
    pub fn has_plan(&self) -> bool {
        self.cuts.planned().is_some()
    }

    /// The generation from which on out-of-order samples are not part of the cut that was planned.
    pub fn planned_generation(&self) -> u64 {
        self.cuts.planned_generation()
    }

    /// The generation of out-of-order samples that come now.
    pub fn generation(&self) -> u64 {
        self.cuts.generation()
    }

    /// Drops samples before a time, and series that have none left. Out-of-order samples that came
    /// after the cut was planned stay. The plan stands until [`Head::end_plan`].
    pub fn truncate(&mut self, before_ms: i64) -> Result<(), ChunkError> {
        let generation = match self.replay {
            // The out-of-order log, which would have them, is not read yet.
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
        // Rows that the log gives later name their series by numbers.
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
            self.postings.remove(slots, self.table.places());
            self.table.remove(slots);
        }
    }

    /// What the deletion of a range takes out of the next series of a cursor: for each that may
    /// have samples there, the range up to its newest sample. The range's start stays as it is,
    /// since the log may still hold older samples than the head.
    pub fn spans_to_delete(&self, cursor: &mut HeadCursor, range: TimeRange) -> Vec<DeletedSpan> {
        next_spans(&self.table, cursor, range)
    }

    /// Takes samples out, once the log knows. [`Head::find_times_again`] follows the last of
    /// several such calls.
    pub fn delete(&mut self, spans: &[DeletedSpan]) -> Result<(), ChunkError> {
        for DeletedSpan { slot, range } in spans {
            self.table.delete_in_order(*slot, *range)?;
            self.table.at_mut(*slot).delete_out_of_order(*range)?;
        }
        self.observers.begin_scan();
        self.observers.note_deletion();
        Ok(())
    }

    /// Does a slice of finding the times of the oldest and the newest samples after a deletion;
    /// returns whether some is left to do. What was deleted does not make new samples out-of-order:
    /// a replay would not know of it for long.
    pub fn find_times_again(&mut self) -> bool {
        let Some(mut scan) = self.observers.take_scan() else { return false };
        let found = scan.step(&self.table);
        match found {
            Some(held) => self.window.set_held(held),
            None => self.observers.resume_scan(scan),
        }
        found.is_none()
    }

    /// Another number after each deletion, and in each life of a head.
    pub fn deletion_mark(&self) -> u64 {
        self.observers.deletion_mark()
    }
}

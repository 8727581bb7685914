//! Observers of changes: open cursors, and the search for times after a deletion.
//!
//! Nearly always nothing observes samples; one flag states that.

use super::Slot;
use super::cursor::{OpenCursor, OpenCursors, Watch, Watches};
use super::deletion::TimesScan;
use super::series::out_of_order_samples::Arrival;
use std::rc::Rc;

pub struct Observers {
    /// Number of cursors ever opened, which tells epochs of out-of-order samples apart.
    epoch: u64,
    open_cursors: Rc<OpenCursors>,
    /// Cursors that note the samples which come while they are prepared.
    watches: Watches,
    /// The search that follows a deletion.
    times_scan: Option<Box<TimesScan>>,
    /// Whether a watch or the search must see each sample.
    is_observed: bool,
    /// Differs after each deletion, and in each run.
    deletion_mark: u64,
}

impl Observers {
    /// Has no observers yet; deletions are counted from a number that differs in each run.
    pub fn new(deletion_mark: u64) -> Observers {
        Observers {
            epoch: 0,
            open_cursors: Rc::default(),
            watches: Watches::default(),
            times_scan: None,
            is_observed: false,
            deletion_mark,
        }
    }

    /// Returns whether [`Observers::note_sample`] must be called for each sample.
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.is_observed
    }

    /// Notes a sample that is about to be stored in a series with this newest in-order one.
    #[cold]
    pub fn note_sample(
        &mut self,
        slot: Slot,
        newest_ms: Option<i64>,
        timestamp_ms: i64,
        is_out_of_order: bool,
    ) {
        // Cursors tell out-of-order samples apart by their epochs instead.
        if !is_out_of_order {
            self.watches.note(slot, newest_ms);
        }
        if let Some(scan) = &mut self.times_scan {
            scan.add(timestamp_ms, is_out_of_order);
        }
        // Cleared here, since a cursor that is dropped does not report it.
        self.is_observed = self.times_scan.is_some() || !self.watches.is_empty();
    }

    /// Returns the arrival of an out-of-order sample that comes now.
    pub fn arrival(&self, generation: u64) -> Arrival<'_> {
        Arrival { generation, epoch: self.epoch, cursors: &self.open_cursors }
    }

    pub fn open_cursors(&self) -> u64 {
        self.open_cursors.count()
    }

    /// Whether open cursors take more than their part of a head's memory; 0 is no limit.
    pub fn take_too_much(&self, memory_bytes_max: u64) -> bool {
        self.open_cursors.take_too_much(memory_bytes_max)
    }

    /// Counts as an open cursor of this size until the value is dropped.
    pub fn open(&self, bytes: u64) -> OpenCursor {
        OpenCursor::new(&self.open_cursors, bytes, None)
    }

    /// Counts as an open cursor that sees samples from before this epoch, until dropped.
    pub fn open_at(&self, bytes: u64, epoch: u64) -> OpenCursor {
        OpenCursor::new(&self.open_cursors, bytes, Some(epoch))
    }

    /// Begins the epoch of a cursor.
    pub fn next_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    pub fn watch(&mut self, slots: &[Slot]) -> Rc<Watch> {
        self.is_observed = true;
        self.watches.begin(slots)
    }

    /// Begins the search for the oldest and the newest samples.
    pub fn begin_scan(&mut self) {
        self.times_scan = Some(Box::new(TimesScan::new()));
        self.is_observed = true;
    }

    /// Takes the unfinished search, for a slice of work.
    pub fn take_scan(&mut self) -> Option<Box<TimesScan>> {
        self.times_scan.take()
    }

    /// Puts back a search that has more to do.
    pub fn resume_scan(&mut self, scan: Box<TimesScan>) {
        self.times_scan = Some(scan);
    }

    pub fn deletion_mark(&self) -> u64 {
        self.deletion_mark
    }

    pub fn note_deletion(&mut self) {
        self.deletion_mark = self.deletion_mark.wrapping_add(1);
    }
}

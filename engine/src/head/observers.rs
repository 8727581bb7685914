//! Observers of changes: open cursors, and the search for times after a deletion.
//!
//! Usually nothing observes samples, which the flag `is_observed` tells without a search.

use super::Slot;
use super::cursor::{OpenCursor, OpenCursors, Watch, Watches};
use super::deletion::TimesScan;
use super::series::out_of_order_samples::Arrival;
use std::rc::Rc;

pub struct Observers {
    /// Number of cursors ever opened: the epoch of out-of-order samples that arrive now.
    epoch: u64,
    open_cursors: Rc<OpenCursors>,
    /// Cursors in preparation, which note the samples that arrive meanwhile.
    watches: Watches,
    /// Search for the oldest and newest times, which follows a deletion.
    times_scan: Option<Box<TimesScan>>,
    /// Whether a watch or the search must see each sample.
    is_observed: bool,
    /// Number that changes with each deletion and differs between runs.
    deletion_mark: u64,
}

impl Observers {
    /// Starts without observers; `deletion_mark` is a number that differs in each run.
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

    /// Notes a sample to be stored in a series whose newest in-order time is `newest_ms`.
    #[cold]
    pub fn note_sample(
        &mut self,
        slot: Slot,
        newest_ms: Option<i64>,
        timestamp_ms: i64,
        is_out_of_order: bool,
    ) {
        // Cursors recognise out-of-order samples by their epochs instead.
        if !is_out_of_order {
            self.watches.note(slot, newest_ms);
        }
        if let Some(scan) = &mut self.times_scan {
            scan.add(timestamp_ms, is_out_of_order);
        }
        // Computed again, since a dropped cursor does not report that its watch has ended.
        self.is_observed = self.times_scan.is_some() || !self.watches.is_empty();
    }

    /// Returns the arrival of an out-of-order sample that is stored now.
    pub fn arrival(&self, generation: u64) -> Arrival<'_> {
        Arrival { generation, epoch: self.epoch, cursors: &self.open_cursors }
    }

    pub fn open_cursors(&self) -> u64 {
        self.open_cursors.count()
    }

    /// Returns whether open cursors use more than their share of the memory limit; 0 is no limit.
    pub fn take_too_much(&self, memory_bytes_max: u64) -> bool {
        self.open_cursors.take_too_much(memory_bytes_max)
    }

    /// Registers an open cursor of this size until the returned value is dropped.
    pub fn open(&self, bytes: u64) -> OpenCursor {
        OpenCursor::new(&self.open_cursors, bytes, None)
    }

    /// Registers an open cursor that sees samples from before `epoch`, until the value is dropped.
    pub fn open_at(&self, bytes: u64, epoch: u64) -> OpenCursor {
        OpenCursor::new(&self.open_cursors, bytes, Some(epoch))
    }

    /// Begins and returns a new epoch, for a cursor that is being opened.
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

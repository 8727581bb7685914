//! Which segments the destinations still need, and whose turn it is to delete the others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidepool_disk::DiskError;
use tidepool_disk::wal::{HeldSegments, LogKind};

/// First segments of both logs that are needed: the in-order one's, the out-of-order one's.
pub(super) type Needed = (u32, u32);

/// By number of the destination, with the newest checkpoint that knows all series of what it has
/// yet to send.
type ByDestination = BTreeMap<u64, (Needed, Option<u32>)>;

/// What all destinations need.
pub(super) struct Needs {
    held: HeldSegments,
    log_bytes_max: AtomicU64,
    /// Who holds it is who deletes.
    first: Mutex<ByDestination>,
}

impl Needs {
    pub fn new(held: HeldSegments, log_bytes_max: u64) -> Needs {
        Needs { held, log_bytes_max: AtomicU64::new(log_bytes_max), first: Mutex::default() }
    }

    /// Bytes of segments that may be kept.
    pub fn set_log_bytes_max(&self, bytes_max: u64) {
        self.log_bytes_max.store(bytes_max, Relaxed);
    }

    /// Notes what a new destination needs; deletes nothing.
    pub fn add(&self, destination: u64, needed: Needed) {
        self.lock().insert(destination, (needed, None));
    }

    /// Lets a destination need what another one does, until it knows better.
    pub fn add_as(&self, destination: u64, other: u64) {
        let mut first = self.lock();
        if let Some(needed) = first.get(&other).copied() {
            first.insert(destination, needed);
        }
    }

    /// Notes what a destination needs by now, and the newest checkpoint that knows all series of
    /// it, if there is one; deletes what no destination needs.
    pub fn note(
        &self,
        destination: u64,
        needed: Needed,
        series: Option<u32>,
    ) -> Result<(), DiskError> {
        let mut first = self.lock();
        first.insert(destination, (needed, series));
        self.release(&first)
    }

    /// Drops a destination, and deletes what only it needed.
    pub fn drop_destination(&self, destination: u64) -> Result<(), DiskError> {
        let mut first = self.lock();
        first.remove(&destination);
        self.release(&first)
    }

    /// Whether more is held than may be, and a destination that needs this is to blame.
    pub fn is_too_much(&self, (in_order, out_of_order): Needed) -> bool {
        let is_held = |log, first| self.held.last(log).is_some_and(|last: u32| first <= last);
        (is_held(LogKind::InOrder, in_order) || is_held(LogKind::OutOfOrder, out_of_order))
            && self.is_beyond_bound()
    }

    fn is_beyond_bound(&self) -> bool {
        self.held.bytes() > self.log_bytes_max.load(Relaxed)
    }

    /// What is left of a need if the oldest segments go that are held beyond the bound, and the
    /// bytes of those.
    pub fn within_bound(&self, (in_order, out_of_order): Needed) -> (Needed, u64) {
        let bytes_max = self.log_bytes_max.load(Relaxed);
        let mut beyond = self.held.bytes().saturating_sub(bytes_max);
        let mut bytes = 0;
        let mut first_within = |log, needed: u32| {
            let held = self.held.segments(log).into_iter();
            let mut first = needed;
            for (number, segment_bytes) in held.filter(|(number, _)| *number >= needed) {
                if beyond == 0 {
                    break;
                }
                beyond = beyond.saturating_sub(segment_bytes);
                bytes += segment_bytes;
                first = number.saturating_add(1);
            }
            first
        };
        let in_order = first_within(LogKind::InOrder, in_order);
        let out_of_order = first_within(LogKind::OutOfOrder, out_of_order);
        ((in_order, out_of_order), bytes)
    }

    fn release(&self, first: &ByDestination) -> Result<(), DiskError> {
        let least = |log: fn(&Needed) -> u32| first.values().map(|(needed, _)| log(needed)).min();
        let (Some(in_order), Some(out_of_order)) =
            (least(|needed| needed.0), least(|needed| needed.1))
        else {
            return self.held.clear();
        };
        let series = first.values().map(|(_, series)| *series).min().flatten();
        // The bound holds, even if labels are lost that out-of-order rows need.
        let series = if self.is_beyond_bound() { Some(u32::MAX) } else { series };
        self.held.release(in_order, out_of_order, series)
    }

    fn lock(&self) -> MutexGuard<'_, ByDestination> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

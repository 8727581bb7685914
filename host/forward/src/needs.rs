//! Tracks the WAL segments that destinations still need, and deletes segments that no one needs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidepool_disk::DiskError;
use tidepool_disk::wal::{HeldSegments, LogKind};

/// Numbers of the first needed segments of the in-order and the out-of-order log.
pub(super) type Needed = (u32, u32);

/// Needed segments by number of the destination, each with the newest checkpoint that contains all
/// series of its undelivered rows.
type ByDestination = BTreeMap<u64, (Needed, Option<u32>)>;

pub(super) struct Needs {
    held: HeldSegments,
    log_bytes_max: AtomicU64,
    /// Locked while segments are deleted, so that no destination records needs meanwhile.
    first: Mutex<ByDestination>,
}

impl Needs {
    pub fn new(held: HeldSegments, log_bytes_max: u64) -> Needs {
        Needs { held, log_bytes_max: AtomicU64::new(log_bytes_max), first: Mutex::default() }
    }

    /// Sets the maximum size of kept segments.
    pub fn set_log_bytes_max(&self, bytes_max: u64) {
        self.log_bytes_max.store(bytes_max, Relaxed);
    }

    /// Records the needs of a new destination; deletes nothing.
    pub fn add(&self, destination: u64, needed: Needed) {
        self.lock().insert(destination, (needed, None));
    }

    /// Copies the needs of `other` to a destination, which records its own later.
    pub fn add_as(&self, destination: u64, other: u64) {
        let mut first = self.lock();
        if let Some(needed) = first.get(&other).copied() {
            first.insert(destination, needed);
        }
    }

    /// Records the current needs of a destination, and the newest checkpoint that contains all of
    /// its series, if any; deletes segments that no destination needs.
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

    /// Drops a destination, and deletes the segments that only it needed.
    pub fn drop_destination(&self, destination: u64) -> Result<(), DiskError> {
        let mut first = self.lock();
        first.remove(&destination);
        self.release(&first)
    }

    /// Returns whether too much is kept, and a destination with these needs contributes to it.
    pub fn is_too_much(&self, (in_order, out_of_order): Needed) -> bool {
        // A destination that needs only segments after the kept segments does not contribute.
        let is_held = |log, first| self.held.last(log).is_some_and(|last: u32| first <= last);
        (is_held(LogKind::InOrder, in_order) || is_held(LogKind::OutOfOrder, out_of_order))
            && self.is_beyond_bound()
    }

    fn is_beyond_bound(&self) -> bool {
        self.held.bytes() > self.log_bytes_max.load(Relaxed)
    }

    /// Returns the needs that remain after the oldest segments beyond the bound are deleted, and
    /// the size of these segments in bytes.
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
        // The destination that lags most decides what is kept.
        let least = |log: fn(&Needed) -> u32| first.values().map(|(needed, _)| log(needed)).min();
        let (Some(in_order), Some(out_of_order)) =
            (least(|needed| needed.0), least(|needed| needed.1))
        else {
            return self.held.clear();
        };
        let series = first.values().map(|(_, series)| *series).min().flatten();
        // The size limit applies even if out-of-order rows lose series records that they need.
        let series = if self.is_beyond_bound() { Some(u32::MAX) } else { series };
        self.held.release(in_order, out_of_order, series)
    }

    fn lock(&self) -> MutexGuard<'_, ByDestination> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

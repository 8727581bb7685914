//! Monitors the free space of the disk. Below a reserve, writes are refused. Reads continue, and so
//! do dropping, cutting and merging blocks, which may use the reserve to free space.
//!
//! ```text
//! free │■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■│
//!      0        reserve ┘ └ reserve and an eighth: writes are taken again
//! ```
//!
//! Not every write checks the disk: a result is valid for a second, or until so much was written
//! that the reserve could be used up. Buffered records count as written.

use super::StoreError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidepool_disk::{DataDir, WriteAccounts};

/// The default reserve is the smaller of this size and [`RESERVE_PERCENT_DEFAULT`] of the disk.
pub const RESERVE_BYTES_DEFAULT: u64 = 100 * 1024 * 1024;

/// Percentage of the disk for the default reserve; see [`RESERVE_BYTES_DEFAULT`].
pub const RESERVE_PERCENT_DEFAULT: f64 = 5.0;

/// Time for which a check of the disk is valid.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Range of the bytes that may be written until the next check: a quarter of the reserve.
const BYTES_UNLOOKED: std::ops::RangeInclusive<u64> = 64 * 1024..=4 * 1024 * 1024;

/// Divisor of the reserve. Writes are accepted again if this part is free beyond the reserve.
const RESUME_PARTS: u64 = 8;

/// A size on a file system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DiskShare {
    Bytes(u64),
    /// Percentage of the file system's bytes.
    Percent(f64),
}

impl DiskShare {
    /// Returns the share in bytes, for a file system of `total_bytes`.
    pub fn of(self, total_bytes: u64) -> u64 {
        match self {
            DiskShare::Bytes(bytes) => bytes,
            DiskShare::Percent(percent) => (total_bytes as f64 * percent / 100.0) as u64,
        }
    }
}

/// Figures of the last check of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceFigures {
    /// Bytes of the file system of the data directory.
    pub total_bytes: u64,
    /// Free bytes of the file system that this process may use.
    pub free_bytes: u64,
    /// Free bytes below which writes are refused.
    pub reserve_bytes: u64,
    pub is_paused: bool,
    /// Bytes of log records that are buffered in memory.
    pub unwritten_bytes: u64,
}

/// Monitors the free space of a data directory.
pub(super) struct Space {
    data: DataDir,
    wear: Arc<WriteAccounts>,
    reserve: Mutex<Option<DiskShare>>,
    is_paused: AtomicBool,
    total_bytes: AtomicU64,
    free_bytes: AtomicU64,
    reserve_bytes: AtomicU64,
    unwritten_bytes: AtomicU64,
    last_look: Mutex<Option<SpaceSample>>,
}

#[derive(Clone, Copy)]
struct SpaceSample {
    at: Instant,
    /// Bytes written to the disk before this check.
    written_bytes: u64,
}

impl Space {
    /// Creates a monitor and checks the disk at once. `None` means the default reserve.
    pub fn new(data: &DataDir, reserve: Option<DiskShare>) -> Space {
        let space = Space {
            data: data.clone(),
            wear: data.wear(),
            reserve: Mutex::new(reserve),
            is_paused: AtomicBool::new(false),
            total_bytes: AtomicU64::new(0),
            // Writes are not refused before the first successful check.
            free_bytes: AtomicU64::new(u64::MAX),
            reserve_bytes: AtomicU64::new(0),
            unwritten_bytes: AtomicU64::new(0),
            last_look: Mutex::new(None),
        };
        space.look();
        space
    }

    /// Returns an error while writes are refused.
    pub fn check(&self) -> Result<(), StoreError> {
        self.look();
        let SpaceFigures { free_bytes, reserve_bytes, is_paused, .. } = self.figures();
        match is_paused {
            true => Err(StoreError::DiskFull { free_bytes, reserve_bytes }),
            false => Ok(()),
        }
    }

    /// Checks the disk, unless the last check is still valid.
    pub fn look(&self) {
        let mut last = lock(&self.last_look);
        let written_bytes = self.wear.bytes_total() + self.unwritten_bytes.load(Relaxed);
        let reserve_bytes = self.reserve_bytes.load(Relaxed);
        let unlooked_max =
            (reserve_bytes / 4).clamp(*BYTES_UNLOOKED.start(), *BYTES_UNLOOKED.end());
        let stands = |look: SpaceSample| {
            look.at.elapsed() < LOOK_EVERY
                && written_bytes.saturating_sub(look.written_bytes) < unlooked_max
        };
        if last.is_some_and(stands) {
            return;
        }
        // Set before the check, so that a failing system is not checked for every write.
        *last = Some(SpaceSample { at: Instant::now(), written_bytes });
        match (self.data.free_bytes(), self.data.total_bytes()) {
            (Ok(free_bytes), Ok(total_bytes)) => self.judge(free_bytes, total_bytes),
            (Err(error), _) | (_, Err(error)) => {
                tracing::debug!(%error, "the free space is not known; the last figure stands");
            }
        }
    }

    /// Checks the disk, even if the last check is still valid.
    pub fn look_again(&self) {
        *lock(&self.last_look) = None;
        self.look();
    }

    /// Sets the reserve, and checks the disk.
    pub fn set_reserve(&self, reserve: Option<DiskShare>) {
        *lock(&self.reserve) = reserve;
        self.look_again();
    }

    /// Sets the number of bytes of buffered records.
    pub fn set_unwritten_bytes(&self, bytes: u64) {
        self.unwritten_bytes.store(bytes, Relaxed);
    }

    /// Returns the figures of the last check.
    pub fn figures(&self) -> SpaceFigures {
        SpaceFigures {
            total_bytes: self.total_bytes.load(Relaxed),
            free_bytes: self.free_bytes.load(Relaxed),
            reserve_bytes: self.reserve_bytes.load(Relaxed),
            is_paused: self.is_paused.load(Relaxed),
            unwritten_bytes: self.unwritten_bytes.load(Relaxed),
        }
    }

    fn judge(&self, free_bytes: u64, total_bytes: u64) {
        let reserve_bytes = reserve_bytes(*lock(&self.reserve), total_bytes);
        self.total_bytes.store(total_bytes, Relaxed);
        self.free_bytes.store(free_bytes, Relaxed);
        self.reserve_bytes.store(reserve_bytes, Relaxed);
        let was_paused = self.is_paused.load(Relaxed);
        let unwritten_bytes = self.unwritten_bytes.load(Relaxed);
        // Buffered records will need space on the disk.
        let is_paused =
            pauses(was_paused, free_bytes.saturating_sub(unwritten_bytes), reserve_bytes);
        self.is_paused.store(is_paused, Relaxed);
        match (was_paused, is_paused) {
            (false, true) => tracing::warn!(
                free_bytes,
                reserve_bytes,
                unwritten_bytes,
                "the disk is nearly full: writes are refused with 503 until more than \
                 --disk-reserve is free; reads continue. Free space, or lower --retention-time or \
                 --retention-size"
            ),
            (true, false) => {
                tracing::info!(
                    free_bytes,
                    reserve_bytes,
                    "enough disk space is free; writes are accepted again"
                );
            }
            _ => {}
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the reserve in bytes, for a file system of this size.
fn reserve_bytes(reserve: Option<DiskShare>, total_bytes: u64) -> u64 {
    let default =
        || DiskShare::Percent(RESERVE_PERCENT_DEFAULT).of(total_bytes).min(RESERVE_BYTES_DEFAULT);
    reserve.map_or_else(default, |share| share.of(total_bytes))
}

/// Returns whether writes are refused from now on.
fn pauses(was_paused: bool, free_bytes: u64, reserve_bytes: u64) -> bool {
    let enough_bytes = match was_paused {
        true => reserve_bytes.saturating_add(reserve_bytes / RESUME_PARTS),
        false => reserve_bytes,
    };
    free_bytes < enough_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_not_flap() {
        assert!(!pauses(false, 800, 800));
        assert!(pauses(false, 799, 800));
        assert!(pauses(true, 899, 800));
        assert!(!pauses(true, 900, 800));
        assert!(!pauses(false, 0, 0), "no reserve, no pause");
        assert!(!pauses(true, 0, 0));
    }

    #[test]
    fn the_reserve_follows_the_size_of_the_disk() {
        let mib = 1024 * 1024;
        assert_eq!(reserve_bytes(None, 1000 * mib), 50 * mib);
        assert_eq!(reserve_bytes(None, 1 << 50), 100 * mib);
        assert_eq!(reserve_bytes(Some(DiskShare::Bytes(7)), 1000 * mib), 7);
        assert_eq!(reserve_bytes(Some(DiskShare::Percent(12.5)), 1000 * mib), 125 * mib);
        assert_eq!(reserve_bytes(Some(DiskShare::Bytes(0)), 1000 * mib), 0);
    }
}

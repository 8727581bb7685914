//! The memory limit of an instance, and the thresholds below it.
//!
//! ```text
//! used ──────────┬──────────────┬──────────────┬───────────────┬───────────▶ bytes_max
//!   all is well  │ caches go    │ a cut is due │ no new series │ no writes
//!                               │ columns go
//!               45 %           55 %           65 %            80 %
//! ```
//!
//! The last part is room for what a request takes while it is worked on, and for tables that
//! double. WebAssembly's memory never shrinks, so it is the memory in use that counts, not what was
//! taken from the machine.

/// The part of the memory beyond which caches are dropped.
const CACHES_PERCENT: u64 = 45;
/// The part beyond which what the head holds is cut into a block, however recent.
const CUT_PERCENT: u64 = 55;
/// The part beyond which new series are refused.
const SERIES_PERCENT: u64 = 65;
/// The part beyond which also those are by which scrapes report themselves.
const REPORTS_PERCENT: u64 = 70;
/// The part beyond which all writes are refused.
const WRITES_PERCENT: u64 = 80;
/// After a cut, so much must have come on top of what it left before the next one.
const CUT_AGAIN_PERCENT: u64 = 10;

/// A bound on memory, and the way to see how much is in use.
#[derive(Clone, Copy, Debug)]
pub struct MemoryBudget {
    /// Bytes that may be in use; 0 is no limit.
    pub bytes_max: u64,
    /// Returns the bytes in use.
    pub used_bytes: fn() -> u64,
}

impl MemoryBudget {
    /// No bound at all.
    pub const UNBOUNDED: MemoryBudget = MemoryBudget { bytes_max: 0, used_bytes: || 0 };

    /// Whether caches are to be given back.
    pub fn caches_go(&self) -> bool {
        self.is_beyond(CACHES_PERCENT)
    }

    /// Whether a cut should free memory, if the last one left so many bytes in use.
    pub fn cut_is_due(&self, left_by_last_cut_bytes: u64) -> bool {
        let again_bytes = left_by_last_cut_bytes.saturating_add(self.part(CUT_AGAIN_PERCENT));
        self.is_beyond(CUT_PERCENT) && (self.used_bytes)() > again_bytes
    }

    /// Whether floats go to the log without columns, which need memory for each series.
    pub fn columns_go(&self) -> bool {
        self.is_beyond(CUT_PERCENT)
    }

    /// Whether new series are to be refused.
    #[inline]
    pub fn refuses_series(&self) -> bool {
        self.is_beyond(SERIES_PERCENT)
    }

    /// Whether the series by which scrapes report themselves are to be refused, too.
    pub fn refuses_reports(&self) -> bool {
        self.is_beyond(REPORTS_PERCENT)
    }

    /// Whether all writes are to be refused.
    #[inline]
    pub fn refuses_writes(&self) -> bool {
        self.is_beyond(WRITES_PERCENT)
    }

    fn is_beyond(&self, percent: u64) -> bool {
        self.bytes_max > 0 && (self.used_bytes)() > self.part(percent)
    }

    fn part(&self, percent: u64) -> u64 {
        self.bytes_max / 100 * percent
    }
}

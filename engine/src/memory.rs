//! Thresholds of memory use, as shares of an instance's memory limit.
//!
//! ```text
//! used ──────────┬──────────────┬──────────────┬───────────────┬───────────▶ bytes_max
//!   all is well  │ caches go    │ a cut is due │ no new series │ no writes
//!                               │ columns go
//!               45 %           55 %           65 %            80 %
//! ```
//!
//! The last part is room for requests in progress, and for tables that double. WebAssembly's memory
//! never shrinks, so the memory in use counts, not the memory taken from the machine.

/// Caches are dropped beyond this share of the memory.
const CACHES_PERCENT: u64 = 45;
/// The head is cut into a block beyond this share, however recent its samples.
const CUT_PERCENT: u64 = 55;
const SERIES_PERCENT: u64 = 65;
/// Beyond this share, new series that report on scrapes (`up`, …) are refused as well.
const REPORTS_PERCENT: u64 = 70;
const WRITES_PERCENT: u64 = 80;
/// Growth over the memory left by the last cut that makes another cut due.
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
    /// A budget without any bound.
    pub const UNBOUNDED: MemoryBudget = MemoryBudget { bytes_max: 0, used_bytes: || 0 };

    /// Returns whether caches should be dropped.
    pub fn caches_go(&self) -> bool {
        self.is_beyond(CACHES_PERCENT)
    }

    /// Returns whether a cut should free memory; the argument is the use after the last cut.
    pub fn cut_is_due(&self, left_by_last_cut_bytes: u64) -> bool {
        // Memory that a cut could not free must not make the next one due at once.
        let again_bytes = left_by_last_cut_bytes.saturating_add(self.part(CUT_AGAIN_PERCENT));
        self.is_beyond(CUT_PERCENT) && (self.used_bytes)() > again_bytes
    }

    /// Returns whether floats go to the log without columns, which need memory for each series.
    pub fn columns_go(&self) -> bool {
        self.is_beyond(CUT_PERCENT)
    }

    /// Returns whether new series are refused.
    #[inline]
    pub fn refuses_series(&self) -> bool {
        self.is_beyond(SERIES_PERCENT)
    }

    /// Returns whether new series that report on scrapes are refused as well.
    pub fn refuses_reports(&self) -> bool {
        self.is_beyond(REPORTS_PERCENT)
    }

    /// Returns whether all writes are refused.
    #[inline]
    pub fn refuses_writes(&self) -> bool {
        self.is_beyond(WRITES_PERCENT)
    }

    fn is_beyond(&self, percent: u64) -> bool {
        self.bytes_max > 0 && (self.used_bytes)() > self.part(percent)
    }

    fn part(&self, percent: u64) -> u64 {
        // Divided first, so that no limit overflows; the result is too small by 100 bytes at most.
        self.bytes_max / 100 * percent
    }
}

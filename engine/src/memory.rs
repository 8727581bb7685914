//! Thresholds of memory use, as shares of an instance's memory limit.
//!
//! ```text
//! used ──────────┬──────────────┬──────────────┬───────────────┬───────────▶ bytes_max
//!   all is well  │ caches go    │ a cut is due │ no new series │ no writes
//!                               │ columns go
//!               45 %           55 %           65 %            80 %
//! ```
//!
//! The last 20 % are for requests in progress, and for tables that double when they grow. Columns
//! are log records that hold samples by columns. The thresholds apply to the memory in use, not to
//! the memory taken from the machine, because WebAssembly's memory never shrinks.

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

/// A bound on memory, and a function that measures the memory in use.
#[derive(Clone, Copy, Debug)]
pub struct MemoryBudget {
    /// Limit of the bytes in use; 0 means no limit.
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

    /// Returns whether a cut should free memory; the argument is the memory after the last cut.
    pub fn cut_is_due(&self, left_by_last_cut_bytes: u64) -> bool {
        // Memory that a cut could not free must not make the next cut due at once.
        let again_bytes = left_by_last_cut_bytes.saturating_add(self.part(CUT_AGAIN_PERCENT));
        self.is_beyond(CUT_PERCENT) && (self.used_bytes)() > again_bytes
    }

    /// Returns whether floats are logged without columns, which need memory for each series.
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
        // Dividing first avoids overflow; the result is too small by 100 bytes at most.
        self.bytes_max / 100 * percent
    }
}

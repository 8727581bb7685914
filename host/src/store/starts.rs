//! Starts that do not become ready, counted in the data directory across lives of the process: a
//! log that cannot be replayed must not keep a node from serving for good.
//!
//! ```text
//! begin: count + 1, durable ──▶ replay ─┬─ ready ─────────────▶ count = 0
//!   └─ too many have failed:            ├─ told to stop ──────▶ as before: not a failure
//!      set the logs aside, count = 0    └─ trap, kill, power ─▶ stays; the next start sees it
//! ```

use super::StoreError;
use crate::disk::{DataDir, DiskError};

/// Why the head did not start.
pub(super) enum StartError {
    /// The store is to stop.
    Stopped,
    /// Trying again would not help, and the log is not to blame.
    Hopeless(StoreError),
    /// The log could not be replayed this time.
    Failed(StoreError),
}

/// The count of a data directory.
pub(super) struct Starts {
    data: DataDir,
    /// How many may fail before the logs are set aside; 0 means that they never are.
    failed_max: u32,
    /// How many have failed before the start that was begun last.
    failed: u32,
    /// How many have failed in this process: what is known even if the count cannot be kept.
    failed_here: u32,
}

impl StartError {
    /// What it means that the logs could not be opened.
    pub fn opening(error: DiskError) -> StartError {
        match error.is_for_a_person() || error.is_no_space() {
            true => StartError::Hopeless(error.into()),
            false => StartError::Failed(error.into()),
        }
    }
}

impl Starts {
    pub fn new(data: DataDir, failed_max: u32) -> Starts {
        Starts { data, failed_max, failed: 0, failed_here: 0 }
    }

    /// A start begins: it counts as failed until something else is told.
    pub fn begin(&mut self) {
        let on_disk = self.data.failed_starts().unwrap_or_else(|error| {
            tracing::warn!(%error, "the count of failed starts cannot be read");
            0
        });
        self.failed = on_disk.max(self.failed_here);
        if self.failed > 0 {
            let (failed, failed_max) = (self.failed, self.failed_max);
            tracing::warn!(failed, failed_max, "earlier starts did not become ready");
        }
        if self.failed_max > 0 && self.failed >= self.failed_max && self.set_logs_aside() {
            self.failed = 0;
            self.failed_here = 0;
        }
        self.note(self.failed.saturating_add(1));
    }

    /// Whether starts before this one have failed, and the logs were not set aside for it.
    pub fn have_failed(&self) -> bool {
        self.failed > 0
    }

    /// It failed.
    pub fn failed(&mut self) {
        self.failed_here = self.failed.saturating_add(1);
    }

    /// It says nothing about the log.
    pub fn not_counted(&mut self) {
        self.note(self.failed);
    }

    /// The store is ready.
    pub fn ready(&mut self) {
        self.failed_here = 0;
        self.note(0);
    }

    fn note(&self, count: u32) {
        self.data.set_failed_starts(count).unwrap_or_else(|error| {
            tracing::warn!(%error, count, "the count of failed starts could not be written");
        });
    }

    /// Gives whether the next start will find other logs.
    fn set_logs_aside(&self) -> bool {
        let failed = self.failed;
        match self.data.set_logs_aside() {
            Ok(Some(kept)) => {
                tracing::error!(
                    path = %kept.display(), failed,
                    "the log could not be replayed {failed} times in a row (a kill, too little \
                     memory, a crash of the engine: see the lines before each end): it is set \
                     aside, and the store starts with its blocks alone. What was in no block yet \
                     is missing now. To get it back: `tidepool tsdb compact --head {}`, with \
                     --memory-limit if it needs more, then stop tidepool and move the blocks that \
                     this made into the data directory",
                    kept.display()
                );
                true
            }
            Ok(None) => {
                tracing::error!(failed, "starts fail, but there is no log that could be to blame");
                true
            }
            Err(error) => {
                tracing::error!(
                    %error, failed, "the log fails to be replayed and could not be set aside"
                );
                false
            }
        }
    }
}

//! The state of a pump, for metrics, API and page.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared by a pump and those who show its figures. A pump that replaces another continues its
/// totals if it is given the same figures.
#[derive(Clone, Debug, Default)]
pub struct PumpFigures(Arc<Mutex<PumpStatus>>);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PumpStatus {
    /// Events that should be delivered by now. Those that wait for their group's interval, and
    /// muted ones, are none of them.
    pub undelivered: u64,
    /// Time of the oldest of them.
    pub oldest_undelivered_ms: Option<i64>,
    /// Events that wait for their group's interval.
    pub waiting: u64,
    /// Alerts that fire and were due while a silence matched.
    pub muted: u64,
    pub failing: Option<Failing>,
    /// When the receiver last accepted a notification.
    pub succeeded_ms: Option<i64>,
    pub totals: Totals,
    /// Whether the position on disk is older than the delivery, because it cannot be written.
    pub is_position_unwritten: bool,
    pub damaged_positions_total: u64,
}

/// A failure that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    pub since_ms: i64,
    /// The last error, without secrets.
    pub error: String,
    /// Whether the receiver refuses a group's notification, and may accept those of others.
    pub is_refusal: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Notifications that the receiver accepted.
    pub sent: u64,
    /// Events in them that were news.
    pub delivered: u64,
    /// Attempts that failed or were refused.
    pub failed: u64,
    /// Events that the journal's limits dropped before they were delivered. Those that no pump has
    /// read count, too, although some may have been for other receivers.
    pub dropped: u64,
    /// Events that a silence kept from the receiver. A beginning counts although it is delivered
    /// if the silence ends first.
    pub silenced: u64,
}

impl PumpFigures {
    pub fn status(&self) -> PumpStatus {
        self.locked().clone()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut PumpStatus)) {
        change(&mut self.locked());
    }

    fn locked(&self) -> MutexGuard<'_, PumpStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Totals {
    pub(super) fn add(&mut self, more: Totals) {
        self.sent += more.sent;
        self.delivered += more.delivered;
        self.failed += more.failed;
        self.dropped += more.dropped;
        self.silenced += more.silenced;
    }
}

//! Delivery of the journal's events to one receiver.
//!
//! ```text
//!              ┌── pump: the task, time, retries ────────────────────────────┐
//! journal ────▶│ Intake ─▶ Groups: what is due, and when ─▶ Due ─▶ Receiver  │
//! silences ───▶│             ▲ └─▶ Position (what is done) ─▶ receivers/*.json│
//!              │             └── accepted, refused, failed ◀──────┘          │
//!              └─────────────────────────────────────────────────────────────┘
//! ```
//!
//! [`groups::Groups`] decides and knows neither clock nor disk; [`pump::Pump`] does. Words: an
//! event is *undelivered* until it is *done*: accepted by the receiver, muted, not for this
//! receiver, or dropped by the journal. A *muted* alert is one whose beginning was due while it was
//! silenced.
//!
//! Invariants:
//!
//! - an event is done only by one of the four ways above, and the position on disk never says more;
//! - events of one alert are delivered in their order, each with its identifier, and none is
//!   skipped;
//! - a notification has each label set at most once;
//! - the end of an alert whose beginning was muted is not delivered;
//! - what is in memory is what the journal still has, or alerts that fire.
//!
//! Meaning of the intervals: prometheus/alertmanager, `dispatch/dispatch.go`,
//! `notify/dedup_stage.go`. Unlike there, an alert that ends before its group's first notification
//! is delivered nevertheless.
//!
//! Read on in [`terms`], [`groups`], [`position`], [`pump`].

mod backoff;
pub mod figures;
pub mod groups;
pub mod position;
pub mod pump;
pub mod terms;

pub use figures::{Failing, PumpFigures, PumpStatus};
pub use position::{Position, Positions};
pub use pump::{Pump, PumpParts};
pub use terms::{Links, Terms};

use std::time::Duration;

/// A moment by two clocks: intervals are measured by the one that has no steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since the start of the pump.
    pub at: Duration,
    /// Since the epoch.
    pub wall_ms: i64,
}

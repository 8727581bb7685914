//! Alerts: the state of each label set that an alerting rule finds.
//!
//! ```text
//!             found               for is over
//! (no alert) ───────▶ Pending ──────────────────▶ Firing ─┐ not found: still firing for
//!       ▲                │  ▲                      │  │ ◀─┘ keep_firing_for
//!       │   not found    │  │ `for` was raised     │  │
//!       └────────────────┘  └──────────────────────┘  │ not found
//!       ▲      RESOLVED_RETENTION_MS                  ▼
//!       └────────────────────────────────────────── Inactive
//! ```
//!
//! Begin with [`AlertingRule::update`]. `text` expands labels and annotations, `samples` makes the
//! series `ALERTS` and `ALERTS_FOR_STATE`, `restore` reads them back, `notice` says what is to be
//! sent.
//!
//! Source: `rules/alerting.go`, Prometheus 3.16. Alerts are keyed by their labels, not by a hash.

mod found;
mod notice;
mod restore;
mod rule;
mod samples;
mod text;

pub(crate) use found::Bounds;
pub use notice::Notice;
pub use restore::{RestoreOptions, RestoreRequest, StoredSample, Told, mark_shared};
pub(crate) use rule::Terms;
pub use rule::{AlertingRule, Change, Transition};
pub(crate) use samples::{ALERTS, ALERTS_FOR_STATE};

use crate::file::Labels;
use crate::labels::LabelSet;
use std::sync::Arc;

/// How long a resolved alert is kept, so that its end reaches receivers that were away.
pub const RESOLVED_RETENTION_MS: i64 = 15 * 60 * 1000;

/// State of an alert; of a rule, that of its alert with the greatest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Of a rule that was not evaluated yet.
    Unknown,
    /// Resolved.
    Inactive,
    Pending,
    Firing,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Unknown => "unknown",
            State::Inactive => "inactive",
            State::Pending => "pending",
            State::Firing => "firing",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    pub state: State,
    /// With `alertname`, without `__name__`.
    pub labels: LabelSet,
    pub annotations: Arc<Labels>,
    /// Of the last evaluation that found it; 0 for a native histogram.
    pub value: f64,
    /// Later than the first time that it was found if some of the time since does not count.
    pub active_at_ms: i64,
    pub fired_at_ms: Option<i64>,
    /// First evaluation that did not find it, while it still fires for `keep_firing_for`.
    pub keep_firing_since_ms: Option<i64>,
    pub resolved_at_ms: Option<i64>,
    pub last_sent_ms: Option<i64>,
    /// Until when receivers may believe that it fires.
    pub valid_until_ms: Option<i64>,
    /// `resolved_at_ms`, moved by time that does not count.
    retained_since_ms: i64,
    /// Set until an evaluation finds it after a restoration or a jump of the clock.
    unconfirmed: Option<Unconfirmed>,
}

/// Why the first evaluation that does not find an alert does not end it: its data may be missing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unconfirmed {
    since_ms: i64,
    /// Evaluations that did not find it.
    evaluations: u32,
    /// Whether its samples may be those of another rule. Then nobody is told until it is found.
    is_shared: bool,
}

/// Evaluations after which the absence of an unconfirmed alert counts. Upstream restores after a
/// group's second evaluation, as scrapes and recording rules may follow the first one.
const CONFIRMING_EVALUATIONS: u32 = 2;

impl Alert {
    fn pending(labels: LabelSet, annotations: Arc<Labels>, value: f64, active_at_ms: i64) -> Alert {
        Alert {
            state: State::Pending,
            labels,
            annotations,
            value,
            active_at_ms,
            fired_at_ms: None,
            keep_firing_since_ms: None,
            resolved_at_ms: None,
            last_sent_ms: None,
            valid_until_ms: None,
            retained_since_ms: 0,
            unconfirmed: None,
        }
    }

    pub fn is_active(&self) -> bool {
        matches!(self.state, State::Pending | State::Firing)
    }

    /// Moves the times by time that does not count. Forwards, those from which `for`,
    /// `keep_firing_for` and the retention are counted: what fires has begun when it says.
    /// Backwards all, as none may lie in the future.
    fn pass(&mut self, uncounted_ms: i64) {
        if uncounted_ms < 0 {
            return self.shift(uncounted_ms);
        }
        let moved = |time_ms: &mut i64| *time_ms = time_ms.saturating_add(uncounted_ms);
        if self.state == State::Pending {
            moved(&mut self.active_at_ms);
        }
        self.keep_firing_since_ms.as_mut().map(moved);
        moved(&mut self.retained_since_ms);
        if let Some(unconfirmed) = &mut self.unconfirmed {
            moved(&mut unconfirmed.since_ms);
        }
    }

    /// Moves all times.
    fn shift(&mut self, by_ms: i64) {
        let moved = |time_ms: &mut i64| *time_ms = time_ms.saturating_add(by_ms);
        moved(&mut self.active_at_ms);
        moved(&mut self.retained_since_ms);
        if let Some(unconfirmed) = &mut self.unconfirmed {
            moved(&mut unconfirmed.since_ms);
        }
        let others =
            [&mut self.fired_at_ms, &mut self.resolved_at_ms, &mut self.keep_firing_since_ms];
        others.into_iter().flatten().for_each(moved);
        let sent = [&mut self.last_sent_ms, &mut self.valid_until_ms];
        sent.into_iter().flatten().for_each(moved);
    }

    /// Whether it stays as it is although this evaluation did not find it.
    fn awaits_data(&mut self, slot_ms: i64, settle_ms: i64) -> bool {
        let Some(unconfirmed) = &mut self.unconfirmed else { return false };
        unconfirmed.evaluations = unconfirmed.evaluations.saturating_add(1);
        unconfirmed.evaluations < CONFIRMING_EVALUATIONS
            || slot_ms.saturating_sub(unconfirmed.since_ms) < settle_ms
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.unconfirmed.is_some_and(|unconfirmed| unconfirmed.is_shared)
    }
}

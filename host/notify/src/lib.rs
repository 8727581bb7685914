//! Tells others of alerts, also when nobody could be reached for days.
//!
//! ```text
//! snapshots of rule groups ─▶ observe ─▶ events ─▶ journal ─▶ dispatch: a pump a receiver
//!   (tidepool-evaluation)                            │          groups, silences, position
//!                                                    │             └─▶ receivers: webhook, command
//! notices ─▶ alertmanager: a queue each ◀────────────┘
//! ```
//!
//! Invariants: what a receiver is told was synced with the journal first, if the disk takes it; a
//! position moves only after the receiver has accepted, or the journal has dropped; no receiver
//! waits for another, and no rule waits for a receiver or a disk.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod alertmanager;
pub mod config;
pub mod dispatch;
pub mod event;
pub mod flags;
pub mod history;
pub mod journal;
pub mod matchers;
pub mod notification;
pub mod notifier;
pub mod observe;
pub mod receivers;
pub mod silences;

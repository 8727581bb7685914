//! Recording and alerting rules as Prometheus reads and evaluates them, as a library.
//!
//! ```text
//! rule file ─▶ file: groups of rules, checked ─▶ group: evaluation at a time ─▶ samples
//!                        │                          │            │
//!                     template ◀── labels, values ──┘            └─▶ alert: state of each instance
//! ```
//!
//! Invariant: no clock, store, thread or network. An expression is evaluated, and a sample stored,
//! by what the caller hands in.
//!
//! Source: prometheus/prometheus 3.16, `model/rulefmt`, `rules` and `template`.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod alert;
pub mod backtest;
pub mod builtin;
pub mod clock;
pub mod engine;
pub mod error;
pub mod file;
pub mod group;
pub mod labels;
pub mod number;
pub mod template;
pub mod unit_test;

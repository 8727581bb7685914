//! Probes: whether an address answers by TCP or HTTP, and how fast, with the metric names of
//! blackbox_exporter.
//!
//! ```text
//! Module ─▶ run ─▶ resolve ─▶ connect ─▶ tls ─▶ http: request, redirects, body ─▶ Report
//! (config)                                └──▶ tcp: connected                      families
//! ```
//!
//! Begin with [`Module`], the configuration, then [`run`] and [`Report`]. `resolve` picks an
//! address, `connect` opens a connection and measures its phases, `tls` reads the facts of the
//! handshake.
//!
//! Invariants: a probe ends by its timeout, and its report has everything measured until then; a
//! body is read up to a limit; at most ten redirects are followed; a probe's connections end with
//! the probe.
//!
//! Source: prometheus/blackbox_exporter, `prober/*.go` and `config/config.go`. Differences: a
//! proxy, OAuth 2, compressed bodies and `query_response` are not supported; cookies are not kept
//! between redirects; `probe_ssl_last_chain_info` is missing; certificates that the server does not
//! send are not part of `probe_ssl_last_chain_expiry_timestamp_seconds`; a body without
//! `body_size_limit` has a limit too.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod config;
mod connect;
mod error;
mod http;
mod pattern;
pub mod report;
mod resolve;
mod tcp;
mod tls;

pub use config::{Module, ModuleSet};
pub use report::Report;

use config::Prober;
use std::time::{Duration, Instant};

/// Probes a target with a module's settings, for at most `timeout`.
pub async fn run(module: &Module, target: &str, timeout: Duration) -> Report {
    let begun = Instant::now();
    let mut report = Report::default();
    // The future borrows the report. A timeout drops the future, and the values set so far remain.
    let probe = async {
        match &module.prober {
            Prober::Http(probe) => http::probe(probe, target, &mut report).await,
            Prober::Tcp(probe) => tcp::probe(probe, target, &mut report).await,
        }
    };
    let probed = tokio::time::timeout(timeout, probe).await;
    let result = probed.unwrap_or(Err(error::ProbeError::Timeout(timeout)));
    report.set(report::SUCCESS, if result.is_ok() { 1.0 } else { 0.0 });
    report.set(report::DURATION, begun.elapsed().as_secs_f64());
    report.set(report::TIMEOUT, timeout.as_secs_f64());
    if let Err(error) = result {
        // A failed probe is a result (`probe_success` is 0), not a fault to warn about.
        tracing::debug!(target, %error, "probe failed");
        report.failure = Some(error.to_string());
    }
    report
}

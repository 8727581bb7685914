//! Logs to standard error, the text format in which each crate shows its own metrics, and the
//! metrics of the process.
//!
//! Invariant: every crate of the host may use this crate, which uses no other crate of the host and
//! contains no term of metrics storage. Each crate adds its metrics to a [`MetricsText`].

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod cut;
mod filter;
mod latencies;
mod limit;
mod logfmt;
mod metrics_text;
pub mod process;

pub use filter::{FilterError, LogFilter};
pub use latencies::Latencies;
pub use metrics_text::{HistogramValue, MetricsText, SummaryValue, escaped};

use clap::ValueEnum;
use cut::Cut;
use limit::Limit;
use logfmt::Logfmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, reload};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line of text with `key=value` fields
    Text,
    /// A line of nothing but `key=value` fields, as Prometheus writes them
    Logfmt,
    /// A JSON object a line
    Json,
}

/// Changes the filter of log lines.
pub struct LogLevel(Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl LogLevel {
    /// Applies a filter to all log lines from now on.
    pub fn set(&self, filter: &LogFilter) -> Result<(), reload::Error> {
        (self.0)(EnvFilter::new(filter.to_string()))
    }
}

/// Starts logging with a filter in the syntax of [`LogFilter`]; [`LogLevel::set`] changes it later.
pub fn init(format: LogFormat, filter: &str) -> LogLevel {
    let filter = EnvFilter::new(filter);
    let is_json = format == LogFormat::Json;
    let writer = move || Cut { is_json };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    // A line that cannot be written is lost. A report of that loss on standard error would fail as
    // well, and panic, but the store must continue when the reader of its log closes the pipe.
    let builder = builder.log_internal_errors(false).with_ansi(false);
    match format {
        LogFormat::Text => {
            let builder = builder.with_filter_reloading();
            let handle = builder.reload_handle();
            builder.finish().with(Limit::default()).init();
            LogLevel(Box::new(move |filter| handle.reload(filter)))
        }
        LogFormat::Logfmt => {
            let builder = builder.event_format(Logfmt).with_filter_reloading();
            let handle = builder.reload_handle();
            builder.finish().with(Limit::default()).init();
            LogLevel(Box::new(move |filter| handle.reload(filter)))
        }
        LogFormat::Json => {
            let builder = builder.json().with_filter_reloading();
            let handle = builder.reload_handle();
            builder.finish().with(Limit::default()).init();
            LogLevel(Box::new(move |filter| handle.reload(filter)))
        }
    }
}

//! Logs to standard error, and the text format in which metrics are shown. No domain words.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod cut;
mod filter;
mod limit;
mod logfmt;

pub use filter::{FilterError, LogFilter};

use clap::ValueEnum;
use cut::Cut;
use limit::Limit;
use logfmt::Logfmt;
use std::fmt::{Display, Write};
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

/// Changes what is logged.
pub struct LogLevel(Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl LogLevel {
    /// Logs from now on what a filter says.
    pub fn set(&self, filter: &LogFilter) -> Result<(), reload::Error> {
        (self.0)(EnvFilter::new(filter.to_string()))
    }
}

/// Starts logging, as [`LogLevel::set`] from then on. The filter is one that [`LogFilter`] takes.
pub fn init(format: LogFormat, filter: &str) -> LogLevel {
    let filter = EnvFilter::new(filter);
    let is_json = format == LogFormat::Json;
    let writer = move || Cut { is_json };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    // A line that cannot be written is lost. Reporting that on the same standard error would fail
    // as well, and panic: the store goes on when the reader of its log closes the pipe.
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

/// The value of a label, as it stands between the quotes.
pub fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A histogram's labels, its upper bounds with cumulative counts, its count and sum.
pub type HistogramValue<'a> = (&'a str, Vec<(f64, u64)>, u64, f64);

/// A summary's labels, its quantiles with their values, its count and sum.
pub type SummaryValue<'a> = (&'a str, Vec<(f64, f64)>, u64, f64);

/// Writes metrics in Prometheus' text format, version 0.0.4.
#[derive(Default)]
pub struct MetricsText(String);

impl MetricsText {
    /// A value that only grows. The name ends in `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, help, "counter", &[("", value)]);
    }

    /// A value that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, help, "gauge", &[("", value)]);
    }

    /// Counters that differ in one label, given with its value as `reason="x"`.
    pub fn counters(&mut self, name: &str, help: &str, values: &[(&str, impl Display)]) {
        self.family(name, help, "counter", values);
    }

    /// Gauges that differ in their labels.
    pub fn gauges(&mut self, name: &str, help: &str, values: &[(&str, impl Display)]) {
        self.family(name, help, "gauge", values);
    }

    /// Histograms that differ in their labels: upper bounds with cumulative counts, count, sum.
    pub fn histograms(&mut self, name: &str, help: &str, values: &[HistogramValue<'_>]) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} histogram");
        for (labels, buckets, count, sum) in values {
            for (bound, below) in buckets {
                let _ = writeln!(self.0, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
            }
            let _ = writeln!(self.0, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
            let _ =
                writeln!(self.0, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
        }
    }

    /// Summaries that differ in their labels: quantiles with their values, count, sum.
    pub fn summaries(&mut self, name: &str, help: &str, values: &[SummaryValue<'_>]) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} summary");
        for (labels, quantiles, count, sum) in values {
            for (quantile, value) in quantiles {
                let _ = writeln!(self.0, "{name}{{{labels},quantile=\"{quantile}\"}} {value}");
            }
            let _ =
                writeln!(self.0, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
        }
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0
    }

    fn family(&mut self, name: &str, help: &str, kind: &str, values: &[(&str, impl Display)]) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let _ = match *labels {
                "" => writeln!(self.0, "{name} {value}"),
                labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
            };
        }
    }
}

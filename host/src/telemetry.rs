//! Logs to standard error, and the text format in which metrics are shown. No domain words.

use clap::ValueEnum;
use std::fmt::{Display, Write};
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line of text with `key=value` fields.
    Text,
    /// A JSON object a line.
    Json,
}

/// Starts logging. `level` is `debug`, `info`, … or a filter such as `info,tidepool_host::store=debug`.
pub fn init(format: LogFormat, level: &str) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}

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

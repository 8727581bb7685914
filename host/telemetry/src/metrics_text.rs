//! Metrics in the text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};

/// Escapes the value of a label, which is written between quotes.
pub fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A histogram's labels, upper bounds with cumulative counts, count and sum.
pub type HistogramValue<'a> = (&'a str, Vec<(f64, u64)>, u64, f64);

/// A summary's labels, quantiles with their values, count and sum.
pub type SummaryValue<'a> = (&'a str, Vec<(f64, f64)>, u64, f64);

/// Writes metrics in Prometheus' text format, version 0.0.4.
#[derive(Default)]
pub struct MetricsText(String);

impl MetricsText {
    /// Adds a counter. Its name must end in `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, help, "counter", &[("", value)]);
    }

    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, help, "gauge", &[("", value)]);
    }

    /// Adds counters that differ in one label. Each has the label as `reason="x"`, and its value.
    pub fn counters(&mut self, name: &str, help: &str, values: &[(&str, impl Display)]) {
        self.family(name, help, "counter", values);
    }

    pub fn gauges(&mut self, name: &str, help: &str, values: &[(&str, impl Display)]) {
        self.family(name, help, "gauge", values);
    }

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

    pub fn summaries(&mut self, name: &str, help: &str, values: &[SummaryValue<'_>]) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} summary");
        for (labels, quantiles, count, sum) in values {
            for (quantile, value) in quantiles {
                let _ = writeln!(self.0, "{name}{{{labels},quantile=\"{quantile}\"}} {value}");
            }
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            let _ = writeln!(self.0, "{name}_sum{labels} {sum}\n{name}_count{labels} {count}");
        }
    }

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

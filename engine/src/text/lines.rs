//! Writes the samples of series as lines of text.

use super::histogram::put_histogram;
use super::quote::{Quoter, is_plain_label_name, is_plain_metric_name, put_open_metrics};
use crate::model::histogram::is_stale_nan;
use crate::model::{LABEL_NAME, Labels, Value};
use std::fmt::Write as _;
use tidepool_model::number::general;

/// Format of the lines that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// As `promtool tsdb dump` prints them: labels, value, milliseconds.
    Dump,
    /// OpenMetrics without metadata: name, labels, value, seconds. Native histograms and staleness
    /// markers are left out, since the format cannot express them.
    OpenMetrics,
}

/// Writes the samples of one series after the other.
pub struct LineWriter {
    format: TextFormat,
    quoter: Quoter,
    /// Beginning of each line of the series.
    prefix: String,
}

impl LineWriter {
    /// Makes a writer without a series.
    pub fn new(format: TextFormat) -> LineWriter {
        LineWriter { format, quoter: Quoter::default(), prefix: String::new() }
    }

    /// Begins the lines of a series.
    pub fn begin_series(&mut self, labels: &Labels) {
        let LineWriter { format, quoter, prefix } = self;
        prefix.clear();
        match format {
            TextFormat::Dump => {
                for (number, (name, value)) in labels.iter().enumerate() {
                    prefix.push_str(if number == 0 { "{" } else { ", " });
                    match is_plain_label_name(name) {
                        true => prefix.push_str(name),
                        false => quoter.put_go(prefix, name),
                    }
                    prefix.push('=');
                    quoter.put_go(prefix, value);
                }
                prefix.push_str(if prefix.is_empty() { "{} " } else { "} " });
            }
            TextFormat::OpenMetrics => put_open_metrics_series(prefix, labels),
        }
    }

    /// Appends the line of a sample, if the format has one for it.
    pub fn put(&self, out: &mut String, timestamp_ms: i64, value: &Value) {
        let start = out.len();
        out.push_str(&self.prefix);
        match (self.format, value) {
            (TextFormat::Dump, Value::Float(value)) => out.push_str(&general(*value)),
            (TextFormat::Dump, Value::Histogram(histogram)) => put_histogram(out, histogram),
            (TextFormat::Dump, Value::FloatHistogram(histogram)) => put_histogram(out, histogram),
            (TextFormat::OpenMetrics, Value::Float(value)) if !is_stale_nan(*value) => {
                out.push_str(&general(*value));
            }
            (TextFormat::OpenMetrics, _) => {
                out.truncate(start);
                return;
            }
        }
        // Writing to a string does not fail.
        let _ = match self.format {
            TextFormat::Dump => writeln!(out, " {timestamp_ms}"),
            TextFormat::OpenMetrics => {
                // The sign is written apart: the whole seconds of -1 ms are 0.
                let sign = if timestamp_ms < 0 { "-" } else { "" };
                let (s, ms) =
                    (timestamp_ms.unsigned_abs() / 1000, timestamp_ms.unsigned_abs() % 1000);
                writeln!(out, " {sign}{s}.{ms:03}")
            }
        };
    }
}

/// Appends `name{label="value",…} `, or `{"name",label="value",…} ` if the name needs quotes.
fn put_open_metrics_series(prefix: &mut String, labels: &Labels) {
    let metric = labels.get(LABEL_NAME);
    let is_plain = is_plain_metric_name(metric);
    let mut separator = "{";
    if is_plain {
        prefix.push_str(metric);
    } else if !metric.is_empty() {
        prefix.push('{');
        put_open_metrics(prefix, metric);
        separator = ",";
    }
    for (name, value) in labels.iter().filter(|(name, _)| *name != LABEL_NAME) {
        prefix.push_str(separator);
        separator = ",";
        match is_plain_label_name(name) {
            true => prefix.push_str(name),
            false => put_open_metrics(prefix, name),
        }
        prefix.push('=');
        put_open_metrics(prefix, value);
    }
    // Upstream's tools write the braces even if nothing is inside.
    prefix.push_str(if separator == "{" { "{} " } else { "} " });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::histogram::STALE_NAN_BITS;

    fn lines(format: TextFormat, labels: &[(&str, &str)], rows: &[(i64, f64)]) -> String {
        let mut writer = LineWriter::new(format);
        let labels = Labels::from_sorted(labels.iter().copied());
        writer.begin_series(&labels);
        let mut out = String::new();
        for (timestamp_ms, value) in rows {
            writer.put(&mut out, *timestamp_ms, &Value::Float(*value));
        }
        out
    }

    #[test]
    fn lines_look_as_upstreams() {
        let labels = [("__name__", "up"), ("job", "a\"b")];
        let rows = [(1_700_000_000_001, 1.5), (-1, -0.0)];
        assert_eq!(
            lines(TextFormat::Dump, &labels, &rows),
            "{__name__=\"up\", job=\"a\\\"b\"} 1.5 1700000000001\n{__name__=\"up\", job=\"a\\\"b\"} -0 -1\n"
        );
        assert_eq!(
            lines(TextFormat::OpenMetrics, &labels, &rows),
            "up{job=\"a\\\"b\"} 1.5 1700000000.001\nup{job=\"a\\\"b\"} -0 -0.001\n"
        );
        assert_eq!(
            lines(TextFormat::OpenMetrics, &labels[..1], &rows[..1]),
            "up{} 1.5 1700000000.001\n"
        );
    }

    #[test]
    fn names_that_are_not_plain_are_quoted() {
        let labels = [("__name__", "a.b"), ("c.d", "\x01")];
        assert_eq!(
            lines(TextFormat::Dump, &labels, &[(1, 1.0)]),
            "{__name__=\"a.b\", \"c.d\"=\"\\x01\"} 1 1\n"
        );
        assert_eq!(
            lines(TextFormat::OpenMetrics, &labels, &[(1, 1.0)]),
            "{\"a.b\",\"c.d\"=\"\x01\"} 1 0.001\n"
        );
    }

    #[test]
    fn staleness_is_in_dumps_only() {
        let rows = [(1, f64::from_bits(STALE_NAN_BITS))];
        assert_eq!(lines(TextFormat::Dump, &[], &rows), "{} NaN 1\n");
        assert_eq!(lines(TextFormat::OpenMetrics, &[("__name__", "a")], &rows), "");
    }
}

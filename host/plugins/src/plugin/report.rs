//! Metrics of plugins for `/metrics`.

use super::figures::{Outcome, PluginFigures};
use super::manager::{PluginReport, Plugins};
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidepool_telemetry::MetricsText;

impl Plugins {
    pub fn show(&self, text: &mut MetricsText) {
        let reports = self.reports();
        let memory = self.memory();
        text.gauge(
            "tidepool_plugins_memory_bytes",
            "Linear memory of all instances of plugins together.",
            memory.used_bytes(),
        );
        text.gauge(
            "tidepool_plugins_memory_limit_bytes",
            "Linear memory that instances of plugins may take together.",
            memory.bytes_max(),
        );
        text.gauge(
            "tidepool_plugins_loading",
            "Plugins that are being compiled or started.",
            self.loading(),
        );
        // A family without series would only have a help line.
        if reports.is_empty() {
            return;
        }
        calls(text, &reports);
        let counter = |text: &mut MetricsText, name, help, of: fn(&PluginFigures) -> &AtomicU64| {
            let value = |report: &PluginReport| of(&report.figures).load(Relaxed);
            text.counters(name, help, &borrowed(&by_plugin(&reports, value)));
        };
        let seconds = by_plugin(&reports, |report| report.figures.seconds());
        let help =
            "Time spent in calls of plugins, including waits for the functions that they import.";
        text.counters("tidepool_plugin_call_seconds_total", help, &borrowed(&seconds));
        let help = "Samples and histograms given to plugins; rows that decoders found.";
        counter(text, "tidepool_plugin_rows_in_total", help, |f| &f.rows_in);
        let help = "Samples and histograms that came out of transforms and decoders.";
        counter(text, "tidepool_plugin_rows_out_total", help, |f| &f.rows_out);
        let help = "Batches that an observer did not receive because its queue was full.";
        counter(text, "tidepool_plugin_batches_left_out_total", help, |f| &f.left_out);
        let help = "Times that plugins were disabled for a while after repeated faults.";
        counter(text, "tidepool_plugin_disabled_total", help, |f| &f.disablings);
        let help = "Failed attempts to load the files of plugins.";
        counter(text, "tidepool_plugin_load_failures_total", help, |f| &f.load_failures);
        let bytes = by_plugin(&reports, |report| report.figures.memory_bytes.load(Relaxed));
        let help = "Linear memory of the instances of a plugin.";
        text.gauges("tidepool_plugin_memory_bytes", help, &borrowed(&bytes));
        let loaded = by_plugin(&reports, |report| u8::from(report.is_loaded));
        let help = "Whether a plugin is loaded.";
        text.gauges("tidepool_plugin_loaded", help, &borrowed(&loaded));
        let disabled = by_plugin(&reports, |report| u8::from(report.is_disabled));
        let help = "Whether a plugin is disabled for a while after repeated faults.";
        text.gauges("tidepool_plugin_disabled", help, &borrowed(&disabled));
    }
}

fn calls(text: &mut MetricsText, reports: &[PluginReport]) {
    let mut calls = Vec::with_capacity(reports.len() * Outcome::ALL.len());
    for report in reports {
        for outcome in Outcome::ALL {
            let labels = format!("{},outcome=\"{}\"", labels(report), outcome.name());
            calls.push((labels, report.figures.calls(outcome)));
        }
    }
    let help = "Calls of plugins, by outcome; skipped calls were not made.";
    text.counters("tidepool_plugin_calls_total", help, &borrowed(&calls));
}

/// Returns the labels of a plugin. Plugin names need no escaping.
fn labels(report: &PluginReport) -> String {
    format!("plugin=\"{}\",world=\"{}\"", report.name, report.world.name())
}

fn by_plugin<T>(reports: &[PluginReport], value: impl Fn(&PluginReport) -> T) -> Vec<(String, T)> {
    reports.iter().map(|report| (labels(report), value(report))).collect()
}

fn borrowed<T: Display + Copy>(values: &[(String, T)]) -> Vec<(&str, T)> {
    values.iter().map(|(labels, value)| (labels.as_str(), *value)).collect()
}

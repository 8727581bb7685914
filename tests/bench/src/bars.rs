//! The rows of the table, each with a bar: the figure that is good enough.
//!
//! The same binary drifts by a third within the hour, and bytes on disk depend on the data, so
//! these bars are ratios to Prometheus in the same run; those of memory are absolute.

use super::scenario::Scenario::{self, *};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Key of the row in kept figures.
    pub key: &'static str,
    /// Scenario that measures the row.
    pub scenario: Scenario,
    /// Title of the row with the unit. A second figure in brackets is seconds of wall time.
    pub title: &'static str,
    pub bar: Bar,
}

/// Upper bound for a figure; less is better in all rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    None,
    /// Largest ratio to Prometheus, given as the two figures that it came from.
    Ratio {
        bar: f64,
        /// Figure of Prometheus on the machine where the bar was set.
        prometheus: f64,
    },
    AtMost(f64),
}

const fn row(scenario: Scenario, key: &'static str, title: &'static str, bar: Bar) -> Row {
    Row { key, scenario, title, bar }
}

const fn ratio(bar: f64, prometheus: f64) -> Bar {
    Bar::Ratio { bar, prometheus }
}

const NO: Bar = Bar::None;

/// All rows in the order of the table.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row(Write10k, "10k-1.0-cpu", "remote write 1.0, 10k series × 360: CPU s per M samples (wall)", ratio(0.9, 6.8)),
    row(Write10k, "10k-2.0-cpu", "remote write 2.0, 10k series × 360: CPU s per M samples (wall)", ratio(0.4, 3.0)),
    row(Write10k, "10k-1.0-memory", "remote write 1.0, 10k series × 360: peak memory, MB", Bar::AtMost(60.0)),
    row(Write10k, "10k-2.0-memory", "remote write 2.0, 10k series × 360: peak memory, MB", Bar::AtMost(60.0)),
    row(Write100k, "100k-1.0-cpu", "remote write 1.0, 100k series × 60: CPU s per M samples (wall)", NO),
    row(Write100k, "100k-2.0-cpu", "remote write 2.0, 100k series × 60: CPU s per M samples (wall)", NO),
    row(Write100k, "100k-1.0-memory", "remote write 1.0, 100k series × 60: peak memory, MB", NO),
    row(Write100k, "100k-2.0-memory", "remote write 2.0, 100k series × 60: peak memory, MB", NO),
    row(Cuts, "cuts-500-1-2.0-cpu", "remote write 2.0 cut anywhere, up to 500 samples a request, a connection: CPU s per M samples (wall)", ratio(0.133, 1.0)),
    row(Cuts, "cuts-500-4-2.0-cpu", "remote write 2.0 cut anywhere, up to 500 samples a request, 4 connections: CPU s per M samples (wall)", ratio(0.133, 1.0)),
    row(Cuts, "cuts-500-50-2.0-cpu", "remote write 2.0 cut anywhere, up to 500 samples a request, 50 connections: CPU s per M samples (wall)", ratio(0.133, 1.0)),
    row(Cuts, "cuts-2000-1-2.0-cpu", "remote write 2.0 cut anywhere, up to 2000 samples a request, a connection: CPU s per M samples (wall)", ratio(0.133, 1.0)),
    row(Cuts, "cuts-2000-4-2.0-cpu", "remote write 2.0 cut anywhere, up to 2000 samples a request, 4 connections: CPU s per M samples (wall)", ratio(0.133, 1.0)),
    row(Cuts, "cuts-2000-50-2.0-cpu", "remote write 2.0 cut anywhere, up to 2000 samples a request, 50 connections: CPU s per M samples (wall)", ratio(0.133, 1.0)),
    row(Cuts, "cuts-500-1-2.0-memory", "remote write 2.0 cut anywhere, up to 500 samples a request, a connection: peak memory, MB", NO),
    row(Cuts, "cuts-500-4-2.0-memory", "remote write 2.0 cut anywhere, up to 500 samples a request, 4 connections: peak memory, MB", NO),
    row(Cuts, "cuts-500-50-2.0-memory", "remote write 2.0 cut anywhere, up to 500 samples a request, 50 connections: peak memory, MB", NO),
    row(Cuts, "cuts-2000-1-2.0-memory", "remote write 2.0 cut anywhere, up to 2000 samples a request, a connection: peak memory, MB", NO),
    row(Cuts, "cuts-2000-4-2.0-memory", "remote write 2.0 cut anywhere, up to 2000 samples a request, 4 connections: peak memory, MB", NO),
    row(Cuts, "cuts-2000-50-2.0-memory", "remote write 2.0 cut anywhere, up to 2000 samples a request, 50 connections: peak memory, MB", NO),
    row(Senders, "senders-1.0-cpu", "180 senders, 180k series, 1.0: CPU s per M samples (wall)", ratio(1.5, 8.3)),
    row(Senders, "senders-1.0-memory", "180 senders, 180k series, 1.0: peak memory, MB", Bar::AtMost(250.0)),
    row(Senders, "senders-2.0-cpu", "180 senders, 180k series, 2.0: CPU s per M samples (wall)", NO),
    row(Senders, "senders-2.0-memory", "180 senders, 180k series, 2.0: peak memory, MB", NO),
    row(Churn, "churn-1.0-cpu", "500k series, churning, 1.0: CPU s per M samples (wall)", NO),
    row(Churn, "churn-1.0-memory", "500k series, churning, 1.0: peak memory, MB", NO),
    row(Churn, "churn-2.0-cpu", "500k series, churning, 2.0: CPU s per M samples (wall)", ratio(0.8, 5.5)),
    row(Churn, "churn-2.0-memory", "500k series, churning, 2.0: peak memory, MB", Bar::AtMost(600.0)),
    row(Replay, "replay-cpu", "replay of 100 M samples in 10k series: CPU s per M samples", ratio(0.06, 0.355)),
    row(Replay, "replay-ready", "replay of 100 M samples in 10k series: s until ready", NO),
    row(Replay, "replay-memory", "replay of 100 M samples in 10k series: peak memory until ready, MB", NO),
    row(Replay, "replay-cut-cpu", "replay of 100 M samples in 10k series, until blocks are cut, too: CPU s per M samples", NO),
    row(Replay, "replay-cut-memory", "replay of 100 M samples in 10k series, until blocks are cut, too: peak memory, MB", NO),
    row(Billion, "billion-cpu", "replay of a billion samples in 10k series: CPU s", ratio(60.0, 228.0)),
    row(Billion, "billion-ready", "replay of a billion samples in 10k series: s until ready", ratio(45.0, 122.0)),
    row(Billion, "billion-memory", "replay of a billion samples in 10k series: peak memory until ready, MB", Bar::AtMost(400.0)),
    row(Restart, "restart-clean", "restart after a clean stop, 10k series × 360: s until ready", Bar::AtMost(0.1)),
    row(Restart, "restart-clean-cpu", "restart after a clean stop, 10k series × 360: CPU s until idle", NO),
    row(Restart, "restart-kill", "restart after kill -9, the same data: s until ready", NO),
    row(Restart, "restart-kill-cpu", "restart after kill -9, the same data: CPU s until idle", NO),
    row(Reads, "streamed-8h-cpu", "streamed read, 10k series × 8 h: CPU s (wall)", ratio(0.25, 0.50)),
    row(Reads, "streamed-8h-memory", "streamed read, 10k series × 8 h: memory on top, MB", Bar::AtMost(16.0)),
    row(Reads, "samples-8h-cpu", "SAMPLES read, 10k series × 8 h: CPU s (wall)", ratio(1.5, 6.3)),
    row(Reads, "samples-8h-memory", "SAMPLES read, 10k series × 8 h: memory on top, MB", Bar::AtMost(32.0)),
    row(Reads, "streamed-2h-cpu", "streamed read of the last 2 h: CPU s (wall)", NO),
    row(Reads, "streamed-2h-memory", "streamed read of the last 2 h: memory on top, MB", NO),
    row(Reads, "samples-2h-cpu", "SAMPLES read of the last 2 h: CPU s (wall)", NO),
    row(Reads, "samples-2h-memory", "SAMPLES read of the last 2 h: memory on top, MB", NO),
    row(Write100k, "streamed-narrow-cpu", "streamed read, 10 series of 100k: CPU s per 1000 reads (wall)", NO),
    row(Write100k, "samples-narrow-cpu", "SAMPLES read, 10 series of 100k: CPU s per 1000 reads (wall)", NO),
    row(Reads, "8h-cpu", "10k series × 8 h with all cuts and merges: CPU s per M samples (wall)", NO),
    row(Reads, "8h-memory", "10k series × 8 h with all cuts and merges: peak memory, MB", NO),
    row(Reads, "8h-written", "10k series × 8 h with all cuts and merges: bytes written to disk per sample", Bar::AtMost(3.0)),
    row(Reads, "8h-prometheus-records-cpu", "the same with `--wal-records=prometheus`: CPU s per M samples (wall)", NO),
    row(Reads, "8h-prometheus-records-written", "the same with `--wal-records=prometheus`: bytes written to disk per sample", ratio(5.0, 10.7)),
    row(Flash, "flash-first-written", "1000 series × 5 days, the first day: bytes written to disk per sample", NO),
    row(Flash, "flash-last-written", "1000 series × 5 days, the last day: bytes written to disk per sample", NO),
    row(Flash, "flash-last-cpu", "1000 series × 5 days, the last day: CPU s per M samples (wall)", NO),
    row(Flash, "flash-kept", "1000 series × 5 days: bytes kept per sample", NO),
    row(Compaction, "compaction-cpu", "merging 22 h of 2 h blocks, 10k series: CPU s per M samples (wall)", NO),
    row(Compaction, "compaction-memory", "merging 22 h of 2 h blocks, 10k series: peak memory, MB", NO),
    row(Compaction, "kept", "merging 22 h of 2 h blocks, 10k series: bytes kept per sample, compacted", ratio(1.9, 2.22)),
    row(Idle, "idle-memory", "resident when idle, empty, MB", Bar::AtMost(20.0)),
    row(Wasm, "wasm-1.0", "engine work of 1.0, wasm against native, times", Bar::AtMost(1.4)),
    row(Wasm, "wasm-2.0", "engine work of 2.0, wasm against native, times", Bar::AtMost(1.4)),
    row(Scraping, "scrape-10x1000-cpu", "10 targets of 1000 series each second: CPU s per M samples", ratio(0.25, 1.0)),
    row(Scraping, "scrape-10x1000-seconds", "10 targets of 1000 series each second, 60 times: CPU s (wall)", NO),
    row(Scraping, "scrape-10x1000-memory", "10 targets of 1000 series each second: peak memory, MB", Bar::AtMost(35.0)),
    row(Scraping, "scrape-1000x100-cpu", "1000 targets of 100 series each 15 s: CPU s per M samples", ratio(0.25, 1.0)),
    row(Scraping, "scrape-1000x100-seconds", "1000 targets of 100 series each 15 s, 8 times: CPU s (wall)", NO),
    row(Scraping, "scrape-1000x100-memory", "1000 targets of 100 series each 15 s: peak memory, MB", Bar::AtMost(60.0)),
];

/// Returns the row with a key.
pub fn row_of(key: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.key == key)
}

impl Bar {
    /// Returns whether the bar is reached; `None` without a bar, or without the Prometheus figure
    /// that the bar needs.
    pub fn is_reached(self, ours: f64, prometheus: Option<f64>) -> Option<bool> {
        match self {
            Bar::None => None,
            Bar::AtMost(most) => Some(ours <= most),
            Bar::Ratio { bar, prometheus: then } => Some(ours / prometheus? <= bar / then),
        }
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Bar::None => Ok(()),
            Bar::AtMost(most) => write!(f, "≤ {most}"),
            Bar::Ratio { bar, prometheus } => write!(f, "≤ {:.3} ×", bar / prometheus),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_of_time_is_a_ratio_and_a_bar_of_memory_is_not() {
        assert_eq!(ratio(1.0, 4.0).is_reached(2.0, Some(8.0)), Some(true));
        assert_eq!(ratio(1.0, 4.0).is_reached(2.1, Some(8.0)), Some(false));
        assert_eq!(ratio(1.0, 4.0).is_reached(2.0, None), None);
        assert_eq!(Bar::AtMost(5.0).is_reached(5.1, Some(100.0)), Some(false));
        assert_eq!(Bar::None.is_reached(1.0, Some(1.0)), None);
    }

    #[test]
    fn keys_are_unique() {
        let mut keys: Vec<&str> = ROWS.iter().map(|row| row.key).collect();
        keys.sort_unstable();
        assert!(keys.is_sorted_by(|a, b| a < b));
    }
}

//! `tidepool check` beside `promtool check`: the same verdicts, exit codes and lines.

mod config;
mod metrics;

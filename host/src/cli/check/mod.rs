//! `tidepool check`: checks configuration files and metrics, with the texts and the exit codes of
//! `promtool check`.
//!
//! Exit codes: 0 success; 1 something is wrong; 3 lint found a problem that is fatal.

mod config;
mod metrics;
mod rules;

use clap::{Args, Subcommand};
use std::process::ExitCode;
use std::time::Duration;
use tidepool_settings::duration::duration;
use tidepool_telemetry::{self as telemetry, LogFormat};

const LINT: u8 = 3;

/// What is checked.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    #[command(subcommand)]
    command: CheckCommand,

    /// How far back queries look for a sample, for --lint=too-long-scrape-interval
    #[arg(
        long = "query.lookback-delta",
        value_name = "DURATION",
        default_value = "5m",
        value_parser = duration,
        global = true
    )]
    lookback_delta: Duration,
}

#[derive(Debug, Clone, Subcommand)]
enum CheckCommand {
    /// Check configuration files: tidepool's, or Prometheus' whose sections tidepool has
    Config(config::ConfigArgs),
    /// Judge metrics in the text format, from standard input, by Prometheus' conventions
    ///
    /// Example: curl -s http://127.0.0.1:9201/metrics | tidepool check metrics
    Metrics(metrics::MetricsArgs),
    /// Check files of recording and alerting rules
    Rules(rules::RulesArgs),
}

pub fn run(args: CheckArgs) -> ExitCode {
    telemetry::init(LogFormat::Text, "warn");
    match args.command {
        CheckCommand::Config(config) => config::run(&config, args.lookback_delta),
        CheckCommand::Metrics(metrics) => metrics::run(&metrics),
        CheckCommand::Rules(rules) => rules::run(&rules),
    }
}

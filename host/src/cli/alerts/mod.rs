//! `tidepool alerts`: what rules would have fired.
//!
//! Exit codes: 0 success; 1 something failed, or the rules have mistakes; 2 the command line is
//! wrong.

mod backtest;
mod print;

use clap::{Args, Subcommand};
use std::process::ExitCode;
use tidepool_telemetry::{self as telemetry, LogFormat};

#[derive(Debug, Clone, Args)]
pub struct AlertsArgs {
    #[command(subcommand)]
    command: AlertsCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum AlertsCommand {
    /// Show what rules would have fired over a stored range of time
    ///
    /// The rules of a file are evaluated at all their times over what a server or a data directory
    /// has stored. Recording rules are computed in memory first; nothing is stored. Alerts begin at
    /// --from without a state.
    ///
    /// Example: tidepool alerts backtest rules.yml --from=7d
    Backtest(backtest::BacktestArgs),
}

pub fn run(args: &AlertsArgs) -> ExitCode {
    telemetry::init(LogFormat::Text, "warn");
    match &args.command {
        AlertsCommand::Backtest(backtest) => backtest::run(backtest),
    }
}

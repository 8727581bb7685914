//! `tidepool alerts`: what fired, what would have fired, receivers and silences.
//!
//! Exit codes: 0 success; 1 something failed, or the rules have mistakes; 2 the command line is
//! wrong.

mod backtest;
mod log;
mod print;
mod silence;
mod try_receiver;

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
    /// Print the journal of alerts of a data directory, also beside a running server
    ///
    /// The exit code is 1 if a part of it is damaged.
    Log(log::LogArgs),
    /// Have a server send one made-up alert to a receiver, and print the answer
    Test(try_receiver::TryArgs),
    /// Set, list and end silences of a server
    Silence(silence::SilenceArgs),
}

pub fn run(args: &AlertsArgs) -> ExitCode {
    telemetry::init(LogFormat::Text, "warn");
    match &args.command {
        AlertsCommand::Backtest(backtest) => backtest::run(backtest),
        AlertsCommand::Log(log) => log::run(log),
        AlertsCommand::Test(test) => try_receiver::run(test),
        AlertsCommand::Silence(silence) => silence::run(silence),
    }
}

//! `tidepool test`: unit tests, with the flags, texts and exit codes of `promtool test`.
//!
//! Exit codes: 0 all passed; 1 something failed or cannot be read.

mod rules;

use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use tidepool_telemetry::{self as telemetry, LogFormat};

/// What is tested.
#[derive(Debug, Clone, Args)]
pub struct TestArgs {
    #[command(subcommand)]
    command: TestCommand,

    /// Write the results to this file, as JUnit XML
    #[arg(long, value_name = "FILE", global = true)]
    junit: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
enum TestCommand {
    /// Run unit tests of recording and alerting rules
    Rules(rules::RulesArgs),
}

pub fn run(args: &TestArgs) -> ExitCode {
    telemetry::init(LogFormat::Text, "warn");
    match &args.command {
        TestCommand::Rules(rules) => rules::run(rules, args.junit.as_deref()),
    }
}

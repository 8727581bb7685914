//! Commands that need no server: `tidepool tsdb` inspects and changes a data directory, `tidepool
//! query` queries a server or a data directory, `tidepool check` checks configuration files and
//! metrics, `tidepool test` runs unit tests of rules, `tidepool alerts` shows what rules would have
//! fired, `tidepool scrape` shows one scrape, `tidepool plugin` creates, checks and tries plugins,
//! `tidepool viewer` writes a page that shows files.
//!
//! One file per command. Results go to standard output, in the lines of `promtool` if it has the
//! same command. Everything else goes to standard error. `list`, `analyze`, `dump`, `export` and
//! `verify` write nothing and take no lock, so they work next to a running server; `compact`,
//! `import` and `restore` need exclusive use of the directory.
//!
//! Exit codes: 0 success; 1 something failed or is damaged; 2 the command line is wrong; 3 lint
//! found something.

mod alerts;
mod analyze;
mod check;
mod compact;
mod dump;
mod error;
mod import;
mod list;
#[cfg(feature = "plugins")]
mod plugin;
mod progress;
mod quarantine;
mod query;
mod restore;
mod scrape;
mod snapshot;
mod test;
mod units;
mod verify;
#[cfg(feature = "ui")]
mod viewer;
mod workspace;

pub use error::CliError;
#[cfg(feature = "plugins")]
use plugin::PluginCommandArgs;
use progress::Progress;
use workspace::Workspace;

use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use tidepool_telemetry::{self as telemetry, LogFormat};

/// Default data directory of a server.
const DATA_DIR_DEFAULT: &str = "./data";

/// A command that does not serve.
#[derive(Debug, Clone, Subcommand)]
pub enum CliCommand {
    /// Inspect and change a data directory, without a server
    Tsdb(TsdbArgs),
    /// Evaluate PromQL against a server, or a data directory without one
    Query(query::QueryArgs),
    /// Show what alerting rules would have fired
    Alerts(alerts::AlertsArgs),
    /// Check configuration files and metrics, as promtool does
    Check(check::CheckArgs),
    /// Run unit tests of rules, as promtool does
    Test(test::TestArgs),
    /// Show what one scrape of a URL would store
    Scrape(scrape::ScrapeCommandArgs),
    /// Write the viewer, one HTML file that queries a data directory in a browser
    #[cfg(feature = "ui")]
    Viewer,
    /// Create, check and try plugins, without a server
    #[cfg(feature = "plugins")]
    Plugin(PluginCommandArgs),
}

/// Commands over a data directory.
#[derive(Debug, Clone, Args)]
pub struct TsdbArgs {
    #[command(subcommand)]
    command: TsdbCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum TsdbCommand {
    /// List blocks
    List(list::ListArgs),
    /// Show which labels make a block large
    Analyze(analyze::AnalyzeArgs),
    /// Print samples of blocks and logs, a line each: labels, value, milliseconds
    Dump(dump::DumpArgs),
    /// Write samples of blocks and logs as OpenMetrics text
    Export(dump::ExportArgs),
    /// Check every checksum and invariant of blocks and logs
    Verify(verify::VerifyArgs),
    /// Cut, merge and drop what is due; no server may be running
    Compact(compact::CompactArgs),
    /// Make a copy in DIR/snapshots, of hard links where it can; no server may be running
    Snapshot(snapshot::SnapshotArgs),
    /// Make blocks of samples in a text file; no server may be running
    Import(import::ImportArgs),
    /// Make blocks of a quarantined log; no server may be running
    Restore(restore::RestoreArgs),
}

/// The data directory of a command.
#[derive(Debug, Clone, Args)]
struct DataDirArg {
    /// The data directory: tidepool's or Prometheus'
    #[arg(value_name = "DIR", default_value = DATA_DIR_DEFAULT)]
    data_dir: PathBuf,
}

/// Result of a command that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    /// Damage was found and printed.
    Damaged,
}

pub fn run(command: CliCommand) -> ExitCode {
    match command {
        CliCommand::Tsdb(args) => run_tsdb(args),
        CliCommand::Query(args) => query::run(args),
        CliCommand::Alerts(args) => alerts::run(&args),
        CliCommand::Check(args) => check::run(args),
        CliCommand::Test(args) => test::run(&args),
        CliCommand::Scrape(args) => scrape::run(args),
        #[cfg(feature = "ui")]
        CliCommand::Viewer => exit_code(viewer::run()),
        #[cfg(feature = "plugins")]
        CliCommand::Plugin(args) => plugin::run(args),
    }
}

fn run_tsdb(args: TsdbArgs) -> ExitCode {
    telemetry::init(LogFormat::Text, "warn");
    exit_code(match args.command {
        TsdbCommand::List(args) => list::run(&args),
        TsdbCommand::Dump(args) => dump::dump(&args),
        TsdbCommand::Export(args) => dump::export(&args),
        TsdbCommand::Analyze(args) => analyze::run(&args),
        TsdbCommand::Verify(args) => verify::run(&args),
        TsdbCommand::Compact(args) => compact::run(&args),
        TsdbCommand::Snapshot(args) => snapshot::run(&args),
        TsdbCommand::Import(args) => import::run(&args),
        TsdbCommand::Restore(args) => restore::run(&args),
    })
}

fn exit_code(done: Result<Verdict, CliError>) -> ExitCode {
    match done {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Damaged) => ExitCode::FAILURE,
        // A pipe's reader, such as `head`, has ended, which is not an error.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            progress::warn_line(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

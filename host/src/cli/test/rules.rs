//! `tidepool test rules`: runs unit tests of rules as `promtool test rules` does, each over an
//! engine instance of its own.

use crate::cli::CliError;
use crate::cli::progress::warn_line;
use clap::Args;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidepool_evaluation::{EngineChecks, InstanceLaboratory};
use tidepool_query::QueryFeatures;
use tidepool_rules::file::{NameValidation, Options as FileOptions, RULES_MAX};
use tidepool_rules::unit_test::{Options, Output, Search, Suite, junit, run_files};

#[derive(Debug, Clone, Args)]
pub struct RulesArgs {
    /// The files of unit tests
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Run only tests whose names match this regular expression; may be repeated
    #[arg(long, value_name = "REGEX")]
    run: Vec<String>,

    /// Print names and all samples of the tests
    #[arg(long)]
    debug: bool,

    /// Print wrong alerts as differences, in colours
    #[arg(long)]
    diff: bool,

    /// Accept keys in rule files that Prometheus does not know; a server refuses them
    #[arg(long)]
    ignore_unknown_fields: bool,
}

/// Why no test ran.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("--run: {0}")]
    Run(String),
    #[error(transparent)]
    Junit(#[from] CliError),
    #[error("{0}")]
    Engine(String),
}

pub fn run(args: &RulesArgs, junit_path: Option<&Path>) -> ExitCode {
    // The file is made before the tests run, as in upstream.
    let opened = junit_path.map(|path| File::create(path).map_err(CliError::file("open", path)));
    let done = opened.transpose().map_err(StartError::from).and_then(|file| {
        let suites = suites(args)?;
        Ok((file, suites))
    });
    let (file, suites) = match done {
        Ok(done) => done,
        Err(error) => {
            warn_line(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let Some(suites) = suites else { return ExitCode::SUCCESS };
    if let Some(mut file) = file
        && let Err(error) = file.write_all(junit(&suites).as_bytes())
    {
        warn_line(&format!("failed to write JUnit XML: {error}"));
    }
    match suites.iter().all(Suite::has_passed) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Runs the tests; `None` if the reader of standard output, such as `head`, has ended.
fn suites(args: &RulesArgs) -> Result<Option<Vec<Suite>>, StartError> {
    let run = match args.run.as_slice() {
        [] => None,
        texts => Some(Search::new(&texts.join("|")).map_err(StartError::Run)?),
    };
    // As a server without `--enable-feature`, and as promtool.
    let features = QueryFeatures::default();
    let engine = |error: &dyn std::fmt::Display| StartError::Engine(error.to_string());
    let checks = EngineChecks::new(features).map_err(|error| engine(&error))?;
    let mut laboratory = InstanceLaboratory::new(features).map_err(|error| engine(&error))?;
    let options = Options {
        run: run.as_ref(),
        diff: args.diff,
        debug: args.debug,
        rules: FileOptions {
            ignore_unknown_fields: args.ignore_unknown_fields,
            validation: NameValidation::Utf8,
            rules_max: RULES_MAX,
        },
    };
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let mut output = Output { out: &mut out, err: &mut err };
    let files = &args.files;
    match run_files(files, &options, &checks, &mut laboratory, &utc_time, &mut output) {
        Ok(suites) => Ok(Some(suites)),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
        Err(error) => Err(CliError::Output(error).into()),
    }
}

/// The time in UTC, which JUnit has without a time zone.
fn utc_time() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

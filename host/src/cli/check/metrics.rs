//! `tidepool check metrics`: metrics by Prometheus' conventions, and how many series each has.

use super::LINT;
use clap::Args;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use tidepool_exposition::NameValidation;
use tidepool_exposition::lint::Families;

/// What turns the rules off.
const NONE: &str = "none";

#[derive(Debug, Clone, Args)]
pub struct MetricsArgs {
    /// Print how many series each metric has, too
    #[arg(long)]
    extended: bool,

    /// Lint rules: all or none
    #[arg(long, value_name = "RULES", default_value = "all")]
    lint: String,
}

pub fn run(args: &MetricsArgs) -> ExitCode {
    // Output may be closed; the exit code counts.
    let exit = judge(args, &mut BufWriter::new(io::stderr().lock()));
    exit.unwrap_or(ExitCode::FAILURE)
}

fn judge(args: &MetricsArgs, errors: &mut impl Write) -> io::Result<ExitCode> {
    let lints = args.lint != NONE;
    if !lints && !args.extended {
        writeln!(errors, "error: at least one of --extended or linting must be enabled")?;
        writeln!(
            errors,
            "Use --extended for cardinality analysis, or remove --lint=none to enable linting"
        )?;
        return Ok(ExitCode::FAILURE);
    }
    // As promtool: the rules know the old names alone.
    let (names, doing) = match lints {
        true => (NameValidation::Legacy, "error while linting"),
        false => (NameValidation::Utf8, "error while parsing text to metric families"),
    };
    let families = match Families::read(io::stdin().lock(), names) {
        Ok(families) => families,
        Err(error) => {
            writeln!(errors, "{doing}: {error}")?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let problems = if lints { families.problems() } else { Vec::new() };
    for problem in &problems {
        writeln!(errors, "{problem}")?;
    }
    errors.flush()?;
    if args.extended {
        write!(io::stdout(), "{}", families.cardinality())?;
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(LINT) })
}

//! `tidepool check metrics`: checks metrics against Prometheus' conventions, counts their series.

use super::LINT;
use clap::Args;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use tidepool_exposition::NameValidation;
use tidepool_exposition::lint::Families;

/// Value of `--lint` that disables the rules.
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
    // If an output is closed, the exit code still shows the result.
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
    // As in promtool, the lint rules accept only legacy names, without UTF-8.
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
    // The problems go to standard error and must be written before the table.
    errors.flush()?;
    if args.extended {
        write!(io::stdout(), "{}", families.cardinality())?;
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(LINT) })
}

//! `tidepool check rules`: checks rule files as `promtool check rules` does.

use crate::cli::progress::print_line;
use clap::Args;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidepool_evaluation::{ChecksError, EngineChecks};
use tidepool_query::QueryFeatures;
use tidepool_rules::file::{
    FILE_BYTES_MAX, LintOptions, NameValidation, Options, RULES_MAX, RuleFile, RuleFileError,
    exit_code, parse, read,
};

#[derive(Debug, Clone, Args)]
pub struct RulesArgs {
    /// The rule files; without any, standard input is read
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Lint rules, separated by commas: all, duplicate-rules or none
    #[arg(long, value_name = "RULES", default_value = "duplicate-rules")]
    lint: String,

    /// Let what lint finds end with exit code 3
    #[arg(long)]
    lint_fatal: bool,

    /// Accept keys that Prometheus does not know; a server refuses them
    #[arg(long)]
    ignore_unknown_fields: bool,
}

pub fn run(args: &RulesArgs) -> ExitCode {
    let lint = LintOptions::parse(&args.lint);
    for name in &lint.unknown {
        print_line(&format!("WARNING: unknown lint option: {name:?}"));
    }
    let mut check = match RuleCheck::new(lint, args.ignore_unknown_fields) {
        Ok(check) => check,
        Err(error) => {
            fail(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    if args.files.is_empty() {
        print_line("Checking standard input");
        match stdin() {
            Ok(bytes) => check.text(&bytes),
            Err(error) => {
                fail(&error.to_string());
                return ExitCode::FAILURE;
            }
        }
    }
    args.files.iter().for_each(|path| check.file(path));
    ExitCode::from(exit_code(check.has_mistakes, check.has_lints, args.lint_fatal))
}

/// Checks files one after the other, and prints what it finds.
pub(super) struct RuleCheck {
    lint: LintOptions,
    checks: EngineChecks,
    options: Options,
    pub has_mistakes: bool,
    pub has_lints: bool,
}

impl RuleCheck {
    pub fn new(lint: LintOptions, ignore_unknown_fields: bool) -> Result<RuleCheck, ChecksError> {
        // As a server without `--enable-feature`, and as promtool.
        let checks = EngineChecks::new(QueryFeatures::default())?;
        let options = Options {
            ignore_unknown_fields,
            validation: NameValidation::Utf8,
            rules_max: RULES_MAX,
        };
        Ok(RuleCheck { lint, checks, options, has_mistakes: false, has_lints: false })
    }

    pub fn file(&mut self, path: &Path) {
        print_line(&format!("Checking {}", path.display()));
        self.judge(read(path, &self.options, &self.checks));
    }

    fn text(&mut self, bytes: &[u8]) {
        self.judge(parse(Path::new("standard input"), bytes, &self.options, &self.checks));
    }

    fn judge(&mut self, checked: Result<RuleFile, RuleFileError>) {
        match checked {
            Err(error) => {
                fail(&error.to_string());
                self.has_mistakes = true;
            }
            Ok(file) => match self.lint.lint(std::slice::from_ref(&file)).first() {
                Some(found) => {
                    fail(&found.to_string());
                    self.has_lints = true;
                }
                None => print_line(&format!("  SUCCESS: {} rules found", file.rule_count())),
            },
        }
        print_line("");
    }
}

/// Reads standard input; one byte more than is allowed, so that a longer input is refused.
fn stdin() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn fail(what: &str) {
    // If standard error is closed, the exit code still tells.
    let _ = writeln!(io::stderr(), "  FAILED:\n{what}");
}

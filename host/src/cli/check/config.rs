//! `tidepool check config`: checks whether a server would start with a configuration file.

use super::LINT;
use super::rules::RuleCheck;
use crate::cli::progress::print_line;
use crate::config::ConfigSource;
use clap::Args;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tidepool_rules::file::LintOptions;
use tidepool_scrape::check::{MissingList, check, too_long_interval};
use tidepool_scrape::config::{Depth, ScrapeConfig};
use tidepool_settings::duration::duration_text;

#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// The configuration files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Check the text alone: the files that it names need not be there
    #[arg(long)]
    syntax_only: bool,

    /// Lint rules, separated by commas: all, duplicate-rules, too-long-scrape-interval or none
    #[arg(long, value_name = "RULES", default_value = "duplicate-rules")]
    lint: String,

    /// Let what lint finds end with exit code 3
    #[arg(long)]
    lint_fatal: bool,

    /// As for Prometheus' agent; the sections that it must not have are refused in any case
    #[arg(long)]
    agent: bool,

    /// Accept keys of rule files that Prometheus does not know; a server refuses them
    #[arg(long)]
    ignore_unknown_fields: bool,
}

/// Lint rules that are enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lint {
    too_long_interval: bool,
    duplicate_rules: bool,
}

/// What a valid file names.
#[derive(Default)]
struct Checked {
    jobs: Vec<ScrapeConfig>,
    rule_files: Vec<PathBuf>,
}

impl Lint {
    /// Parses the rules; returns unknown names as well.
    fn parse(text: &str) -> (Lint, Vec<&str>) {
        let names: Vec<&str> = text.split(',').collect();
        // As in promtool, `none` overrides everything else, even unknown names.
        if names.contains(&"none") {
            return (Lint::default(), Vec::new());
        }
        let is_interval = |name: &&str| matches!(*name, "all" | "too-long-scrape-interval");
        let is_known = |name: &&str| is_interval(name) || matches!(*name, "" | "duplicate-rules");
        let is_duplicate = |name: &&str| matches!(*name, "all" | "duplicate-rules");
        let lint = Lint {
            too_long_interval: names.iter().any(is_interval),
            duplicate_rules: names.iter().any(is_duplicate),
        };
        (lint, names.into_iter().filter(|name| !is_known(name)).collect())
    }
}

pub fn run(args: &ConfigArgs, lookback: Duration) -> ExitCode {
    let (lint, unknown) = Lint::parse(&args.lint);
    for name in unknown {
        print_line(&format!("WARNING: unknown lint option: {name:?}"));
    }
    let depth = if args.syntax_only { Depth::Syntax } else { Depth::Files };
    let (mut has_errors, mut has_lint) = (false, false);
    for path in &args.files {
        let file = path.display();
        print_line(&format!("Checking {file}"));
        let mut missing = Vec::new();
        let checked = checked(path, depth, &mut missing);
        for missing in missing {
            print_line(&format!("  WARNING: {missing}"));
        }
        match &checked {
            Ok(Checked { rule_files, .. }) => {
                if !rule_files.is_empty() {
                    print_line(&format!("  SUCCESS: {} rule files found", rule_files.len()));
                }
                print_line(&format!(" SUCCESS: {file} is valid prometheus config file syntax"));
            }
            Err(error) => {
                fail(error);
                has_errors = true;
            }
        }
        print_line("");
        let Checked { jobs, rule_files } = checked.unwrap_or_default();
        // With --syntax-only, included files are not read, so not all jobs are known.
        let lints = lint.too_long_interval && depth == Depth::Files;
        if let Some(config) = too_long_interval(&jobs, lookback).filter(|_| lints) {
            let (job, interval) = (&config.job.name, duration_text(config.job.interval));
            fail(&format_args!(
                "too long scrape interval found, data point will be marked as stale - job: {job}, \
                 interval: {interval}"
            ));
            has_lint = true;
        }
        if rule_files.is_empty() {
            continue;
        }
        let lint_rules =
            LintOptions { duplicate_rules: lint.duplicate_rules, ..LintOptions::default() };
        match RuleCheck::new(lint_rules, args.ignore_unknown_fields) {
            Ok(mut check) => {
                rule_files.iter().for_each(|path| check.file(path));
                has_errors |= check.has_mistakes;
                has_lint |= check.has_lints;
            }
            Err(error) => {
                fail(&error);
                has_errors = true;
            }
        }
    }
    match (has_errors, has_lint && args.lint_fatal) {
        (true, _) => ExitCode::FAILURE,
        (false, true) => ExitCode::from(LINT),
        (false, false) => ExitCode::SUCCESS,
    }
}

/// Returns what a file names that a server would accept, with the rule files that are there.
fn checked(path: &Path, depth: Depth, missing: &mut Vec<MissingList>) -> Result<Checked, String> {
    let source = ConfigSource::of_file(path, depth);
    let (config, _) = source.serve().map_err(|error| error.to_string())?;
    let jobs = config.scrape.settings.jobs;
    check(&jobs, depth, missing).map_err(|error| error.to_string())?;
    let rules = match depth {
        Depth::Files => config.rules.section,
        Depth::Syntax => return Ok(Checked { jobs, ..Checked::default() }),
    };
    match rules.missing() {
        Some(path) => Err(format!("rule_files: {path:?} does not point to an existing file")),
        None => Ok(Checked { jobs, rule_files: rules.paths() }),
    }
}

fn fail(what: &dyn std::fmt::Display) {
    // If standard error is closed, the exit code still shows the result.
    let _ = writeln!(std::io::stderr(), "  FAILED: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are those of promtool's `newConfigLintConfig`.
    #[test]
    fn rules_of_lint_are_promtools() {
        let all = Lint { too_long_interval: true, duplicate_rules: true };
        let duplicates = Lint { duplicate_rules: true, ..Lint::default() };
        for (text, lint, unknown) in [
            ("duplicate-rules", duplicates, &[][..]),
            ("", Lint::default(), &[]),
            ("all", all, &[]),
            ("duplicate-rules,too-long-scrape-interval", all, &[]),
            ("all,none", Lint::default(), &[]),
            ("all,x,none", Lint::default(), &[]),
            ("x,all,y", all, &["x", "y"]),
        ] {
            assert_eq!(Lint::parse(text), (lint, unknown.to_vec()), "{text}");
        }
    }
}

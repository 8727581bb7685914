//! Runs files of tests and writes their results, as `promtool test rules` does.

use super::run::Bench;
use super::store::Laboratory;
use super::{Case, Options, Suite, TestFile, read};
use crate::file::{self, Checks, Pattern};
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Standard output and standard error, or what stands for them.
pub struct Output<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
}

/// Runs the tests of files, and writes what failed. `time` gives the local time for JUnit. A
/// failed write is an error; the files behind it are not run.
pub fn run_files<L: Laboratory>(
    paths: &[PathBuf],
    options: &Options<'_>,
    checks: &dyn Checks,
    laboratory: &mut L,
    time: &dyn Fn() -> String,
    output: &mut Output<'_>,
) -> io::Result<Vec<Suite>> {
    let mut suites = Vec::new();
    for path in paths {
        writeln!(output.out, "Processing test file: {}", path.display())?;
        let suite = run_file(path, options, checks, laboratory, time, output.err);
        if suite.has_passed() {
            writeln!(output.out, "  SUCCESS")?;
        } else {
            writeln!(output.err, "  FAILED:")?;
            for error in suite.errors() {
                writeln!(output.err, "{error}")?;
                writeln!(output.out)?;
            }
        }
        writeln!(output.out)?;
        suites.push(suite);
    }
    Ok(suites)
}

fn run_file<L: Laboratory>(
    path: &Path,
    options: &Options<'_>,
    checks: &dyn Checks,
    laboratory: &mut L,
    time: &dyn Fn() -> String,
    err: &mut dyn Write,
) -> Suite {
    let mut suite = Suite { name: path.to_string_lossy().into_owned(), ..Suite::default() };
    let file = match read(path, &options.rules, checks) {
        Ok(file) => file,
        Err(error) => {
            suite.aborted = Some(error.to_string());
            return suite;
        }
    };
    let paths = match rule_files(&file, err) {
        Ok(paths) => paths,
        Err(error) => {
            suite.aborted = Some(error);
            return suite;
        }
    };
    suite.time = time();
    let rules = file::read_all(&paths, &options.rules, checks);
    let bench = Bench { file: &file, rules: &rules, options };
    for (number, test) in file.tests.iter().enumerate() {
        if options.run.is_some_and(|run| !run.is_match(test.name.as_bytes())) {
            continue;
        }
        let name = match test.name.as_str() {
            "" => format!("unnamed#{number}"),
            name => name.to_owned(),
        };
        let failures = bench.run(&name, test, laboratory, err);
        suite.cases.push(Case { name, failures });
    }
    suite
}

/// Finds the rule files of a file, each once.
fn rule_files(file: &TestFile, err: &mut dyn Write) -> Result<Vec<PathBuf>, String> {
    let directory = file.path.parent().unwrap_or(Path::new(""));
    let (mut found, mut is_found) = (Vec::new(), HashSet::new());
    for text in &file.rule_files {
        let pattern = Pattern::anywhere(text).map_err(|error| error.to_string())?;
        let paths = file::expand(&[pattern], directory).map_err(|error| error.to_string())?;
        if paths.is_empty() {
            let shown = directory.join(text);
            // If standard error is closed, the exit code still tells.
            let _ = writeln!(err, "  WARNING: no file match pattern {}", shown.display());
        }
        found.extend(paths.into_iter().filter(|path| is_found.insert(path.clone())));
    }
    Ok(found)
}

//! Reads files.

use super::reader::{Budget, Reader};
use super::{Checks, FILE_BYTES_MAX, Group, Options, RuleFile, RuleFileError, document, group};
use std::path::Path;
use tidepool_settings::file::read_regular;

/// Reads a rule file and checks it. The path is for messages only.
pub fn parse(
    path: &Path,
    bytes: &[u8],
    options: &Options,
    checks: &dyn Checks,
) -> Result<RuleFile, RuleFileError> {
    parse_within(path, bytes, options, checks, &mut Budget::new(options.rules_max))
}

/// Reads a regular file of at most [`FILE_BYTES_MAX`] bytes and checks it.
pub fn read(
    path: &Path,
    options: &Options,
    checks: &dyn Checks,
) -> Result<RuleFile, RuleFileError> {
    read_within(path, options, checks, &mut Budget::new(options.rules_max))
}

/// Reads files and checks each of them; what bounds rules and texts counts for all together.
pub fn read_all<P: AsRef<Path>>(
    paths: &[P],
    options: &Options,
    checks: &dyn Checks,
) -> Vec<Result<RuleFile, RuleFileError>> {
    let mut budget = Budget::new(options.rules_max);
    paths.iter().map(|path| read_within(path.as_ref(), options, checks, &mut budget)).collect()
}

fn read_within(
    path: &Path,
    options: &Options,
    checks: &dyn Checks,
    budget: &mut Budget,
) -> Result<RuleFile, RuleFileError> {
    match read_regular(path, FILE_BYTES_MAX) {
        Ok(bytes) => parse_within(path, &bytes, options, checks, budget),
        Err(error) => Err(document::unreadable(path, &error)),
    }
}

fn parse_within(
    path: &Path,
    bytes: &[u8],
    options: &Options,
    checks: &dyn Checks,
    budget: &mut Budget,
) -> Result<RuleFile, RuleFileError> {
    let first = document::load(path, bytes)?;
    let mut reader = Reader::new(options, checks, budget);
    reader.report_repeated(&first.repeated);
    let groups: Vec<Group> = group::read_all(&mut reader, &first.root).unwrap_or_default();
    reader.finish(path)?;
    Ok(RuleFile { path: path.to_owned(), groups, ignored: first.rest })
}

//! Reads files.

use super::error::cut;
use super::reader::{Budget, Reader};
use super::{
    Cause, Checks, FILE_BYTES_MAX, Group, Mistake, Options, Position, RuleFile, RuleFileError,
    group,
};
use std::path::Path;
use tidepool_settings::file::read_regular;
use tidepool_settings::yaml;

/// Maximum memory of the nodes of a file, approximately.
const NODE_BYTES_MAX: usize = 128 << 20;

const START: Position = Position { line: 1, column: 1 };

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
        Err(error) => Err(failed(path, START, Cause::Io(error.to_string()))),
    }
}

fn parse_within(
    path: &Path,
    bytes: &[u8],
    options: &Options,
    checks: &dyn Checks,
    budget: &mut Budget,
) -> Result<RuleFile, RuleFileError> {
    let failed = |place, cause| Err(failed(path, place, cause));
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return failed(START, Cause::File);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            return failed(end_of(&valid), Cause::Encoding);
        }
    };
    let control = control(text);
    let mut left = NODE_BYTES_MAX;
    let mut is_too_large = false;
    let loaded = yaml::load_first(text, &mut |bytes| {
        let rest = left.checked_sub(bytes);
        is_too_large = rest.is_none();
        left = rest.ok_or_else(String::new)?;
        Ok(())
    });
    let end = match &loaded {
        Ok(first) => first.rest,
        Err(error) => Some(error.place()),
    };
    // Behind the end, nothing is wrong.
    if let Some((place, letter)) = control
        && end.is_none_or(|end| (place.line, place.column) <= (end.line, end.column))
    {
        return failed(place, Cause::Control(letter));
    }
    let first = match loaded {
        Ok(first) => first,
        Err(error) if is_too_large => return failed(error.place(), Cause::Memory(NODE_BYTES_MAX)),
        Err(error) => {
            let (place, key) = (error.place(), error.key().to_owned());
            let mistake = Mistake { place, key, cause: Cause::Yaml(cut(error.what().to_owned())) };
            return Err(RuleFileError { path: path.to_owned(), mistakes: vec![mistake], more: 0 });
        }
    };
    let mut reader = Reader::new(options, checks, budget);
    for error in first.repeated {
        let cause = Cause::Yaml(cut(error.what().to_owned()));
        reader.report_at(error.place(), error.key().to_owned(), cause);
    }
    let groups: Vec<Group> = group::read_all(&mut reader, &first.root).unwrap_or_default();
    let Reader { mut mistakes, more, .. } = reader;
    if mistakes.is_empty() {
        return Ok(RuleFile { path: path.to_owned(), groups, ignored: first.rest });
    }
    // What is missing is found after the keys that are there.
    mistakes.sort_by_key(|mistake| (mistake.place.line, mistake.place.column));
    Err(RuleFileError { path: path.to_owned(), mistakes, more })
}

fn failed(path: &Path, place: Position, cause: Cause) -> RuleFileError {
    let mistake = Mistake { place, key: String::new(), cause };
    RuleFileError { path: path.to_owned(), mistakes: vec![mistake], more: 0 }
}

/// Finds the first character that a text in YAML must not have outside of escapes.
fn control(text: &str) -> Option<(Position, char)> {
    let is_control = |c: char| match c {
        '\t' | '\n' | '\r' | '\u{85}' | '\u{feff}' => false,
        '\u{fffe}' | '\u{ffff}' => true,
        _ => c.is_control(),
    };
    let (at, letter) = text.char_indices().find(|(_, c)| is_control(*c))?;
    Some((end_of(&text[..at]), letter))
}

fn end_of(text: &str) -> Position {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let line = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let last = text.rsplit('\n').next().unwrap_or_default();
    Position { line: number(line), column: number(last.chars().count() + 1) }
}

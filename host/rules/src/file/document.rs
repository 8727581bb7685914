//! Reads the text of a file as YAML.

use super::error::cut;
use super::{Cause, FILE_BYTES_MAX, Mistake, Position, RuleFileError};
use std::path::Path;
use tidepool_settings::yaml::{self, First};

/// Maximum memory of the nodes of a file, approximately.
const NODE_BYTES_MAX: usize = 128 << 20;

const START: Position = Position { line: 1, column: 1 };

/// Reads the first document. The path is for messages only.
pub(crate) fn load(path: &Path, bytes: &[u8]) -> Result<First, RuleFileError> {
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
    match loaded {
        Ok(first) => Ok(first),
        Err(error) if is_too_large => failed(error.place(), Cause::Memory(NODE_BYTES_MAX)),
        Err(error) => {
            let (place, key) = (error.place(), error.key().to_owned());
            let mistake = Mistake { place, key, cause: Cause::Yaml(cut(error.what().to_owned())) };
            Err(RuleFileError { path: path.to_owned(), mistakes: vec![mistake], more: 0 })
        }
    }
}

/// The mistake of a file that cannot be read.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> RuleFileError {
    failed(path, START, Cause::Io(error.to_string()))
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

//! Labels of a series: a name, or labels in braces, or both.

use super::NotationError;
use super::cursor::{Cursor, is_name_part, is_name_start};
use crate::file::Labels;
use crate::labels::METRIC_NAME;
use crate::template::unquoted;

/// Words of PromQL that are no names of series.
const NO_NAMES: [&str; 8] =
    ["atan2", "bool", "group_left", "group_right", "ignoring", "inf", "nan", "on"];

pub fn read(cursor: &mut Cursor<'_>) -> Result<Labels, NotationError> {
    cursor.skip_blanks_and_comments();
    let name = match cursor.peek() {
        Some(first) if first == ':' || is_name_start(first) => {
            cursor.take_while(|letter| letter == ':' || is_name_part(letter))
        }
        _ => "",
    };
    if NO_NAMES.iter().any(|word| word.eq_ignore_ascii_case(name)) {
        return Err(cursor.error(format!("{name:?} is a word of PromQL, not the name of a series")));
    }
    let has_braces = cursor.peek() == Some('{') && !cursor.rest().starts_with("{{");
    let mut labels = match has_braces {
        true => braces(cursor)?,
        false => Labels::new(),
    };
    if !name.is_empty() {
        labels.retain(|_, value| !value.is_empty());
        labels.insert(METRIC_NAME.to_owned(), name.to_owned());
    }
    Ok(labels)
}

fn braces(cursor: &mut Cursor<'_>) -> Result<Labels, NotationError> {
    let mut labels = Labels::new();
    cursor.take('{');
    loop {
        cursor.skip_blanks_and_comments();
        if cursor.peek().is_none() {
            return Err(cursor.error("unexpected end of input inside braces"));
        }
        if cursor.take('}') {
            return Ok(labels);
        }
        let (name, value) = label(cursor)?;
        if labels.contains_key(&name) {
            return Err(cursor.error(format!("the label {name:?} is there already")));
        }
        labels.insert(name, value);
        cursor.skip_blanks_and_comments();
        if !cursor.take(',') && cursor.peek() != Some('}') {
            return Err(unexpected(cursor, "label set", "\",\" or \"}\""));
        }
    }
}

fn label(cursor: &mut Cursor<'_>) -> Result<(String, String), NotationError> {
    let (name, is_quoted) = match cursor.peek() {
        Some(mark @ ('"' | '\'' | '`')) => (quoted(cursor, mark)?, true),
        Some(first) if is_name_start(first) => (cursor.take_while(is_name_part).to_owned(), false),
        _ => return Err(unexpected(cursor, "label set", "identifier or \"}\"")),
    };
    cursor.skip_blanks_and_comments();
    let is_equal = cursor.peek() == Some('=') && !cursor.rest().starts_with("=~");
    if !is_equal {
        return match is_quoted {
            true => Ok((METRIC_NAME.to_owned(), name)),
            false => Err(unexpected(cursor, "label set", "\"=\"")),
        };
    }
    cursor.take('=');
    cursor.skip_blanks_and_comments();
    match cursor.peek() {
        Some(mark @ ('"' | '\'' | '`')) => Ok((name, quoted(cursor, mark)?)),
        _ => Err(unexpected(cursor, "label set", "string")),
    }
}

/// Reads a text in quotes.
fn quoted(cursor: &mut Cursor<'_>, mark: char) -> Result<String, NotationError> {
    let rest = cursor.rest();
    let mut is_escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if mark != '`' => is_escaped = true,
            '\n' if mark != '`' => break,
            _ if letter == mark => {
                let token = rest.get(..at + 1).unwrap_or_default();
                let text = unquoted(token);
                let text = text.ok_or_else(|| cursor.error("an escape in quotes is not valid"))?;
                cursor.skip(at + 1);
                return Ok(text);
            }
            _ => {}
        }
    }
    Err(cursor.error("unterminated quoted string"))
}

fn unexpected(cursor: &Cursor<'_>, within: &str, expected: &str) -> NotationError {
    let found = match cursor.peek() {
        None => "end of input".to_owned(),
        Some(letter) => format!("{letter:?}"),
    };
    cursor.error(format!("unexpected {found} in {within}, expected {expected}"))
}

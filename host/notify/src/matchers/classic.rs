//! The older syntax: `{name="value", other=~v.*}`. Values may be without quotes and have any
//! character but a comma; of escapes there are `\n`, `\"` and `\\`, and any other backslash stands
//! for itself.

use super::{MatchersError, Piece};
use tidepool_model::MatchOp;

/// What the older syntax skips around names, operators and values.
const SPACES: [char; 5] = [' ', '\t', '\n', '\r', '\x0c'];

/// Reads a list, in which the first and the last brace are optional.
pub fn pieces(text: &str) -> Result<Vec<Piece>, MatchersError> {
    let text = text.strip_prefix('{').unwrap_or(text);
    let text = text.strip_suffix('}').unwrap_or(text);
    let mut parts = split(text);
    // A comma may follow the last matcher.
    let last = parts.pop().unwrap_or_default().trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts.into_iter().map(piece).collect()
}

/// Splits at commas outside of quotes. A quote behind a backslash is none.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            ',' if !is_quoted => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            // Upstream leaves the backslash before a comma in quotes in force.
            ',' => {}
            '"' if is_escaped => is_escaped = false,
            '"' => is_quoted = !is_quoted,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// Reads one matcher.
pub fn piece(text: &str) -> Result<Piece, MatchersError> {
    let what = "expected NAME=VALUE, NAME!=VALUE, NAME=~VALUE or NAME!~VALUE";
    let bad = || MatchersError::Format { text: text.to_owned(), column: 1, what };
    let rest = text.trim_start_matches(SPACES);
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || matches!(letter, '_' | ':');
    let end = rest.find(|letter: char| !is_letter(letter) && !letter.is_ascii_digit());
    let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
    if !name.starts_with(is_letter) {
        return Err(bad());
    }
    let rest = rest.trim_start_matches(SPACES);
    let ops = [MatchOp::Regex, MatchOp::Equal, MatchOp::NotEqual, MatchOp::NotRegex];
    let found = ops.into_iter().find_map(|op| Some((op, rest.strip_prefix(op.name())?)));
    let (op, value) = found.ok_or_else(bad)?;
    let value = unescaped(value.trim_matches(SPACES))?;
    Ok(Piece { name: name.to_owned(), op, value })
}

fn unescaped(written: &str) -> Result<String, MatchersError> {
    let wrong = || MatchersError::Quote(written.to_owned());
    let (mut rest, has_quotes) = match written.strip_prefix('"') {
        Some(rest) => (rest, true),
        None => (written, false),
    };
    let mut value = String::with_capacity(rest.len());
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '"' if has_quotes && rest.is_empty() => return Ok(value),
            '"' => return Err(wrong()),
            '\\' => {
                let known = [('n', '\n'), ('"', '"'), ('\\', '\\')];
                let next = rest.chars().next();
                let meant = known.into_iter().find(|(letter, _)| next == Some(*letter));
                // Other letters follow in the next turn, and so does nothing at the end.
                value.push(meant.map_or('\\', |(_, meant)| meant));
                rest = &rest[usize::from(meant.is_some())..];
            }
            letter => value.push(letter),
        }
    }
    if has_quotes { Err(wrong()) } else { Ok(value) }
}

//! Patterns of `rule_files`, which mean what they mean to Go's `filepath.Glob`: `*`, `?`, `[a-z]`,
//! `[^a-z]` and `\` before a letter. As in upstream, `*` is for the last part of a path only.

mod expand;

pub use expand::{FILES_MAX, expand};

use std::fmt;
use std::str::FromStr;

/// Maximum length of a pattern, as Linux has for paths.
const BYTES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    /// The parts between slashes.
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Without any sign.
    Name(String),
    Signs(Vec<Sign>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sign {
    Letter(char),
    /// `?`
    One,
    /// `*`
    Any,
    Class {
        is_negated: bool,
        ranges: Vec<(char, char)>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid rule file path {text:?}: {fault}")]
pub struct PatternError {
    pub text: String,
    pub fault: PatternFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    #[error("* is for the last part of a path")]
    Star,
    #[error("a class in brackets is not complete")]
    Class,
    #[error("there is no letter after the last backslash")]
    Backslash,
    #[error("it has more than {BYTES_MAX} bytes")]
    Long,
}

impl Pattern {
    /// Parses a pattern in which `*` may stand in any part, as unit tests have them.
    pub fn anywhere(text: &str) -> Result<Pattern, PatternError> {
        let wrong = |fault| PatternError { text: text.chars().take(100).collect(), fault };
        if text.len() > BYTES_MAX {
            return Err(wrong(PatternFault::Long));
        }
        // Go unescapes only texts that have another sign.
        let parts = match text.contains(['*', '?', '[', '\\']) {
            true => text.split('/').map(part).collect::<Result<_, _>>().map_err(wrong)?,
            false => vec![Part::Name(text.to_owned())],
        };
        Ok(Pattern { text: text.to_owned(), parts })
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Pattern, PatternError> {
        let pattern = Pattern::anywhere(text)?;
        match text.split_once('*') {
            Some((_, rest)) if rest.contains('/') => {
                let text = text.chars().take(100).collect();
                Err(PatternError { text, fault: PatternFault::Star })
            }
            _ => Ok(pattern),
        }
    }
}

/// Writes the text that was parsed.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn part(text: &str) -> Result<Part, PatternFault> {
    if !text.contains(['*', '?', '[', '\\']) {
        return Ok(Part::Name(text.to_owned()));
    }
    let (mut signs, mut letters) = (Vec::new(), text.chars());
    while let Some(letter) = letters.next() {
        signs.push(match letter {
            '*' => Sign::Any,
            '?' => Sign::One,
            '[' => class(&mut letters)?,
            '\\' => Sign::Letter(letters.next().ok_or(PatternFault::Backslash)?),
            _ => Sign::Letter(letter),
        });
    }
    Ok(Part::Signs(signs))
}

/// Parses what follows `[`, with the bracket that closes it.
fn class(letters: &mut std::str::Chars<'_>) -> Result<Sign, PatternFault> {
    let bound = |letters: &mut std::str::Chars<'_>| match letters.next() {
        None | Some('-' | ']') => Err(PatternFault::Class),
        Some('\\') => letters.next().ok_or(PatternFault::Class),
        Some(letter) => Ok(letter),
    };
    let is_negated = letters.as_str().starts_with('^');
    if is_negated {
        letters.next();
    }
    let mut ranges = Vec::new();
    while ranges.is_empty() || !letters.as_str().starts_with(']') {
        let low = bound(letters)?;
        let mut high = low;
        if letters.as_str().starts_with('-') {
            letters.next();
            high = bound(letters)?;
        }
        ranges.push((low, high));
    }
    letters.next();
    Ok(Sign::Class { is_negated, ranges })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_upstream_refuses_is_no_pattern() {
        use PatternFault::{Backslash, Class, Long, Star};
        let long = "a".repeat(5000);
        for (text, fault) in [
            ("d*/x.yml", Star),
            ("*/x.yml", Star),
            ("a/**/b", Star),
            ("[", Class),
            ("a[", Class),
            ("[a-", Class),
            ("d?/[", Class),
            ("[a/b]", Class),
            ("[]a]", Class),
            ("[-]", Class),
            ("[x-]", Class),
            ("[-x]", Class),
            ("[a-b-c]", Class),
            ("[^", Class),
            ("[^bc", Class),
            ("\\", Backslash),
            (&long, Long),
        ] {
            let fault_found = text.parse::<Pattern>().map_err(|error| error.fault);
            assert_eq!(fault_found, Err(fault), "{text}");
        }
    }
}

//! Classes of characters: `[a-z]`, `\d`, `[[:alpha:]]`, `\p{Greek}`.

use super::cursor::Cursor;
use super::escape::escape;
use super::{SyntaxError, Wrong};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};
use std::collections::HashMap;

/// `RANGES_MAX` bounds the ranges in all classes of an expression, `FOLDED_MAX` the characters to
/// fold, and so the cost of parsing. A larger expression would be too large once compiled.
const RANGES_MAX: usize = 100_000;
const FOLDED_MAX: usize = 500_000;

/// Last character that has another case: a small letter of Adlam.
const LAST_WITH_CASE: char = '\u{1e943}';

type Ranges = &'static [(char, char)];

const DIGIT: Ranges = &[('0', '9')];
const SPACE: Ranges = &[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')];
const WORD: Ranges = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];

/// POSIX classes, which are ASCII only.
const NAMED: [(&str, Ranges); 14] = [
    ("alnum", &[('0', '9'), ('A', 'Z'), ('a', 'z')]),
    ("alpha", &[('A', 'Z'), ('a', 'z')]),
    ("ascii", &[('\0', '\x7f')]),
    ("blank", &[('\t', '\t'), (' ', ' ')]),
    ("cntrl", &[('\0', '\x1f'), ('\x7f', '\x7f')]),
    ("digit", DIGIT),
    ("graph", &[('!', '~')]),
    ("lower", &[('a', 'z')]),
    ("print", &[(' ', '~')]),
    ("punct", &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
    ("space", &[('\t', '\r'), (' ', ' ')]),
    ("upper", &[('A', 'Z')]),
    ("word", WORD),
    ("xdigit", &[('0', '9'), ('A', 'F'), ('a', 'f')]),
];

/// Parses the classes of one expression.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// Unicode classes that were built, by name and case folding.
    tables: HashMap<(String, bool), ClassUnicode>,
    ranges: usize,
    folded: usize,
}

impl Classes {
    /// Returns the class of one character, in all cases if `folds`; empty for a surrogate.
    pub(super) fn character(
        &mut self,
        code: u32,
        folds: bool,
    ) -> Result<ClassUnicode, SyntaxError> {
        self.finished(ranges_of(code, code).collect(), folds, ClassUnicode::empty())
    }

    /// Parses a bracketed class after the bracket at `start`.
    pub(super) fn bracketed(
        &mut self,
        cursor: &mut Cursor<'_>,
        start: usize,
        folds: bool,
    ) -> Result<ClassUnicode, SyntaxError> {
        let is_negated = cursor.skip("^");
        // Ranges still to be folded, and classes that are complete.
        let mut ranges = Vec::new();
        let mut done = Vec::new();
        let mut is_first = true;
        // A closing bracket at the first position is a member of the class.
        while is_first || cursor.peek() != Some(']') {
            is_first = false;
            if let Some(class) = self.named(cursor, folds)? {
                done.extend_from_slice(class.ranges());
                continue;
            }
            let at = cursor.at();
            let low = if cursor.skip("\\") {
                if let Some(class) = self.escaped(cursor, at, folds)? {
                    done.extend_from_slice(class.ranges());
                    continue;
                }
                escape(cursor, at)?
            } else {
                letter(cursor, start)?
            };
            range(cursor, start, at, low, &mut ranges)?;
            if ranges.len() + done.len() > RANGES_MAX {
                return Err(SyntaxError::new(Wrong::TooLarge, cursor.whole()));
            }
        }
        cursor.next();
        // Negated after folding: `[^k]` excludes all cases of `k`.
        let mut class = self.finished(ranges, folds, ClassUnicode::new(done))?;
        if is_negated {
            class.negate();
        }
        Ok(class)
    }

    /// Parses a Perl or Unicode class after the backslash at `start`. Returns `None` and reads
    /// nothing for other escapes.
    pub(super) fn escaped(
        &mut self,
        cursor: &mut Cursor<'_>,
        start: usize,
        folds: bool,
    ) -> Result<Option<ClassUnicode>, SyntaxError> {
        let Some(letter) = cursor.peek() else { return Ok(None) };
        let ranges = match letter.to_ascii_lowercase() {
            'd' => DIGIT,
            's' => SPACE,
            'w' => WORD,
            'p' => return self.of_unicode(cursor, start, folds).map(Some),
            _ => return Ok(None),
        };
        cursor.next();
        self.group(ranges, letter.is_ascii_uppercase(), folds).map(Some)
    }

    /// Parses a POSIX class: `[:alpha:]` or `[:^alpha:]`.
    fn named(
        &mut self,
        cursor: &mut Cursor<'_>,
        folds: bool,
    ) -> Result<Option<ClassUnicode>, SyntaxError> {
        let start = cursor.at();
        let mut ahead = cursor.clone();
        if !ahead.skip("[:") {
            return Ok(None);
        }
        // Without `:]` this is no named class: `[[:]` contains two characters.
        let Some(name) = ahead.until(":]") else { return Ok(None) };
        *cursor = ahead;
        let plain = name.strip_prefix('^');
        let found = NAMED.iter().find(|(known, _)| *known == plain.unwrap_or(name));
        let (_, ranges) = found.ok_or_else(|| cursor.wrong_since(start, Wrong::ClassRange))?;
        self.group(ranges, plain.is_some(), folds).map(Some)
    }

    fn group(
        &mut self,
        ranges: Ranges,
        is_negated: bool,
        folds: bool,
    ) -> Result<ClassUnicode, SyntaxError> {
        let ranges = ranges.iter().map(|(low, high)| ClassUnicodeRange::new(*low, *high));
        let mut class = self.finished(ranges.collect(), folds, ClassUnicode::empty())?;
        if is_negated {
            class.negate();
        }
        Ok(class)
    }

    /// Parses a Unicode class after the backslash: `pN`, `p{Greek}`, `P{^Lu}`.
    fn of_unicode(
        &mut self,
        cursor: &mut Cursor<'_>,
        start: usize,
        folds: bool,
    ) -> Result<ClassUnicode, SyntaxError> {
        let mut is_negated = cursor.next() == Some('P');
        let mut one = [0; 4];
        let name = match cursor.next() {
            Some('{') => match cursor.until("}") {
                Some(name) => name,
                None => {
                    cursor.take_rest();
                    return Err(cursor.wrong_since(start, Wrong::ClassRange));
                }
            },
            Some(letter) => letter.encode_utf8(&mut one),
            None => return Err(cursor.wrong_since(start, Wrong::ClassRange)),
        };
        let name = match name.strip_prefix('^') {
            Some(name) => {
                is_negated = !is_negated;
                name
            }
            None => name,
        };
        let key = (name.to_owned(), folds);
        // Tables are large, and expressions repeat them, so each table is built and folded once.
        let mut class = match self.tables.get(&key) {
            Some(known) => known.clone(),
            None => {
                let table = table(name);
                let table = table.ok_or_else(|| cursor.wrong_since(start, Wrong::ClassRange))?;
                let none = ClassUnicode::empty();
                let class = self.finished(table.ranges().to_vec(), folds, none)?;
                self.tables.insert(key, class.clone());
                class
            }
        };
        if is_negated {
            class.negate();
        }
        self.count(&class)?;
        Ok(class)
    }

    /// Returns the union of `ranges`, in all cases if `folds`, and of `done`.
    fn finished(
        &mut self,
        ranges: Vec<ClassUnicodeRange>,
        folds: bool,
        done: ClassUnicode,
    ) -> Result<ClassUnicode, SyntaxError> {
        let mut class = ClassUnicode::new(ranges);
        if folds {
            // `case_fold_simple` looks up each character, so only characters that may have another
            // case are folded.
            let with_case = ClassUnicodeRange::new('\0', LAST_WITH_CASE);
            let mut folded = ClassUnicode::new([with_case]);
            folded.intersect(&class);
            self.folded += folded.iter().map(ClassUnicodeRange::len).sum::<usize>();
            if self.folded > FOLDED_MAX {
                // The caller knows the expression and adds it to this error.
                return Err(SyntaxError::new(Wrong::TooLarge, ""));
            }
            folded.case_fold_simple();
            class.union(&folded);
        }
        class.union(&done);
        self.count(&class)?;
        Ok(class)
    }

    fn count(&mut self, class: &ClassUnicode) -> Result<(), SyntaxError> {
        // Up to two ranges cost no more than their text in the expression.
        self.ranges += class.ranges().len().saturating_sub(2);
        match self.ranges > RANGES_MAX {
            true => Err(SyntaxError::new(Wrong::TooLarge, "")),
            false => Ok(()),
        }
    }
}

/// Reads one character of the class that begins at `class_start`.
fn letter(cursor: &mut Cursor<'_>, class_start: usize) -> Result<u32, SyntaxError> {
    match cursor.next() {
        Some(letter) => Ok(letter.into()),
        None => Err(cursor.wrong_since(class_start, Wrong::ClassNotClosed)),
    }
}

/// Adds the character that was read at `start`, or the range that begins with it.
fn range(
    cursor: &mut Cursor<'_>,
    class_start: usize,
    start: usize,
    low: u32,
    ranges: &mut Vec<ClassUnicodeRange>,
) -> Result<(), SyntaxError> {
    let mut behind = cursor.rest().chars();
    let high = match (behind.next(), behind.next()) {
        // A hyphen at the end is a member of the class.
        (Some('-'), Some(last)) if last != ']' => {
            cursor.next();
            let at = cursor.at();
            match cursor.skip("\\") {
                true => escape(cursor, at)?,
                false => letter(cursor, class_start)?,
            }
        }
        _ => low,
    };
    if high < low {
        return Err(cursor.wrong_since(start, Wrong::ClassRange));
    }
    ranges.extend(ranges_of(low, high));
    Ok(())
}

/// Returns a range of code points without surrogates, which no text contains.
fn ranges_of(low: u32, high: u32) -> impl Iterator<Item = ClassUnicodeRange> {
    const SURROGATES: (u32, u32) = (0xd800, 0xdfff);
    let parts = [(low, high.min(SURROGATES.0 - 1)), (low.max(SURROGATES.1 + 1), high)];
    parts.into_iter().filter(|(low, high)| low <= high).filter_map(|(low, high)| {
        Some(ClassUnicodeRange::new(char::from_u32(low)?, char::from_u32(high)?))
    })
}

/// Returns a general category or a script by its name, or `Any`, `ASCII` or `Assigned`. Case,
/// spaces, hyphens and underscores are ignored. The tables are those of `regex-syntax`, which has
/// more tables than RE2.
fn table(name: &str) -> Option<ClassUnicode> {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_- ".contains(&byte);
    let mut plain = name.bytes().filter(u8::is_ascii_alphanumeric);
    // `regex-syntax` ignores a leading `is`, but RE2 does not.
    let begins_with_is = plain.next().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'i'))
        && plain.next().is_some_and(|byte| byte.eq_ignore_ascii_case(&b's'));
    if begins_with_is || !name.bytes().all(is_of_name) {
        return None;
    }
    ["gc", "sc"].into_iter().find_map(|kind| {
        let hir = regex_syntax::parse(&format!("\\p{{{kind}={name}}}")).ok()?;
        match hir.into_kind() {
            HirKind::Class(Class::Unicode(class)) => Some(class),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_with_cases_end_where_we_say() {
        let folded = |low: char, high: char| {
            let range = ClassUnicode::new([ClassUnicodeRange::new(low, high)]);
            let mut folded = range.clone();
            folded.case_fold_simple();
            (range, folded)
        };
        let (last, folded_last) = folded(LAST_WITH_CASE, LAST_WITH_CASE);
        assert_ne!(last, folded_last);
        let next = char::from_u32(LAST_WITH_CASE as u32 + 1).expect("a character");
        let (above, folded_above) = folded(next, char::MAX);
        assert_eq!(above, folded_above);
    }
}

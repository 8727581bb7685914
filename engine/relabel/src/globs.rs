//! Expressions that are texts with gaps, such as `a.*`, `.*-b.+` or `a.c|d`: most expressions in
//! use. They are not compiled: compilation takes longer than matching a thousand values.

use crate::literals::characters;
use crate::prefixes::is_any_character;
use regex_syntax::hir::{Hir, HirKind};

/// Maximum number of alternatives: each of them is tried.
const GLOBS_MAX: usize = 32;

/// Maximum number of texts whose position is not fixed, so that a search is needed.
const SEARCHED_MAX: usize = 8;

/// Maximum number of characters of a class; each becomes an alternative.
const CLASS_MAX: usize = 8;

/// Maximum number of bytes in the texts of all alternatives.
const TEXT_BYTES_MAX: usize = 1024;

/// Maximum count of a repetition, in characters.
const COUNT_MAX: u32 = 1000;

/// Alternatives, one of which has to match the whole text.
#[derive(Debug)]
pub(crate) struct Globs(Vec<Glob>);

#[derive(Debug, Default)]
struct Glob {
    /// Pieces at the beginning of the text.
    start: Vec<Piece>,
    /// Gaps that follow, if any; the text of the last gap ends the matched text.
    gaps: Vec<Gap>,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    /// This number of arbitrary characters.
    Any(usize),
}

/// At least this number of characters, then a text, which is empty only in the last gap.
#[derive(Debug)]
struct Gap {
    characters_min: usize,
    text: String,
}

#[derive(Clone)]
enum Part {
    Text(String),
    /// This number of arbitrary characters.
    Any(usize),
    /// Any number of characters, including none.
    Gap,
}

impl Globs {
    /// Returns the alternatives of an expression, if it consists of texts and gaps.
    pub(crate) fn of(hir: &Hir) -> Option<Globs> {
        let globs: Vec<Glob> = unfolded(hir)?.into_iter().map(Glob::of).collect::<Option<_>>()?;
        // The last gap is matched at the end of the text; only earlier gaps need a search.
        let searched = |glob: &Glob| glob.gaps.len().saturating_sub(1);
        (globs.iter().map(searched).sum::<usize>() <= SEARCHED_MAX).then_some(Globs(globs))
    }

    /// Returns whether a whole text matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.0.iter().any(|glob| glob.match_all(text).unwrap_or(false))
    }

    /// Estimates the memory of the alternatives in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let glob_bytes = |glob: &Glob| {
            let start = glob.start.iter().map(|piece| match piece {
                Piece::Text(text) => text.len(),
                Piece::Any(_) => 0,
            });
            let gaps = glob.gaps.iter().map(|gap| gap.text.len());
            let lists = size_of_val(&*glob.start) + size_of_val(&*glob.gaps);
            size_of::<Glob>() + lists + start.chain(gaps).sum::<usize>()
        };
        self.0.iter().map(glob_bytes).sum()
    }
}

impl Glob {
    /// Makes a glob; `None` if a fixed number of characters is between two texts after a gap: the
    /// position of the first text would depend on the second text.
    fn of(parts: Vec<Part>) -> Option<Glob> {
        let mut glob = Glob::default();
        let mut counted = 0;
        for part in parts {
            match (glob.gaps.last_mut(), part) {
                (None, Part::Any(count)) => glob.start.push(Piece::Any(count)),
                (None, Part::Text(text)) => match glob.start.last_mut() {
                    Some(Piece::Text(before)) => before.push_str(&text),
                    _ => glob.start.push(Piece::Text(text)),
                },
                (Some(gap), Part::Any(count)) if gap.text.is_empty() => gap.characters_min += count,
                (Some(_), Part::Any(count)) => counted += count,
                (Some(_), Part::Text(_)) if counted > 0 => return None,
                (Some(gap), Part::Text(text)) => gap.text.push_str(&text),
                (Some(gap), Part::Gap) if gap.text.is_empty() => {}
                // Consecutive gaps are one; characters counted before a gap become its minimum.
                (_, Part::Gap) => {
                    let characters_min = std::mem::take(&mut counted);
                    glob.gaps.push(Gap { characters_min, text: String::new() });
                }
            }
        }
        (counted == 0).then_some(glob)
    }

    /// Returns whether the text matches; `None` means no, too. The first position of a text leaves
    /// the most characters to later pieces, so no other position has to be tried.
    fn match_all(&self, text: &str) -> Option<bool> {
        let mut rest = text;
        for piece in &self.start {
            rest = match piece {
                Piece::Text(text) => rest.strip_prefix(text.as_str())?,
                Piece::Any(count) => without_first(rest, *count)?,
            };
        }
        let Some((last, inner)) = self.gaps.split_last() else { return Some(rest.is_empty()) };
        for gap in inner {
            rest = without_first(rest, gap.characters_min)?;
            (_, rest) = rest.split_once(gap.text.as_str())?;
        }
        // The last text can only be at the end, so it is not searched for.
        Some(without_first(rest, last.characters_min)?.ends_with(last.text.as_str()))
    }
}

/// Returns the text after this number of characters; `None` if it has fewer.
fn without_first(text: &str, count: usize) -> Option<&str> {
    let mut rest = text.chars();
    for _ in 0..count {
        rest.next()?;
    }
    Some(rest.as_str())
}

/// Returns the alternatives of an expression, if they are few and made of texts and gaps.
fn unfolded(hir: &Hir) -> Option<Vec<Vec<Part>>> {
    let all = match hir.kind() {
        HirKind::Empty => vec![Vec::new()],
        HirKind::Literal(literal) => {
            vec![vec![Part::Text(String::from_utf8(literal.0.to_vec()).ok()?)]]
        }
        HirKind::Capture(capture) => unfolded(&capture.sub)?,
        HirKind::Class(_) if is_any_character(hir) => vec![vec![Part::Any(1)]],
        HirKind::Class(class) => {
            let characters = characters(class, CLASS_MAX)?.into_iter();
            characters.map(|character| vec![Part::Text(character)]).collect()
        }
        HirKind::Repetition(repetition) if is_any_character(&repetition.sub) => {
            let any = Part::Any(repetition.min as usize);
            match (repetition.min, repetition.max) {
                (min, _) if min > COUNT_MAX => return None,
                (0, None) => vec![vec![Part::Gap]],
                (_, None) => vec![vec![any, Part::Gap]],
                (min, Some(max)) if min == max => vec![vec![any]],
                // `.?` is two alternatives; larger ranges would be too many.
                (0, Some(1)) => vec![Vec::new(), vec![Part::Any(1)]],
                _ => return None,
            }
        }
        HirKind::Repetition(repetition) if (repetition.min, repetition.max) == (0, Some(1)) => {
            let mut all = unfolded(&repetition.sub)?;
            all.push(Vec::new());
            all
        }
        HirKind::Concat(parts) => {
            let mut all = vec![Vec::new()];
            for part in parts {
                let tails = unfolded(part)?;
                match tails.as_slice() {
                    // Extended in place, because a concatenation may have very many parts.
                    [tail] => all.iter_mut().for_each(|head| head.extend_from_slice(tail)),
                    _ => {
                        let join = |head: &Vec<Part>| {
                            let join = |tail: &Vec<Part>| [head.as_slice(), tail].concat();
                            tails.iter().map(join).collect::<Vec<_>>()
                        };
                        all = all.iter().flat_map(join).collect();
                    }
                }
                // Checked after each part: the product of alternatives may grow exponentially.
                if !is_small(&all) {
                    return None;
                }
            }
            all
        }
        HirKind::Alternation(branches) => {
            let mut all = Vec::new();
            for branch in branches {
                all.append(&mut unfolded(branch)?);
                if !is_small(&all) {
                    return None;
                }
            }
            all
        }
        HirKind::Repetition(_) | HirKind::Look(_) => return None,
    };
    is_small(&all).then_some(all)
}

fn is_small(all: &[Vec<Part>]) -> bool {
    let bytes = all.iter().flatten().map(|part| match part {
        Part::Text(text) => text.len(),
        Part::Any(_) | Part::Gap => 1,
    });
    all.len() <= GLOBS_MAX && bytes.sum::<usize>() <= TEXT_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::read;
    use crate::re2::Dot;
    use proptest::prelude::*;
    use regex_automata::meta::Regex;

    fn globs(expression: &str) -> Option<Globs> {
        Globs::of(&read(expression, Dot::Any).expect("an expression").hir)
    }

    #[test]
    fn texts_with_gaps_are_not_compiled() {
        for (expression, fits, differs) in [
            ("node-.*", "node-", "xnode-"),
            (".*-prod", "-prod", "-prod-"),
            (".+-prod.+", "é-prod-1", "-prod-1"),
            ("a.*b.*c", "abxbc", "acb"),
            ("a.b:9100|c.+", "axb:9100", "ab:9100"),
            ("a(b|c)?.*", "acx", "bc"),
            ("a.{2}", "aéé", "aé"),
            ("a.*aba", "aaba", "aba"),
        ] {
            let globs = globs(expression).expect("texts with gaps");
            assert!(globs.is_match(fits), "{expression} {fits}");
            assert!(!globs.is_match(differs), "{expression} {differs}");
        }
        for expression in ["a+", ".*a.b", "[a-z]x", "(?i)abcdefgh", r"\bx", "a.{2,3}", ".*a.?"] {
            assert!(globs(expression).is_none(), "{expression}");
        }
        let many = |count: usize, before: &str| {
            let all = (0..count).map(|number| format!("{before}{number}.*")).collect::<Vec<_>>();
            globs(&all.join("|"))
        };
        assert!(many(GLOBS_MAX, "").is_some() && many(GLOBS_MAX + 1, "").is_none());
        assert!(many(SEARCHED_MAX, ".*").is_some() && many(SEARCHED_MAX + 1, ".*").is_none());
        assert!(globs(&format!("{}.*", "x".repeat(TEXT_BYTES_MAX))).is_none());
        assert!(globs(&".a".repeat(TEXT_BYTES_MAX)).is_none());
    }

    proptest! {
        #[test]
        fn globs_match_what_the_expression_does(
            expression in "([abé.]|\\.\\*|\\.\\+|\\.\\?|\\.\\{2\\}|\\||a\\(b\\||\\(\\.\\*\\|b\\)|\\(a\\|é\\)\\?|[ab]c){1,7}",
            texts in prop::collection::vec("[abcé\n]{0,8}", 1..60),
        ) {
            let Ok(parsed) = read(&expression, Dot::Any) else { return Ok(()) };
            let Some(globs) = Globs::of(&parsed.hir) else { return Ok(()) };
            let regex = Regex::new(&format!("^(?s:{expression})$")).expect("it was parsed");
            for text in texts {
                let (found, expected) = (globs.is_match(&text), regex.is_match(&text));
                prop_assert_eq!(found, expected, "{} {}", expression, text);
            }
        }
    }
}

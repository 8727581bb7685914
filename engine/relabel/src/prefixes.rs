//! Common prefixes of all matches of a regular expression, so that only a part of a sorted list of
//! values is compared.

use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Returns the prefixes of an expression's matches, ascending; no prefix begins with another.
/// `None` if a match may begin with anything, or if there are too many prefixes.
pub(crate) fn prefixes(hir: &Hir) -> Option<Vec<String>> {
    let found = Extractor::new().extract(hir);
    let mut prefixes = Vec::new();
    for literal in found.literals()? {
        prefixes.push(whole_characters(literal.as_bytes()).to_owned());
    }
    prefixes.sort_unstable();
    let mut last: Option<String> = None;
    // In sorted order, a prefix is directly before the longer prefixes that it covers.
    prefixes.retain(|prefix| {
        let is_covered = last.as_deref().is_some_and(|before| prefix.starts_with(before));
        if !is_covered {
            last = Some(prefix.clone());
        }
        !is_covered
    });
    let says_something = prefixes.first().is_none_or(|first| !first.is_empty());
    says_something.then_some(prefixes)
}

/// Returns the minimum length of the texts that an expression accepts, in characters, if it accepts
/// every text (`.*`, 0) or every text except the empty text (`.+`, 1).
pub(crate) fn takes_any_text(hir: &Hir) -> Option<u32> {
    match hir.kind() {
        HirKind::Capture(capture) => takes_any_text(&capture.sub),
        HirKind::Repetition(repetition) if repetition.max.is_none() && repetition.min <= 1 => {
            is_any_character(&repetition.sub).then_some(repetition.min)
        }
        _ => None,
    }
}

pub(crate) fn is_any_character(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            let mut ranges = class.iter();
            let first = ranges.next().map(|range| (range.start(), range.end()));
            first == Some(('\0', char::MAX)) && ranges.next().is_none()
        }
        HirKind::Capture(capture) => is_any_character(&capture.sub),
        _ => false,
    }
}

/// Cuts off an incomplete character at the end, because prefixes are extracted by bytes.
fn whole_characters(bytes: &[u8]) -> &str {
    let sound = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(bytes.get(..sound).unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regex_automata::meta::Regex;

    fn parse(expression: &str) -> Result<Hir, Box<regex_syntax::Error>> {
        let mut parser = regex_syntax::ParserBuilder::new().dot_matches_new_line(true).build();
        Ok(parser.parse(expression)?)
    }

    #[test]
    fn prefixes_of_common_expressions() -> Result<(), Box<dyn std::error::Error>> {
        for (expression, expected) in [
            ("foo.*", Some(vec!["foo"])),
            ("foo.+", Some(vec!["foo"])),
            ("(?:foo|bar).*", Some(vec!["bar", "foo"])),
            ("foo|foobar.*", Some(vec!["foo"])),
            ("node-[12]\\d+", Some(vec!["node-1", "node-2"])),
            ("é.*", Some(vec!["é"])),
            (".*foo", None),
            ("foo.*|", None),
            ("(foo)?bar.*", Some(vec!["bar", "foobar"])),
            ("", None),
        ] {
            let found = prefixes(&parse(expression)?);
            let expected: Option<Vec<String>> =
                expected.map(|all| all.into_iter().map(str::to_owned).collect());
            assert_eq!(found, expected, "{expression}");
        }
        Ok(())
    }

    #[test]
    fn any_text_is_known() -> Result<(), Box<dyn std::error::Error>> {
        for (expression, expected) in
            [(".*", Some(0)), ("(.+)", Some(1)), (".*?", Some(0)), ("[^a]*", None), (".{2,}", None)]
        {
            assert_eq!(takes_any_text(&parse(expression)?), expected, "{expression}");
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn every_match_begins_with_a_prefix(
            expression in "([abé](\\*|\\+|\\?|\\|)?){1,4}(\\.\\*|\\.\\+)?",
            texts in prop::collection::vec("[abéc]{0,5}", 1..40),
        ) {
            let Ok(hir) = parse(&expression) else { return Ok(()) };
            let Some(prefixes) = prefixes(&hir) else { return Ok(()) };
            prop_assert!(prefixes.is_sorted());
            let anchored = format!("^(?s:{expression})$");
            let Ok(regex) = Regex::new(&anchored) else { return Ok(()) };
            for text in texts.iter().filter(|text| regex.is_match(text.as_str())) {
                let begins = prefixes.iter().filter(|prefix| text.starts_with(*prefix)).count();
                prop_assert_eq!(begins, 1, "{} {}", expression, text);
            }
        }
    }
}

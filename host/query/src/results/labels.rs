//! Label sets in the engine's JSON: `{"name":"value",…}`, sorted by name.

use std::borrow::Cow;
use std::cmp::Ordering;

/// Compares two label sets as the series of an answer are sorted.
pub fn order(one: &[u8], other: &[u8]) -> Ordering {
    // Equal bytes are equal labels, which is the usual case when answers are joined.
    if one == other { Ordering::Equal } else { Texts(one).cmp(Texts(other)) }
}

/// Iterates over the names and values of a label set, alternately.
struct Texts<'a>(&'a [u8]);

impl<'a> Iterator for Texts<'a> {
    type Item = Cow<'a, [u8]>;

    fn next(&mut self) -> Option<Cow<'a, [u8]>> {
        let begin = self.0.iter().position(|byte| *byte == b'"')? + 1;
        let rest = self.0.get(begin..)?;
        let length = text_length(rest)?;
        self.0 = &rest[length + 1..];
        Some(unescaped(&rest[..length]))
    }
}

/// Returns the length of a JSON string up to its closing quote; `None` if there is none.
pub fn text_length(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match rest.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => out.push(b'\n'),
                Some(b'r') => out.push(b'\r'),
                Some(b't') => out.push(b'\t'),
                // The engine writes only control characters as `\u`, so the code fits into a byte.
                Some(b'u') => {
                    let digits = bytes.by_ref().take(4);
                    let digit = |byte| char::from(byte).to_digit(16).unwrap_or(0);
                    out.push(digits.fold(0, |code, byte| code << 4 | digit(byte)) as u8);
                }
                Some(other) => out.push(other),
                None => {}
            },
            byte => out.push(byte),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The expected order compares pairs of name and value, with characters that JSON escapes.
        #[test]
        fn the_order_is_that_of_names_and_values(
            sets in prop::collection::vec(
                prop::collection::btree_map("[a-c_:]{1,2}", "[\\\\\"\n\r\t\u{1}\u{1f} !a-cé]{1,3}", 0..4),
                2
            )
        ) {
            let json = |set: &BTreeMap<String, String>| serde_json::to_vec(set).expect("JSON");
            let expected = sets[0].iter().cmp(sets[1].iter());
            prop_assert_eq!(order(&json(&sets[0]), &json(&sets[1])), expected);
        }
    }
}

//! Quoted strings: as Go writes literals (for dumps), and as OpenMetrics escapes values.

use std::fmt::Write as _;

/// Go's printable characters besides the space: letters, marks, numbers, punctuation, symbols.
const PRINTABLE: &str = r"[\pL\pM\pN\pP\pS]";

/// Writes quoted strings. Makes the table of printable characters when it is first needed.
#[derive(Default)]
pub struct Quoter {
    printable: Option<Vec<(char, char)>>,
}

impl Quoter {
    /// Appends a Go string literal.
    pub fn put_go(&mut self, out: &mut String, text: &str) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                ' '..='~' => out.push(c),
                '\x07' => out.push_str("\\a"),
                '\x08' => out.push_str("\\b"),
                '\x0c' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\x0b' => out.push_str("\\v"),
                // Writing to a string does not fail.
                '\0'..='\x1f' | '\x7f' => drop(write!(out, "\\x{:02x}", u32::from(c))),
                _ if self.is_printable(c) => out.push(c),
                '\0'..='\u{ffff}' => drop(write!(out, "\\u{:04x}", u32::from(c))),
                _ => drop(write!(out, "\\U{:08x}", u32::from(c))),
            }
        }
        out.push('"');
    }

    fn is_printable(&mut self, c: char) -> bool {
        let ranges = self.printable.get_or_insert_with(printable_ranges);
        let after = ranges.partition_point(|(first, _)| *first <= c);
        after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, last)| c <= *last)
    }
}

/// Appends a string in quotes, with the three escapes that OpenMetrics knows.
pub fn put_open_metrics(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// Returns whether a label name needs no quotes.
pub fn is_plain_label_name(name: &str) -> bool {
    is_plain(name, |byte| byte == b'_')
}

/// Returns whether a metric name needs no quotes.
pub fn is_plain_metric_name(name: &str) -> bool {
    is_plain(name, |byte| matches!(byte, b'_' | b':'))
}

fn is_plain(name: &str, is_mark: impl Fn(u8) -> bool) -> bool {
    let begins = |byte: u8| byte.is_ascii_alphabetic() || is_mark(byte);
    let mut bytes = name.bytes();
    bytes.next().is_some_and(begins) && bytes.all(|byte| begins(byte) || byte.is_ascii_digit())
}

fn printable_ranges() -> Vec<(char, char)> {
    let class = match regex_syntax::parse(PRINTABLE).map(regex_syntax::hir::Hir::into_kind) {
        Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => class,
        // Never reached, as the expression is constant; non-ASCII characters would be escaped.
        _ => return Vec::new(),
    };
    class.ranges().iter().map(|range| (range.start(), range.end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_go_does() {
        let mut quoter = Quoter::default();
        for (text, expected) in [
            ("plain", r#""plain""#),
            ("a \"b\"\\\n", r#""a \"b\"\\\n""#),
            ("\x07\x1b\x7f", r#""\a\x1b\x7f""#),
            ("é日😀", "\"é日😀\""),
            ("\u{a0}\u{200b}\u{e000}", r#""\u00a0\u200b\ue000""#),
            ("\u{10ffff}\u{fffd}", "\"\\U0010ffff\u{fffd}\""),
        ] {
            let mut out = String::new();
            quoter.put_go(&mut out, text);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn names_that_are_plain() {
        assert!(is_plain_label_name("_a1") && !is_plain_label_name("a:b"));
        assert!(is_plain_metric_name(":a1") && !is_plain_metric_name("1a"));
        assert!(!is_plain_label_name("") && !is_plain_label_name("a.b"));
    }
}
